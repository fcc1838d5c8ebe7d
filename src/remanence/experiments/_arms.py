"""What all experiments that train share: an arm is one model on one task from several seeds, in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from remanence.train import Cell, Run, carry_out, list_runs


class Trained(Protocol):
    """An arm, for all that is common to them."""

    @property
    def name(self) -> str:
        """Also the folder of its runs."""
        ...

    def cells(self, folder: str | Path) -> list[Cell]:
        """Its runs, made or found again below a folder."""
        ...


Arm = TypeVar("Arm", bound=Trained)


def run_arms(folder: str | Path, arms: Sequence[Trained]) -> None:
    """Trains what is not trained yet, the first seed of everything first; stopped, the same call goes on.

    Args:
        folder: where the runs go, one folder an arm.
        arms: which ones.

    Example:
        >>> run_arms("nowhere", arms=())
    """
    cells = [cell for arm in arms for cell in arm.cells(folder)]
    carry_out(sorted(cells, key=lambda cell: cell.seed), 1)


def ended_runs(
    folder: str | Path, arms: Sequence[Arm], statuses: tuple[str, ...] = ("done",)
) -> Iterator[tuple[Arm, Run]]:
    """All runs that have ended, with their arms.

    Args:
        folder: that :func:`run_arms`, or the commands of the arms, left.
        arms: which ones.
        statuses: how they ended.

    Example:
        >>> list(ended_runs("nowhere", arms=()))
        []
    """
    for arm in arms:
        for run in list_runs(Path(folder) / arm.name):
            if run.status["status"] in statuses:
                yield arm, run


def untrained(arms: Sequence[Trained], runs: Sequence[dict[str, Any]]) -> str:
    """Names the arms of which there is no run, to be added to what is scaled down.

    Args:
        arms: all of them.
        runs: with the name of their ``arm``.

    Example:
        >>> untrained((), runs=[{"arm": "copy-LSTM-fixed"}])
        ''
    """
    missing = [arm.name for arm in arms if arm.name not in {run["arm"] for run in runs}]
    return f"; not trained yet: {', '.join(missing)}" if missing else ""
