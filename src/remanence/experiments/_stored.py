"""Records by table or figure: their cells, how these depart from the paper, and one record made out of two."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from remanence._validate import message, one_of
from remanence.experiments._cell_state import CellState
from remanence.experiments._departures import PaperWork, departures_of, paper_at
from remanence.experiments._experiment import Axes, Experiment, Key, Place, without_seed
from remanence.experiments._plan import find_experiment, list_experiments
from remanence.experiments._record import Record, load_record, record_path, save_record
from remanence.experiments._results import entries
from remanence.runs import ResultError, Settings, Values, locked_file

FOLDER = Path(__file__).parent / "stored"
PATIENCE = 60.0
"""Seconds to wait for another process that writes into the same record: merging takes one or two."""


@dataclass(frozen=True)
class StoredCell:
    """One cell of a record; what a table or a claim asks of a cell, it can be asked too.

    Args:
        record: that keeps it.
        values: of the cell, as the record has them.

    Example:
        >>> cell = stored_cells("kerg2020/table-5")[0]
        >>> cell.state.status, cell.place["length"]
        ('done', 100)
    """

    record: Record
    values: Settings

    @property
    def experiment(self) -> str:
        """Id of the table or figure."""
        return self.record.experiment

    # Tables take any `Filled`, whose place is a property; what is cached is therefore behind one.
    @property
    def place(self) -> Place:
        """Where it stands: values of the axes, other settings that the record names, and the seed."""
        return self._place

    @cached_property
    def _place(self) -> Place:
        # A record's keys are sorted; tables and labels want the axes in the order of the declaration, the seed last.
        own = dict(self.values["place"])
        seed = own.pop("seed")
        axes = [name for name in find_experiment(self.experiment).axes if name in own]
        return {**{name: own[name] for name in axes}, **own, "seed": seed}

    @property
    def label(self) -> str:
        """Its place in words."""
        return " ".join(f"{name}={value}" for name, value in self.place.items())

    @property
    def curve(self) -> Mapping[str, list[float | None]]:
        """Validations of the run, or returns of the policy."""
        return self.values["curve"]

    def learning_curve(self, source: str, name: str) -> Sequence[float | None]:
        """One column of its learning curve; a record keeps a policy's training and the validations of other runs."""
        is_policy = "frames" in self.curve
        if is_policy != (source == "train"):
            return []
        if name == "update":
            name = "updates"
        return self.curve.get(name, [])

    @property
    def state(self) -> CellState:
        """Where it stood when the record was made."""
        values = self.values
        return CellState(
            values["status"],
            values["updates"],
            values["budget"],
            values["validation"],
            values["seconds"],
            values["reason"],
        )

    def result(self, name: str) -> Values | None:
        """What a measurement found, None if it was not made."""
        return self.values["measures"].get(name, {}).get("values")

    @cached_property
    def paper(self) -> PaperWork:
        """What the paper does at this place."""
        return _paper(self.experiment, tuple(without_seed(self.place).items()))

    @cached_property
    def departures(self) -> tuple[str, ...]:
        """Its settings that are not the paper's, in words; empty if all are."""
        return departures_of(self.values["work"], self.paper)

    @cached_property
    def is_as_printed(self) -> bool:
        """Whether settings and budget are the paper's."""
        return not self.departures and self.paper.has_budget(self.values["work"]["config"])

    @cached_property
    def spent(self) -> float | None:
        """How much of the paper's budget it had: all of it if the paper's own rule ended it; None if nothing tells."""
        return self.paper.spent(self.values)


@cache
def _paper(experiment: str, place: tuple[tuple[str, Any], ...]) -> PaperWork:
    """Kept, as it takes milliseconds and all seeds share it."""
    return paper_at(find_experiment(experiment), dict(place))


def stored_cells(experiment: str, folder: Path = FOLDER) -> list[StoredCell]:
    """The cells that are done in all stored records of a table or figure, whatever their settings.

    Example:
        >>> {cell.experiment for cell in stored_cells("kerg2020/table-2")}
        {'kerg2020/table-2'}
    """
    return [cell for record in records_of(experiment, folder) for cell in cells_in(record) if cell.state.is_done]


def cells_in(record: Record) -> list[StoredCell]:
    """All cells of a record, done or not."""
    return [StoredCell(record, values) for values in record.results["cells"]]


def nearest(cells: list[StoredCell]) -> list[StoredCell]:
    """Of each place, the cells that depart least from the paper: those with its own settings and budget, if any.

    Of equally many departures, those with more seeds count.

    Example:
        >>> len(nearest(stored_cells("kerg2020/table-5"))) < len(stored_cells("kerg2020/table-5"))
        True
    """
    places: dict[Key, dict[Key, list[StoredCell]]] = {}
    for cell in cells:
        place = (cell.experiment, *without_seed(cell.place).items())
        places.setdefault(place, {}).setdefault((cell.departures, cell.is_as_printed), []).append(cell)
    chosen = (min(groups.values(), key=_distance) for groups in places.values())
    return [cell for group in chosen for cell in group]


def _distance(group: list[StoredCell]) -> tuple[int, bool, int]:
    return len(group[0].departures), not group[0].is_as_printed, -len(group)


def records_of(experiment: str, folder: Path = FOLDER) -> list[Record]:
    """All stored records of a table or figure, and of the tables whose cells it shows.

    Example:
        >>> {record.experiment for record in records_of("kerg2020/figure-4")}
        {'kerg2020/figure-4'}
    """
    # The time of the change is part of the key: a file that was stored again is read again.
    found = find_experiment(experiment)
    own = sorted(folder.glob(f"{experiment.replace('/', '_')}_*.json"))
    return [*(_read(path, path.stat().st_mtime_ns) for path in own), *_shown(found, folder)]


@cache
def _read(path: Path, changed: int) -> Record:
    """Read once as long as its file stays as it is."""
    return load_record(path)


def _shown(experiment: Experiment, folder: Path) -> Iterator[Record]:
    """Records of other tables, with the cells that stand at places of the figure."""
    for table, added in experiment.shows_cells_of.items():
        for record in records_of(table, folder):
            placed = [{**cell, "place": {**cell["place"], **added}} for cell in record.results["cells"]]
            cells = [cell for cell in placed if experiment.has_place(cell["place"])]
            if cells:
                yield replace(record, experiment=experiment.id, what=experiment.title, results={"cells": cells})


def stored_names(folder: Path = FOLDER) -> list[str]:
    """Names of the stored records, in order.

    Example:
        >>> isinstance(stored_names(), list)
        True
    """
    return sorted(path.stem for path in folder.glob("*.json"))


def stored_records(folder: Path = FOLDER) -> dict[str, list[str]]:
    """Scales of the stored records of each table or figure, its own and those whose cells it shows, by its id.

    Example:
        >>> "paper" in stored_records()["kerg2020/table-5"]
        True
    """
    found: dict[str, list[str]] = {}
    for name in stored_names(folder):
        record = load_stored(name, folder)
        found.setdefault(record["experiment"], []).append(record["scale"])
    for figure in list_experiments():
        scales = {scale for table in figure.shows_cells_of for scale in found.get(table, ())}
        if scales:
            found[figure.id] = sorted({*found.get(figure.id, ()), *scales})
    return found


def load_stored(name: str, folder: Path = FOLDER) -> Values:
    """Reads one of :func:`stored_names` as plain values; :func:`stored_cells` reads what they hold.

    Example:
        >>> load_stored("nothing")
        Traceback (most recent call last):
            ...
        ValueError: `name` must be ...
    """
    one_of("name", name, stored_names(folder))
    values = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    if "experiment" not in values:
        raise ValueError(message("name", "be a record of `remanence reproduce`", repr(name), "It has no `experiment`"))
    return values


def store_record(record: Record, path: str | Path) -> Path:
    """Writes a record where the user says, together with the cells that the file there has already.

    So a table can be filled bit by bit: some cells today, others on another machine. Processes that store into one file
    at once do so one after the other, and the cells of all are kept. Without any cell no file is made.

    Args:
        record: of :func:`make_record`.
        path: a JSON file, or a folder, which gets a file named after experiment and scale.

    Raises:
        DamagedFileError: the file there cannot be read, or was changed since it was written.
        ResultError: the file there is no record, or of a later version.
        RunLockedError: another process has been writing there for a minute.
        ValueError: it is a record of something else, or its cells are none of this table.
    """
    place = record_path(record, path)
    place.parent.mkdir(parents=True, exist_ok=True)
    with locked_file(place, PATIENCE):
        merged = _with_stored(record, place)
        if merged.results["cells"]:
            save_record(merged, place)
        return place


def _with_stored(record: Record, place: Path) -> Record:
    """A record together with the cells of the file there, if there is one."""
    if not os.path.lexists(place):
        return record
    before = load_record(place)
    try:
        return merge_records(before, record)
    except (KeyError, TypeError, AttributeError) as error:  # its cells are whatever the file says
        raise ResultError(f"the cells in {place} do not fit together ({error!r}); name another file") from error


def merge_records(stored: Record, new: Record) -> Record:
    """The cells of both: at each place one that is done; of several the one nearest to the document's settings.

    Of equally near ones the one that has come farther is taken, and the new one if they are alike.

    Args:
        stored: from before.
        new: of the same table and scale; what is said about code and machine as a whole is taken from it.

    Raises:
        ValueError: they are records of different things.

    Example:
        >>> from remanence.experiments import records_of
        >>> record = records_of("kerg2020/table-5")[-1]
        >>> merge_records(record, record).results["cells"] == record.results["cells"]
        True
    """
    if (stored.experiment, stored.scale) != (new.experiment, new.scale):
        here = f"{stored.experiment} at scale {stored.scale}"
        raise ValueError(f"the file holds {here}, and not {new.experiment} at scale {new.scale}: name another file")
    chosen = {_place(cell): cell for cell in cells_in(stored)}
    for cell in cells_in(new):
        before = chosen.get(_place(cell))
        if before is None or _rank(cell) >= _rank(before):
            chosen[_place(cell)] = cell
    experiment = find_experiment(new.experiment)
    cells = sorted((cell.values for cell in chosen.values()), key=partial(_order, experiment.axes))
    # The table is made of cells that know their record, so the record comes first and its table after.
    made = replace(new, results={"cells": cells, "table": []})
    table = [entry.to_dict() for entry in entries(experiment, cells_in(made))]
    return replace(made, results={**made.results, "table": table})


def _place(cell: StoredCell) -> str:
    return json.dumps(cell.values["place"], sort_keys=True)


def _rank(cell: StoredCell) -> tuple[bool, int, bool, int, int]:
    """Whether it is done, how near settings and budget are to the document's, and how far it has come."""
    state = cell.state
    return state.is_done, -len(cell.departures), cell.is_as_printed, state.update, len(cell.values["measures"])


def _order(axes: Axes, cell: Settings) -> Key:
    """By the table's axes, then by seed; values that the table does not have come last."""
    place = cell["place"]
    order: list[tuple[int, str]] = []
    for name, values in axes.items():
        value = place.get(name)
        order.append(((*values, value).index(value), str(value)))
    return (*order, place["seed"])
