"""Stored runs as tables: printed beside measured, how much of the paper's budget they had, what is not stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from remanence.experiments._cell_state import CellState
from remanence.experiments._departures import paper_at
from remanence.experiments._experiment import Experiment, Key, Place, without_seed
from remanence.experiments._results import Grid, TableNumber, entries, short, so_far
from remanence.experiments._stored import StoredCell, nearest


def runs_by_settings(experiment: Experiment, cells: Iterable[StoredCell]) -> Grid:
    """One row for each place and choice of settings, those with the paper's settings first.

    Example:
        >>> from remanence.experiments import find_experiment, stored_cells
        >>> id = "kerg2020/table-5"
        >>> runs_by_settings(find_experiment(id), stored_cells(id)).head
        ('length', 'model', 'accuracy', 'trained', 'settings')
    """
    groups: dict[Key, list[StoredCell]] = {}
    for cell in sorted(cells, key=lambda cell: (len(cell.departures), not cell.is_as_printed)):
        place = tuple(without_seed(cell.place).values())
        groups.setdefault((cell.departures, cell.is_as_printed, place), []).append(cell)
    readings = list(dict.fromkeys(reading.name for reading in experiment.readings))
    rows = tuple(_row(experiment, readings, group) for group in groups.values())
    return Grid((*experiment.axes, *readings, "trained", "settings"), rows)


def _row(experiment: Experiment, readings: Sequence[str], group: Sequence[StoredCell]) -> tuple[str, ...]:
    axes = [str(group[0].place.get(name, "")) for name in experiment.axes]
    found = {entry.reading: entry for entry in entries(experiment, group)}
    numbers = [_number(found.get(name)) for name in readings]
    return (*axes, *numbers, _trained(group), _settings(group[0]))


def _number(entry: TableNumber | None) -> str:
    """Values by seed, and what is printed."""
    if entry is None:
        return ""
    values = "; ".join(map(short, entry.values.values()))
    if not entry.is_printed:
        return values
    return f"{values or '-'} [{entry.printed_words}]"


def _trained(group: Sequence[StoredCell]) -> str:
    """How much of the paper's budget each run took, in the order of the seeds."""
    if any(cell.spent is None for cell in group):
        return ""
    paper = group[0].paper
    amounts = [cell.spent for cell in group]
    if paper.unit == "updates":
        amounts = [cell.state.update or cell.spent for cell in group]
    taken = dict.fromkeys(f"{amount:,.0f}" for amount in amounts)
    return f"{'; '.join(taken)} of {paper.budget:,.0f} {paper.unit}"


def _settings(cell: StoredCell) -> str:
    if cell.departures:
        return ", ".join(cell.departures)
    if cell.is_as_printed:
        return "the paper's"
    return "the paper's, less budget"


@dataclass(frozen=True)
class Absent:
    """A cell of the paper of which nothing is stored.

    Example:
        >>> Absent({"model": "LSTM", "seed": 0}).state.status
        'new'
    """

    place: Place

    @property
    def state(self) -> CellState:
        """It was never begun."""
        return CellState("new")

    def result(self, name: str) -> None:
        """Nothing was measured."""
        return

    def learning_curve(self, source: str, name: str) -> Sequence[float | None]:
        """Nothing was learnt."""
        return []


@dataclass(frozen=True)
class Coverage:
    """What stored runs have of a table or figure.

    Args:
        as_printed: for each cell of the paper the runs with its settings and budget, or what says that there is none.
        nearest: where there is none, the runs that depart least.
        absent: cells of the paper of which nothing that is done is stored.
    """

    as_printed: tuple[StoredCell | Absent, ...]
    nearest: tuple[StoredCell, ...]
    absent: tuple[Absent, ...]


def coverage(experiment: Experiment, cells: Iterable[StoredCell]) -> Coverage:
    """Sorts stored runs by how they stand to the cells of the paper."""
    done = [cell for cell in cells if cell.state.is_done and set(cell.place) <= {*experiment.axes, "seed"}]
    near: dict[Key, list[StoredCell]] = {}
    for cell in nearest(done):
        near.setdefault(_axes(experiment, cell.place), []).append(cell)
    as_printed: list[StoredCell | Absent] = []
    others: list[StoredCell] = []
    absent: list[Absent] = []
    for place in experiment.places("paper", [0]):
        found = near.pop(_axes(experiment, place), [])
        as_printed += [cell for cell in found if cell.is_as_printed] or [Absent(place)]
        others += [cell for cell in found if not cell.is_as_printed]
        if not found:
            absent.append(Absent(place))
    beyond = [cell for group in near.values() for cell in group]
    return Coverage(tuple(as_printed), (*others, *beyond), tuple(absent))


def not_stored(experiment: Experiment, found: Coverage, cells: Iterable[StoredCell]) -> Grid:
    """Cells of the paper of which nothing is stored, with what is known: one row for what is the same."""
    first, *others = experiment.axes
    begun = {_axes(experiment, cell.place): cell for cell in cells if not cell.state.is_done}
    rows: dict[str, dict[str, list[str]]] = {}
    for cell in found.absent:
        why = _why(experiment, cell, begun.get(_axes(experiment, cell.place)))
        where = " ".join(str(cell.place[name]) for name in others)
        rows.setdefault(str(cell.place[first]), {}).setdefault(why, []).append(where)
    # Rows of the table that lack the same for the same reasons are told together.
    alike: dict[tuple[str, str], list[str]] = {}
    for row, reasons in rows.items():
        for why, where in reasons.items():
            alike.setdefault((", ".join(where), why), []).append(row)
    laid = tuple((", ".join(names), where, why) for (where, why), names in alike.items())
    return Grid((first, " ".join(others) or "-", "why"), laid)


def _why(experiment: Experiment, cell: Absent, begun: StoredCell | None) -> str:
    if begun is not None:
        return so_far(begun, experiment.readings_at(begun.place)[0])
    paper = paper_at(experiment, cell.place)
    if not paper.unit:
        return "not run"
    return f"not run; it takes {paper.budget:,.0f} {paper.unit}"


def _axes(experiment: Experiment, place: Place) -> Key:
    return tuple(place[name] for name in experiment.axes)
