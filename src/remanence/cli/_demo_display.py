"""How the demo looks: bars on a terminal, lines elsewhere, a table at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

Show = Callable[[int, Mapping[str, float]], None]


@contextmanager
def progress_display(console: Console, updates: int, report_every: int) -> Iterator[Show]:
    """Gives a function that shows how many updates are done and the accuracy of every model.

    Args:
        console: where; a terminal gets live bars, anything else a line now and then.
        updates: how many there will be.
        report_every: updates between two lines.

    Example:
        >>> with progress_display(Console(), updates=2, report_every=2) as show:
        ...     show(1, {"LSTM": 0.5})
        ...     show(2, {"LSTM": 0.75})
        update 2/2  LSTM 75 %
    """
    if not console.is_terminal:
        yield lambda update, accuracies: _print_line(console, update, updates, report_every, accuracies)
        return
    columns = (
        TextColumn("{task.description:8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[right]}"),
    )
    with Progress(*columns, console=console) as progress:
        bars: dict[str, TaskID] = {}

        def show(update: int, accuracies: Mapping[str, float]) -> None:
            for name, accuracy in accuracies.items():
                if name not in bars:
                    bars[name] = progress.add_task(name, total=updates, right="")
                progress.update(bars[name], completed=update, right=f"{accuracy:4.0%} recalled")

        yield show


def _print_line(console: Console, update: int, updates: int, every: int, accuracies: Mapping[str, float]) -> None:
    if update % every and update != updates:
        return
    shown = "  ".join(f"{name} {100 * accuracy:.0f} %" for name, accuracy in accuracies.items())
    console.print(f"update {update}/{updates}  {shown}", highlight=False, soft_wrap=True)


def result_table(results: Sequence[Any], near: int, far: int) -> Table:
    """The table that the demo ends with.

    Args:
        results: one :class:`remanence.cli.demo.Result` per row.
        near: longest delay of the training.
        far: delay of the second test.

    Example:
        >>> result_table([], near=50, far=500).row_count
        0
    """
    table = Table(title="recalled on new sequences, and at what cost", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("\nmodel")
    headings = (f"delay\n{near}", f"untrained\ndelay {far}", "state\nbytes", "gradient reach\nbefore, after")
    for heading in (*headings, "\nparameters", "\nseconds"):
        table.add_column(heading, justify="right")
    for row in results:
        table.add_row(
            row.name,
            f"{row.accuracy:.1%}",
            f"{row.far_accuracy:.1%}",
            f"{row.state_bytes:,}",
            f"{row.reach_at_start}, {row.reach}",
            f"{row.parameters:,}",
            f"{row.seconds:.0f}",
        )
    return table
