"""How the demo looks: a live table on a terminal, lines elsewhere, a table at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from remanence.cli._demo_words import SOLVED, Result, percent
from remanence.tasks import Denoise
from remanence.train import Cell

INTRODUCTION = """\
[bold]Who can still recall?[/bold] {task.items} symbols of {task.symbols} kinds stand somewhere among {places} steps; \
the rest is blank. Then all are asked for, in their order. A guess gets {chance}.
An LSTM against cells with a bounded memory (Rel), which keep past states that proved relevant. Training begins with \
short sequences, T = {start}, and goes on to longer ones whenever {share} are recalled: a curriculum, one of our \
training options. A second LSTM trains at T = {task.length} throughout. A run ends at {enough}, or after {updates:,} \
updates of {batch} sequences; seed {seed}.
"""

LEVELS = "▁▂▃▄▅▆▇█"
POINTS = 16


def introduction(console: Console, cells: Sequence[Cell], task: Denoise, seed: int) -> None:
    """Says what is going to happen, and if it has happened already.

    Args:
        console: where to.
        cells: the runs; the first has a curriculum.
        task: what they learn.
        seed: of all of them.
    """
    config = cells[0].run.config
    text = INTRODUCTION.format(
        task=task,
        places=task.length + task.items - 1,
        chance=percent(task.chance.accuracy),
        start=config.curriculum.start,
        share=percent(config.curriculum.accuracy),
        enough=percent(config.budget.accuracy or 1.0),
        updates=config.budget.updates,
        batch=config.task.batch_size,
        seed=seed,
    )
    console.print(text, soft_wrap=not console.is_terminal)
    if all(cell.run.is_done for cell in cells):
        folder = cells[0].run.folder.parent
        console.print(f"These runs are done; remove {folder} to see them learn again.\n", soft_wrap=True)


def race_table(rows: Sequence[dict[str, Any]]) -> Table:
    """The contenders as they stand.

    Args:
        rows: of :func:`remanence.train.summarise`.

    Example:
        >>> race_table([]).row_count
        0
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model", no_wrap=True)
    for heading in ("trains at", "updates", "recalled"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("so far", ""):
        table.add_column(heading, no_wrap=True)
    for row in rows:
        name = f"[bold]{row['model']}[/bold]" if row["status"] == "running" else row["model"]
        table.add_row(name, *_standing(row), sparkline([accuracy for _, accuracy in row["curve"]]), _state(row))
    return table


def _standing(row: dict[str, Any]) -> tuple[str, ...]:
    recalled = percent(row["curve"][-1][1]) if row["curve"] else ""
    return f"T = {row['training_length']}", f"{row['update']:,}", recalled


def _state(row: dict[str, Any]) -> str:
    if row["status"] == "done":
        return "[green]solved[/green]" if (row["accuracy"] or 0) >= SOLVED else "not solved"
    return {"new": "waits", "running": "learns"}.get(row["status"]) or row["status"]


def sparkline(values: Sequence[float]) -> str:
    """Shares as a row of bars; of many, some are left out.

    Example:
        >>> sparkline([0.0, 0.5, 1.0])
        '▁▅█'
    """
    stride = max(1, -(-len(values) // POINTS))
    return "".join(LEVELS[min(int(value * len(LEVELS)), len(LEVELS) - 1)] for value in values[::stride])


def race_line(row: dict[str, Any]) -> str:
    """One contender in one line, where there is no terminal.

    Example:
        >>> row = {"model": "LSTM", "update": 500, "budget": 6000, "training_length": 10, "status": "running"}
        >>> race_line({**row, "curve": [[500, 0.125]]})
        'LSTM: update 500/6000, trains at T = 10, recalls 12.5 %'
    """
    place = f"update {row['update']}/{row['budget']}, trains at T = {row['training_length']}"
    recalls = f", recalls {percent(row['curve'][-1][1])}" if row["curve"] else ""
    return f"{row['model']}: {place}{recalls}" + ("" if row["status"] == "running" else f" ({row['status']})")


def result_table(results: Sequence[Result], near: int, far: int) -> Table:
    """The table that the demo ends with.

    Args:
        results: one a row.
        near: length of the training.
        far: length of the second test.

    Example:
        >>> result_table([], near=100, far=5000).row_count
        0
    """
    title = "recalled on new sequences, and at what cost"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("\nmodel", no_wrap=True)
    shares = (f"recalled\nT = {near:,}", f"untrained\nT = {far:,}")
    for heading in (*shares, "state\nbytes", "\nparameters", "\nupdates", "\nseconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in results:
        counts = (f"{row.state_bytes:,}", f"{row.parameters:,}", f"{row.updates:,}", f"{row.seconds:.0f}")
        table.add_row(row.label, _coloured(row.accuracy), _coloured(row.far_accuracy), *counts)
    return table


def _coloured(share: float) -> str:
    return f"[green]{percent(share)}[/green]" if share >= SOLVED else percent(share)


def where(console: Console, runs: Sequence[Path], page: Path | None) -> None:
    """Names the run folders, what can be done with them, and the page about them.

    Args:
        console: where to.
        runs: one a contender.
        page: the report; None if plotly, which draws it, is missing.
    """
    console.print(f"\nRuns, with curves, settings and weights: {runs[0].parent}. For instance:", soft_wrap=True)
    console.print(f"  remanence evaluate {runs[0]} --length 100,1000", highlight=False, soft_wrap=True)
    console.print(f"  remanence probe {runs[0]}", highlight=False, soft_wrap=True)
    told = f"[bold]Open {page.resolve().as_uri()}[/bold]" if page else "For a page about it: pip install plotly"
    console.print(f"\n{told}", highlight=False, soft_wrap=True)
