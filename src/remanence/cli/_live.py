"""Several runs as they go: a live table on a terminal, elsewhere a line whenever a run has news."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console, RenderableType
from rich.live import Live

from remanence.runs import Values

Rows = list[Values]
Tick = Callable[[Rows], None]


@contextlib.contextmanager
def live(
    console: Console,
    draw: Callable[[Rows], RenderableType],
    word: Callable[[Values], str],
    news: tuple[str, ...] = ("run", "status", "best_accuracy"),
) -> Iterator[Tick]:
    """Gives what is called with the rows of all runs now and then, and shows them.

    Args:
        console: where.
        draw: makes a table of all runs.
        word: makes a line of one run.
        news: first the key that names a run in its row, then those whose values are news when they change.

    Example:
        >>> row = {"run": "a", "status": "running", "best_accuracy": 0.5}
        >>> with live(Console(), list, lambda row: f"{row['run']} {row['status']}") as tick:
        ...     tick([row])
        ...     tick([row])
        a running
    """
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4, transient=True) as display:
            yield lambda rows: display.update(draw(rows))
        return
    seen: Values = {}

    def tell(rows: Rows) -> None:
        for row in rows:
            name, *state = (row[key] for key in news)
            if seen.get(name) != state and row["status"] != "new":
                console.print(word(row), markup=False, highlight=False, soft_wrap=True)
            seen[name] = state

    yield tell
