"""Runs a selection of cells on an engine, and reports their status now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from remanence.experiments._cell import LOG, TableCell, refresh, unique
from remanence.experiments._cell_state import ERROR, CellState
from remanence.experiments._storage import PAUSE
from remanence.runs import Engine, Values, read_file, run_jobs

Tick = Callable[[list[Values]], None]


@dataclass(frozen=True)
class Failure:
    """A cell that crashed.

    Args:
        label: its place in words.
        traceback: what Python said.
        log: all that it printed.

    Example:
        >>> Failure("model=LSTM seed=0", "ValueError: no", Path("output.txt")).log.name
        'output.txt'
    """

    label: str
    traceback: str
    log: Path


def run_cells(
    cells: Sequence[TableCell], engine: Engine[TableCell], tick: Tick | None = None, pause: float = 0.5
) -> list[Failure]:
    """Runs the cells that are not done; a cell that crashes does not stop the others.

    Args:
        cells: a selection; a run that several of them show is made once.
        engine: what fills them.
        tick: called with the cells now and then, to show their status.
        pause: seconds between two looks.

    Returns:
        Cells that crashed or were killed repeatedly.

    Raises:
        Stopped: by SIGTERM or Ctrl-C; nothing is lost, and the same call resumes.
    """
    distinct = list(unique(cells).values())
    refresh(distinct)
    watched = _Refreshing(distinct)

    def look() -> None:
        watched.look()
        if tick is not None:
            tick([row_of(cell) for cell in cells])

    run_jobs(engine, [cell for cell in distinct if not cell.is_done], look, pause)
    refresh(distinct)
    look()
    return [_failure(cell) for cell in distinct if not cell.is_done]


class _Refreshing:
    """Looks at the storage of cells now and then, where the engine fills them on other machines."""

    def __init__(self, cells: Sequence[TableCell]) -> None:
        self.cells = [cell for cell in cells if cell.storage and not cell.is_done]
        self.last = time.monotonic()

    def look(self) -> None:
        """Fetches what is new, unless it has just been done."""
        if self.cells and time.monotonic() - self.last > PAUSE:
            refresh(self.cells)
            self.last = time.monotonic()


def _failure(cell: TableCell) -> Failure:
    path = cell.folder / ERROR
    state = cell.state
    text = f"its process ended without a message, as when it is killed; saved up to update {state.update}"
    if path.is_file():
        text = read_file(path).decode("utf-8", "replace")
    return Failure(cell.label, text, cell.folder / LOG)


def row_of(cell: TableCell) -> Values:
    """The status of a cell, as a row of a table or for JSON."""
    state = cell.state
    return {
        **cell.place,
        "status": state.status,
        "update": state.update,
        "budget": state.budget,
        "validation": state.validation,
        "seconds": round(state.seconds, 1),
        "seconds_left": seconds_left(state),
        "reason": state.reason,
        "folder": str(cell.folder),
    }


def seconds_left(state: CellState) -> float | None:
    """Seconds to the end of the budget at the pace so far; None before there is one."""
    if state.status in ("done", "failed", "trained", "measuring"):
        return 0.0
    if not state.update or not state.budget or not state.seconds:
        return None
    return round((state.budget - state.update) * state.seconds / state.update, 1)
