"""Cells as they are filled: a live table, the message when a signal stops them, and what failed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import typer
from rich.console import Console, Group
from rich.text import Text

from remanence._wording import number_of
from remanence.cli._live import Rows, Tick, live, resumable
from remanence.cli._tables import plain_table
from remanence.experiments import Failure, TableCell
from remanence.runs import Values, is_locked

SHOWN = 25
"""Cells that a live table shows: those at work first."""
TOLD = 4
"""Cells at work that get a line of their own now and then, where there is no live table."""
FAILED = 1
AT_WORK = ("running", "measuring")
ORDER = (*AT_WORK, "failed", "killed", "interrupted", "trained", "new", "done")


def leave_if_failed(failures: Sequence[Failure]) -> None:
    """Prints what went wrong, and leaves with an exit code if anything did."""
    for traceback in dict.fromkeys(failure.traceback for failure in failures):  # often all have failed alike
        typer.echo(err=True)
        for failure in failures:
            if failure.traceback == traceback:
                typer.echo(f"{failure.label} failed; its log is {failure.log}", err=True)
        typer.echo(traceback, err=True)
    if failures:
        raise typer.Exit(FAILED)


@contextlib.contextmanager
def watching(names: Sequence[str], cells: Sequence[TableCell], quiet: bool, how_saved: str) -> Iterator[Tick | None]:
    """Shows cells as they go, and leaves with the exit code of the signal that stopped them."""
    display = contextlib.nullcontext()
    if not quiet:
        display = live(Console(), partial(live_table, names), _line, ("folder", "status"), _lines)
    with resumable(how_saved, partial(_left_behind, cells)), display as tick:
        yield tick


def _left_behind(cells: Sequence[TableCell]) -> str:
    """Which cells go on although all of ours have been stopped; empty if none does."""
    left = sum(is_locked(cell.folder) for cell in cells)
    if not left:
        return ""
    listed = "`pgrep -f remanence.experiments.worker` lists them"
    return f"{number_of(left, 'cell')} still running in processes left over from an earlier command; {listed}"


def _line(row: Values) -> str:
    words = [Path(row["folder"]).name, row["status"], _progress(row), _validation(row), row["reason"]]
    return "  ".join(filter(None, words))


def _lines(rows: Rows) -> str:
    """Some cells at work, and all in one sentence."""
    busy = [row for row in rows if row["status"] in AT_WORK]
    return "\n".join((*map(_line, busy[:TOLD]), summary(rows)))


def _progress(row: Values) -> str:
    return f"{row['update']:,}/{row['budget']:,}" if row["budget"] else ""


def _validation(row: Values) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in row["validation"].items() if value is not None)


def live_table(names: Sequence[str], rows: Rows) -> Group:
    """Cells as a table, those at work first, and when all may be done."""
    table = plain_table(*names, "status", "progress", "validation", "left")
    for row in sorted(rows, key=lambda row: ORDER.index(row["status"]))[:SHOWN]:
        left = ""
        if row["seconds_left"]:
            left = _duration(row["seconds_left"])
        place = (str(row[name]) for name in names)
        table.add_row(*place, row["status"], _progress(row) or "-", _validation(row), left)
    return Group(table, Text(summary(rows)))


def summary(rows: Rows) -> str:
    """One line about all cells.

    Example:
        >>> new = {"status": "new", "seconds": 0.0, "seconds_left": None}
        >>> summary([{"status": "running", "seconds": 60.0, "seconds_left": 240.0}, new])
        '0 of 2 cells done, 1 at work; those at work need at most 4 min more, all about 9 min'
    """
    done = sum(row["status"] == "done" for row in rows)
    busy = [row for row in rows if row["status"] in AT_WORK]
    words = f"{done} of {number_of(len(rows), 'cell')} done, {len(busy)} at work"
    left = max((row["seconds_left"] or 0.0 for row in busy), default=0.0)
    if left:
        words += f"; those at work need at most {_duration(left)} more, all about {_duration(_rest(rows, len(busy)))}"
    return words


def _rest(rows: Rows, at_work: int) -> float:
    """Seconds until all cells are done, if so many go on at a time and new ones last as long as the others."""
    lasting = [
        row["seconds"] + row["seconds_left"] for row in rows if row["seconds"] and row["seconds_left"] is not None
    ]
    usual = sum(lasting) / len(lasting)
    left = [usual if row["seconds_left"] is None else row["seconds_left"] for row in rows]
    return max(*left, sum(left) / at_work)


def _duration(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{math.ceil(seconds / 60)} min"
