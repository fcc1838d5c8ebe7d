"""A run as it goes: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Observer = Callable[[dict[str, Any]], None]


@contextlib.contextmanager
def watch(folder: Path, quiet: bool = False, console: Console | None = None) -> Iterator[Observer]:
    """Gives an observer of a run that shows it.

    Args:
        folder: Of the run, to be named.
        quiet: Show nothing but warnings, which go to standard error.
        console: Where to print (default: standard output).

    Example:
        >>> with watch(Path("runs/mine"), quiet=True) as observer:
        ...     observer({"kind": "train", "update": 1, "budget": 2})
    """
    console = console or Console()
    if quiet:
        yield _warn
    elif console.is_terminal:
        with _bar(console, folder) as observer:
            yield observer
    else:
        typer.echo(f"run {folder}")
        yield lambda line: _print("" if _is_between(line) else plain_line(line))


def _is_between(line: dict[str, Any]) -> bool:
    """Whether it need not be printed: a policy tells of every update, which takes about a second."""
    return "frames" in line and line["update"] % 10 != 0 and line["update"] != line["budget"]


def _warn(line: dict[str, Any]) -> None:
    if line["kind"] == "message":
        typer.echo(line["text"], err=True)


def _print(text: str) -> None:
    if text:
        typer.echo(text)


def plain_line(line: dict[str, Any]) -> str:
    """One measurement or message as a line of text; nothing for what a reader need not know.

    Example:
        >>> plain_line({"kind": "train", "update": 50, "budget": 100, "loss": 0.25, "accuracy": 0.5})
        'update 50/100  train loss 0.25  accuracy 0.5'
    """
    if line["kind"] == "message":
        return line["text"]
    if line["kind"] in ("saved", "end"):
        return ""
    place = f"update {line['update']}/{line['budget']}"
    return f"{place}  {line['kind']} {_numbers(line)}".rstrip()


def _numbers(line: dict[str, Any]) -> str:
    hidden = ("kind", "update", "budget", "seconds", "cpu_seconds", "best")
    shown = {key: value for key, value in line.items() if key not in hidden}
    return "  ".join(f"{key} {value:.4g}" for key, value in shown.items() if value is not None)


@contextlib.contextmanager
def _bar(console: Console, folder: Path) -> Iterator[Observer]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, refresh_per_second=4) as progress:
        job = progress.add_task(folder.name, total=None)

        def observe(line: dict[str, Any]) -> None:
            if line["kind"] in ("message", "validation", "curriculum", "resumed"):
                progress.console.print(plain_line(line), markup=False, highlight=False)
            if line["kind"] == "train":
                progress.update(job, description=_brief(line), completed=line["update"], total=line["budget"])

        yield observe


def _brief(line: dict[str, Any]) -> str:
    """The text next to the bar: of a model that learns a task, or of a policy that plays."""
    if "frames" in line:
        mean = "-" if line["mean_return"] is None else f"{line['mean_return']:.3f}"
        return f"return {mean}  {line['frames_per_second']:.0f} frames/s"
    return f"loss {line['loss']:.4f}  accuracy {line['accuracy']:.3f}  {line['updates_per_second']:.1f}/s"
