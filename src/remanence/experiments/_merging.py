"""One record out of two: what was stored before stays, where nothing better has come."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from remanence.experiments._plan import find_experiment
from remanence.experiments._record import Record, load_record, record_path, save_record
from remanence.experiments._results import entries
from remanence.experiments._stored import StoredCell, cells_in


def store_record(record: Record, path: str | Path) -> Path:
    """Writes a record where the user says, together with the cells that the file there has already.

    So a table can be filled bit by bit: some cells today, others on another machine.

    Args:
        record: of :func:`make_record`.
        path: a JSON file, or a folder, which gets a file named after experiment and scale.

    Raises:
        ResultError: the file there is no record, or of a later version.
    """
    place = record_path(record, path)
    if place.exists():
        record = merge_records(load_record(place), record)
    return save_record(record, place)


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
    values = sorted((cell.values for cell in chosen.values()), key=_order(new.experiment))
    made = replace(new, results={"cells": values, "table": []})
    table = [entry.to_dict() for entry in entries(find_experiment(new.experiment), cells_in(made))]
    return replace(made, results={**made.results, "table": table})


def _place(cell: StoredCell) -> str:
    return json.dumps(cell.values["place"], sort_keys=True)


def _rank(cell: StoredCell) -> tuple[bool, int, bool, int, int]:
    """Whether it is done, how near settings and budget are to the document's, and how far it has come."""
    done, updates, measures = cell.state.is_done, cell.values["updates"], len(cell.values["measures"])
    return done, -len(cell.departures), cell.is_as_printed, updates, measures


def _order(id: str) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Cells in the order of the table's axes, then by seed."""
    axes = find_experiment(id).axes

    def key(cell: Mapping[str, Any]) -> tuple[Any, ...]:
        place = cell["place"]
        known = [(_index(values, place.get(name)), str(place.get(name))) for name, values in axes.items()]
        return (*known, place["seed"])

    return key


def _index(values: tuple[Any, ...], value: Any) -> int:
    return values.index(value) if value in values else len(values)
