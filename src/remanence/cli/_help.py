"""Help texts that read as a manual does: flags without a type, no types of Python, no braces around arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from remanence.cli._interrupts import interrupts_held


def _no_type(ctx: object) -> None:
    """Of an argument: its name says what it is."""


def _tidy(parameters: Iterable[Any]) -> None:
    """Typer would show ``--json <bool>``, ``--set <list[str]>`` and ``PATH <list[Path]>``."""
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            vars(parameter)["display_type_rich"] = _no_type  # the one handle: a metavar replaces an argument's name
        elif parameter.is_flag:
            parameter.metavar = ""
        elif parameter.multiple:
            parameter.metavar = parameter.metavar or "<str>"


class PlainCommand(TyperCommand):
    """A command with a plain help text, which Ctrl-C interrupts as soon as its arguments are read."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Reads the arguments."""
        with interrupts_held():
            return super().make_context(*args, **options)

    def get_params(self, ctx: Any) -> list[Any]:
        """With the option ``--help``, which is not among ``params``."""
        parameters = super().get_params(ctx)
        _tidy(parameters)
        return parameters

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Braces mean a choice to most readers; a required argument stands alone."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]


class PlainGroup(TyperGroup):
    """A group of commands with a plain help text."""

    def get_params(self, ctx: Any) -> list[Any]:
        """With the option ``--help``, which is not among ``params``."""
        parameters = super().get_params(ctx)
        _tidy(parameters)
        return parameters


def use_plain_help(*apps: typer.Typer) -> None:
    """For every command that is registered so far."""
    for app in apps:
        app.info.cls = PlainGroup
        for command in app.registered_commands:
            command.cls = PlainCommand
