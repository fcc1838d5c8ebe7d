"""How the demo looks and what it says: tables, lines where there is no terminal, and no more than the numbers say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from remanence.runs import Values
from remanence.tasks import Denoise
from remanence.train import ComparedRun

SOLVED = 0.99
FAR_FROM_SOLVED = 0.5

CAVEAT = (
    "One seed of one small task: a demonstration, not a benchmark; docs/results-training.md has several seeds, larger "
    "budgets and another task."
)

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


def introduction(console: Console, cells: Sequence[ComparedRun], task: Denoise, seed: int) -> None:
    """Says what is going to happen, and if it has happened already."""
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


def race_table(rows: Sequence[Values]) -> Table:
    """The contenders as they stand."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model", no_wrap=True)
    for heading in ("trains at", "updates", "recalled"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("so far", ""):
        table.add_column(heading, no_wrap=True)
    for row in rows:
        name = row["model"]
        if row["status"] == "running":
            name = f"[bold]{name}[/bold]"
        table.add_row(name, *_standing(row), sparkline([accuracy for _, accuracy in row["curve"]]), _state(row))
    return table


def _standing(row: Values) -> tuple[str, ...]:
    recalled = [percent(accuracy) for _, accuracy in row["curve"][-1:]]
    return f"T = {row['training_length']}", f"{row['update']:,}", "".join(recalled)


def _state(row: Values) -> str:
    if row["status"] != "done":
        return {"new": "waits", "running": "learns"}.get(row["status"]) or row["status"]
    if (row["accuracy"] or 0) >= SOLVED:
        return "[green]solved[/green]"
    return "not solved"


def sparkline(values: Sequence[float]) -> str:
    """Shares as a row of bars; of many, some are left out.

    Example:
        >>> sparkline([0.0, 0.5, 1.0])
        '▁▅█'
    """
    stride = max(1, -(-len(values) // POINTS))
    return "".join(LEVELS[min(int(value * len(LEVELS)), len(LEVELS) - 1)] for value in values[::stride])


def race_line(row: Values) -> str:
    """One contender in one line, where there is no terminal.

    Example:
        >>> row = {"model": "LSTM", "update": 500, "budget": 6000, "training_length": 10, "status": "running"}
        >>> race_line({**row, "curve": [[500, 0.125]]})
        'LSTM: update 500/6000, trains at T = 10, recalls 12.5 %'
    """
    line = f"{row['model']}: update {row['update']}/{row['budget']}, trains at T = {row['training_length']}"
    for _, accuracy in row["curve"][-1:]:
        line += f", recalls {percent(accuracy)}"
    if row["status"] != "running":
        line += f" ({row['status']})"
    return line


def result_table(results: Sequence[DemoResult], near: int, far: int) -> Table:
    """The table that the demo ends with."""
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
    if share < SOLVED:
        return percent(share)
    return f"[green]{percent(share)}[/green]"


def where(console: Console, runs: Sequence[Path], page: Path | None) -> None:
    """Names the run folders, what can be done with them, and the page about them."""
    console.print(f"\nRuns, with curves, settings and weights: {runs[0].parent}. For instance:", soft_wrap=True)
    console.print(f"  remanence evaluate {runs[0]} --length 100,1000", highlight=False, soft_wrap=True)
    console.print(f"  remanence probe {runs[0]}", highlight=False, soft_wrap=True)
    told = "For a page about it: pip install plotly"
    if page is not None:
        told = f"[bold]Open {page.resolve().as_uri()}[/bold]"
    console.print(f"\n{told}", highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class DemoResult:
    """One contender at the end: what it recalls at the length of its training and far beyond, and what it cost.

    Example:
        >>> DemoResult("RelRNN", Path("runs/a"), True, 0.995, 0.99, 3000, 60.0, 16000, 1000).solved
        True
    """

    label: str
    run: Path
    has_memory: bool
    accuracy: float
    far_accuracy: float
    updates: int
    seconds: float
    state_bytes: int
    parameters: int

    @property
    def solved(self) -> bool:
        """Whether it recalls 99 % at the length of the training."""
        return self.accuracy >= SOLVED


def percent(share: float) -> str:
    """A share in per cent.

    Example:
        >>> percent(0.125), percent(0.9)
        ('12.5 %', '90 %')
    """
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def conclusion(results: Sequence[DemoResult], length: int, far: int, chance: float) -> str:
    """The demo in plain words, a line each contender.

    Example:
        >>> rows = [DemoResult("RelRNN", Path("a"), True, 1.0, 0.98, 3000, 90.0, 1, 1)]
        >>> print(conclusion(rows, 100, 5000, 0.125).splitlines()[0])
        RelRNN solved it: 100 % of the symbols at T = 100, after 3,000 updates in 1.5 minutes. At T = 5,000, ...
    """
    lines = [_sentence(result, length, far, chance) for result in results]
    return "\n".join([*lines, _verdict(results), CAVEAT])


def _sentence(result: DemoResult, length: int, far: int, chance: float) -> str:
    share = percent(result.accuracy)
    effort = f"{result.updates:,} updates in {result.seconds / 60:.1f} minutes"
    if not result.solved:
        return f"{result.label} did not: {share} at T = {length:,} after {effort}; a guess gets {percent(chance)}."
    beyond = f"At T = {far:,}, for which it was never trained, it recalls {percent(result.far_accuracy)}."
    return f"{result.label} solved it: {share} of the symbols at T = {length:,}, after {effort}. {beyond}"


def _verdict(results: Sequence[DemoResult]) -> str:
    """Says whether the memory made a difference here: only if all that solved it have one and the others are far."""
    with_memory = [result for result in results if result.has_memory and result.solved]
    without = [result for result in results if not result.has_memory]
    if not with_memory:
        return "No model with a memory reached 99 % in time: with this seed the demonstration did not succeed."
    if any(result.solved for result in without):
        return "A model without a memory reached 99 % as well: with this seed the two kinds do not differ."
    best = max((result.accuracy for result in without), default=0.0)
    if best >= FAR_FROM_SOLVED:
        return f"Only models with a memory reached 99 %, but one without reached {percent(best)} and may follow."
    return "Within these updates only models with a memory learnt the task."
