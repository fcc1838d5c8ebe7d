"""A run as it goes: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from remanence.runs import Observer, Values


@contextlib.contextmanager
def watch(folder: Path, quiet: bool = False) -> Iterator[Observer]:
    """Gives an observer of a run that shows it.

    Example:
        >>> with watch(Path("runs/mine"), quiet=True) as observer:
        ...     observer({"kind": "train", "update": 1, "budget": 2})
    """
    console = Console()
    if quiet:
        yield _warn
    elif console.is_terminal:
        with _bar(console, folder) as observer:
            yield observer
    else:
        typer.echo(f"run {folder}")
        yield _print


def transient_progress() -> Progress:
    """A bar that vanishes when the work is done; nothing, not even an empty line, where there is no terminal."""
    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)


def _is_between(line: Values) -> bool:
    """Whether it need not be printed: a policy tells of every update, which takes about a second."""
    return "frames" in line and line["update"] % 10 != 0 and line["update"] != line["budget"]


def _warn(line: Values) -> None:
    if line["kind"] == "message":
        typer.echo(line["text"], err=True)


def _print(line: Values) -> None:
    text = plain_line(line)
    if text and not _is_between(line):
        typer.echo(text)


def plain_line(line: Values) -> str:
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


def _numbers(line: Values) -> str:
    hidden = ("kind", "update", "budget", "seconds", "cpu_seconds", "best")
    shown = {key: value for key, value in line.items() if key not in hidden}
    return "  ".join(f"{key} {value:.4g}" for key, value in shown.items() if value is not None)


@contextlib.contextmanager
def _bar(console: Console, folder: Path) -> Iterator[Observer]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, refresh_per_second=4) as progress:
        job = progress.add_task(folder.name, total=None)

        def observe(line: Values) -> None:
            if line["kind"] in ("message", "validation", "curriculum", "resumed"):
                progress.console.print(plain_line(line), markup=False, highlight=False)
            if line["kind"] == "train":
                progress.update(job, description=_brief(line), completed=line["update"], total=line["budget"])

        yield observe


def _brief(line: Values) -> str:
    """The text next to the bar: of a model that learns a task, or of a policy that plays."""
    if "frames" in line:
        mean = "-"
        if line["mean_return"] is not None:
            mean = f"{line['mean_return']:.3f}"
        return f"return {mean}  {line['frames_per_second']:.0f} frames/s"
    return f"loss {line['loss']:.4f}  accuracy {line['accuracy']:.3f}  {line['updates_per_second']:.1f}/s"
