"""Cells as they are filled: a live table, the message when a signal stops them, and what failed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import typer
from rich.console import Console, Group
from rich.text import Text

from remanence.cli._live import Rows, Tick, live
from remanence.cli._tables import plain_table
from remanence.experiments import Failure
from remanence.runs import Stopped, Values

SHOWN = 25
"""Cells that a live table shows: those at work first."""
FAILED = 1
ORDER = {"running": 0, "failed": 1, "killed": 2, "interrupted": 3, "trained": 4, "new": 5, "done": 6}


def leave_if_failed(failures: Sequence[Failure]) -> None:
    """Prints what went wrong, and leaves with an exit code if anything did."""
    for failure in failures:
        typer.echo(f"\n{failure.label} failed; its log is {failure.log}\n{failure.traceback}", err=True)
    if failures:
        raise typer.Exit(FAILED)


@contextlib.contextmanager
def watching(names: Sequence[str], quiet: bool, how_saved: str) -> Iterator[Tick | None]:
    """Shows cells as they go, and leaves with the exit code of the signal that stopped them."""
    draw = partial(live_table, names)
    shown = live(Console(), draw, _line, news=("folder", "status"))
    try:
        with contextlib.nullcontext() if quiet else shown as tick:
            yield tick
    except Stopped as stop:
        typer.echo(f"stopped; {how_saved}. The same command resumes them", err=True)
        raise typer.Exit(128 + stop.number) from None


def _line(row: Values) -> str:
    return f"{Path(row['folder']).name}  {row['status']}  update {row['update']}  {row['reason']}".rstrip()


def live_table(names: Sequence[str], rows: Rows) -> Group:
    """Cells as a table, those at work first, and when all may be done."""
    table = plain_table(*names, "status", "progress", "validation", "left")
    for row in sorted(rows, key=lambda row: ORDER.get(row["status"], 0))[:SHOWN]:
        found = "  ".join(f"{name} {value:.4g}" for name, value in row["validation"].items() if value is not None)
        progress = "-"
        if row["budget"]:
            progress = f"{row['update']:,}/{row['budget']:,}"
        left = ""
        if row["seconds_left"]:
            left = _duration(row["seconds_left"])
        table.add_row(*(str(row[name]) for name in names), row["status"], progress, found, left)
    return Group(table, Text(summary(rows)))


def summary(rows: Rows) -> str:
    """One line about all cells.

    Example:
        >>> summary([{"status": "done", "seconds_left": 0.0}, {"status": "running", "seconds_left": 60.0}])
        '1 of 2 cells done, 1 running; those at work need at most 1 min more'
    """
    done, running = (sum(row["status"] == status for row in rows) for status in ("done", "running"))
    left = [row["seconds_left"] for row in rows if row["status"] == "running" and row["seconds_left"]]
    words = f"{done} of {len(rows)} cells done, {running} running"
    if left:
        words += f"; those at work need at most {_duration(max(left))} more"
    return words


def _duration(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min"
