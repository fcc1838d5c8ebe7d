"""Several runs as they go: a live table on a terminal, elsewhere a line whenever a run has news, and now and then."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial

import typer
from rich.console import Console, RenderableType
from rich.live import Live

from remanence.runs import Stopped, Values

Rows = list[Values]
Tick = Callable[[Rows], None]
SOONEST = 30.0
LATEST = 600.0
"""Seconds without news before all runs are told of, elsewhere than on a terminal: more of them the longer it lasts."""


@contextlib.contextmanager
def resumable(how_saved: str, more: Callable[[], str] = str) -> Iterator[None]:
    """Says how to go on, and what `more` tells, when a signal stops what is inside; leaves with its exit code."""
    try:
        yield
    except KeyboardInterrupt as stop:
        told = (f"stopped; {how_saved}. The same command resumes them", more())
        typer.echo("\n".join(filter(None, told)), err=True)
        number = signal.SIGINT
        if isinstance(stop, Stopped):
            number = stop.number
        raise typer.Exit(128 + number) from None


@contextlib.contextmanager
def live(
    console: Console,
    draw: Callable[[Rows], RenderableType],
    word: Callable[[Values], str],
    news: tuple[str, ...] = ("run", "status", "best_accuracy"),
    all_words: Callable[[Rows], str] | None = None,
) -> Iterator[Tick]:
    """Gives what is called with the rows of all runs now and then, and shows them.

    Args:
        console: where.
        draw: makes a table of all runs.
        word: makes a line of one run.
        news: first the key that names a run in its row, then those whose values are news when they change.
        all_words: makes lines of all runs, for when there was no news for a while.

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
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    seen: Values = {}
    began = last = time.monotonic()

    def tell(rows: Rows) -> None:
        nonlocal last
        now = time.monotonic()
        for row in rows:
            name, *state = (row[key] for key in news)
            if seen.get(name) != state and row["status"] != "new":
                say(word(row))
                last = now
            seen[name] = state
        if all_words is not None and now - last > min(max(SOONEST, (now - began) / 10), LATEST):
            say(all_words(rows))
            last = now

    yield tell
