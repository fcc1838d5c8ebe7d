"""The commands and their options. Each imports what it runs when it runs, so that ``--help`` does not load torch."""

from __future__ import annotations

from typing import Annotated

import typer

import remanence
from remanence.cli._training import add_training_commands

app = typer.Typer(
    name="remanence",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # locals are tensors: pages of numbers around one line of message
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"remanence {remanence.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Sequence models with a bounded long memory, and how far any model's memory reaches."""


@app.command()
def models(json: Json = False) -> None:
    """List the layers, what each is made of, and the document it comes from."""
    from remanence.cli._models import show_models

    show_models(as_json=json)


@app.command()
def doctor(json: Json = False) -> None:
    """Say what this installation runs on: versions, active path and why, threads, data."""
    from remanence.cli._doctor import show_report

    show_report(as_json=json)


@app.command()
def demo(
    quick: Annotated[bool, typer.Option("--quick", help="A few updates of tiny models, to see that it runs.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the initial weights and the sequences.")] = 0,
) -> None:
    """Train an RNN and an LSTM, without and with a memory, on the same recall task, and compare them."""
    from remanence.cli.demo import run_demo

    run_demo(quick=quick, seed=seed)


add_training_commands(app)


def main() -> None:
    """Runs the command line; the entry point of the installed command.

    Example:
        >>> import sys
        >>> sys.argv = ["remanence", "--version"]
        >>> try:
        ...     main()
        ... except SystemExit as stop:
        ...     print("exit code", stop.code)
        remanence 0.1.0
        exit code 0
    """
    app()
