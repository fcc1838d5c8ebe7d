"""Cells of stored records as claims read them: by place, nearest to the paper's settings, with what the rule asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from remanence import experiments
from remanence.claims._rule import Budget, TrainedRun
from remanence.claims._types import StoredRun
from remanence.experiments import StoredCell
from remanence.runs import Settings, Values


class Cells:
    """The cells that are done in all records of the tables and figures with these ids; ValueError if one has none.

    Example:
        >>> Cells("kerg2020/table-5").at(model="RelRNN", length=100)[0].place["model"]
        'RelRNN'
    """

    def __init__(self, *ids: str) -> None:
        self.found = {id: experiments.stored_cells(id) for id in ids}
        missing = [id for id, cells in self.found.items() if not cells]
        if missing:
            raise ValueError(f"nothing of {', '.join(missing)} is stored; `remanence reproduce ID --store` stores it")

    def at(self, having: Callable[[StoredCell], bool] | None = None, **place: Any) -> list[StoredCell]:
        """The cells at some places: of each place those whose settings are nearest to the paper's, one a seed.

        Args:
            having: which of them count; None takes all.
            place: values of axes. What a cell has beside the axes of its table must be named; ``experiment`` may be.

        Raises:
            ValueError: there is none.
        """
        cells = [cell for found in self.found.values() for cell in found if _is_at(cell, place)]
        chosen = experiments.nearest([cell for cell in cells if having is None or having(cell)])
        if not chosen:
            raise ValueError(f"no cell of {', '.join(self.found)} at {place} is stored")
        return chosen

    @property
    def source(self) -> StoredRun:
        """Where the numbers come from, for a verdict."""
        records = [cell.record for cell in self.at()]
        smaller = dict.fromkeys(record.scaled_down for record in records if record.scaled_down)
        commands = dict.fromkeys(f"remanence reproduce {id} --scale paper" for id in self.found)
        return StoredRun(", ".join(self.found), "; ".join(commands), "; ".join(smaller))


def result_of(cell: StoredCell, name: str) -> Values:
    """What a measurement of a cell found; nothing if it was not made."""
    return cell.result(name) or {}


def in_all(runs: Mapping[str, Iterable[StoredCell]]) -> list[StoredCell]:
    """The cells of all groups."""
    return [cell for found in runs.values() for cell in found]


def _is_at(cell: StoredCell, place: Settings) -> bool:
    known = {**cell.place, "experiment": cell.experiment}
    beside = set(cell.place) - set(experiments.find_experiment(cell.experiment).axes) - {"seed"}
    return beside <= set(place) and all(known.get(name) == value for name, value in place.items())


def _model_of(cell: StoredCell) -> str:
    """Its model; where there is none, its place without the seed."""
    if "model" in cell.place:
        return str(cell.place["model"])
    return _without_seed(cell)


def _without_seed(cell: StoredCell) -> str:
    return cell.label.rpartition(" seed=")[0]


def trained(
    cells: Iterable[StoredCell],
    falls_short: Callable[[StoredCell], bool],
    name: Callable[[StoredCell], str] = _model_of,
) -> tuple[TrainedRun, ...]:
    """What the rule asks of cells; all of it is in their records.

    Args:
        cells: that a claim was measured on.
        falls_short: whether one of them did not come to what the paper prints for it.
        name: of its model.
    """
    return tuple(
        TrainedRun(
            model=name(cell),
            budget=cell.spent or 0.0,
            falls_short=falls_short(cell),
            curve=tuple(_rising(cell.curve)),
            departures=cell.departures,
            needs=_needs(cell),
            place=_without_seed(cell),
        )
        for cell in cells
    )


def _needs(cell: StoredCell) -> Budget | None:
    if cell.spent is None:
        return None
    return Budget(cell.paper.budget, cell.paper.unit)


def _rising(curve: Mapping[str, list[float | None]]) -> list[float]:
    """What a run is judged by while it learns, higher being better; what is not known yet is left out."""
    for name, sign in (("mean_return", 1), ("accuracy", 1), ("loss", -1)):
        values = [sign * value for value in curve.get(name, ()) if value is not None]
        if values:
            return values
    return []


def unlike(sides: Mapping[str, Iterable[StoredCell]]) -> str:
    """What was done for one side of a comparison and not for the other, in words; empty if both were trained alike.

    Alike are two sides that both have the paper's settings, or both not.
    """
    apart = {name: [cell.departures for cell in cells] for name, cells in sides.items()}
    printed = [name for name, found in apart.items() if not any(found)]
    others = [name for name in apart if name not in printed]
    if not printed or not others:
        return ""
    return f"{', '.join(printed)} had the paper's settings, {', '.join(others)} had others"
