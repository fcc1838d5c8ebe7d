"""Stored results: a reduction of cells, with settings, code, machine and results.

A record lies where the user says. Version 1 has the keys of :func:`load_stored` and, under ``results``, the ``cells``:
place, work (all settings), state, facts of the run and of each measurement, what was measured, and the learning curve.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from remanence.experiments._cell import TableCell
from remanence.experiments._cell_state import read_kept, run_of
from remanence.experiments._experiment import Experiment
from remanence.experiments._facts import differences, machine_facts
from remanence.experiments._results import entries
from remanence.runs import Result, Run, Values, read_json, replace_file, sealed
from remanence.train import RunConfig

POINTS = 200
"""Of a learning curve."""


@dataclass(frozen=True)
class Record(Result):
    """A stored result.

    Args:
        experiment: id of the table or figure.
        scale: at which it was run.
        what: it shows.
        command: that runs it again.
        scaled_down: what is smaller than in the document; empty if nothing is.
        departures: the same, one by one.
        machine: where the record was made.
        facts: about code and machine.
        results: ``cells`` and ``table``.

    Example:
        >>> Record("kerg2020/table-2", "smoke", "", "", "", (), "", {}, {}).labels
        []
    """

    kind: ClassVar[str] = "reproduction"

    experiment: str
    scale: str
    what: str
    command: str
    scaled_down: str
    departures: tuple[str, ...]
    machine: str
    facts: Values
    results: Values

    @property
    def labels(self) -> list[str]:
        """What was different where it was made, in words: another version of the package, another machine."""
        return differences(self.facts)


def make_record(experiment: Experiment, scale: str, cells: Sequence[TableCell]) -> Record:
    """Reduces cells, finished or not, to what is kept of them; of those that were never begun nothing is."""
    begun = [cell for cell in cells if cell.state.status != "new"]
    departures = [departure.words for departure in experiment.scale(scale).departures]
    facts = machine_facts()
    results = {
        "cells": [_cell(cell) for cell in begun],
        "table": [entry.to_dict() for entry in entries(experiment, begun)],
    }
    return Record(
        experiment=experiment.id,
        scale=scale,
        what=experiment.title,
        command=f"remanence reproduce {experiment.id} --scale {scale}",
        scaled_down="; ".join(departures),
        departures=tuple(departures),
        machine=f"{facts['machine']} {facts['instruction_set']}".strip(),
        facts=facts,
        results=results,
    )


def _cell(cell: TableCell) -> Values:
    state = cell.state
    kept = {measure.name: read_kept(cell.folder, measure) for measure in cell.work.measures}
    return {
        "place": dict(cell.place),
        "work": cell.work.to_dict(),
        "status": state.status,
        "updates": state.update,
        "budget": state.budget,
        "seconds": round(state.seconds, 1),
        "reason": state.reason,
        "validation": state.validation,
        "made_by": _run_facts(cell),
        "measures": {
            name: {"facts": found.facts, "values": found.values} for name, found in kept.items() if found is not None
        },
        "curve": learning_curve(cell),
    }


def _run_facts(cell: TableCell) -> Values:
    """Where and by which code the run was made."""
    manifest = Run(run_of(cell.folder)).manifest
    named = ("remanence", "git", "torch", "backend", "instruction_set", "machine", "threads", "kernel")
    return {name: manifest[name] for name in named if name in manifest}


def learning_curve(cell: TableCell) -> dict[str, list[float | None]]:
    """Validations of a run, or returns of a policy, thinned out evenly with the last one always there."""
    lines = cell.history.training
    columns = ("frames", "mean_return")
    if isinstance(cell.work.config, RunConfig):
        lines = cell.history.validation
        columns = ("accuracy", "loss")
    if not lines:
        return {}
    stride = -(-len(lines) // POINTS)
    kept = lines[::-stride][::-1]
    curve = {name: [_rounded(line.get(name)) for line in kept] for name in columns}
    if isinstance(cell.work.config, RunConfig):
        return {"updates": [line.update for line in kept], **curve}
    return curve


def _rounded(value: float | None) -> float | None:
    if isinstance(value, float):
        return round(value, 6)
    return value


def save_record(record: Record, path: str | Path) -> Path:
    """Writes a record where the user says, whole or not at all, in the same bytes for the same record.

    Args:
        record: of :func:`make_record`.
        path: a JSON file, or a folder, which gets a file named after experiment and scale.
    """
    place = record_path(record, path)
    place.parent.mkdir(parents=True, exist_ok=True)
    ordered = json.loads(json.dumps(record.to_dict(), sort_keys=True, allow_nan=False))
    replace_file(place, f"{sealed(ordered)}\n".encode())
    return place


def record_path(record: Record, path: str | Path) -> Path:
    """The file of a record: the path itself, or in a folder one that is named after experiment and scale."""
    place = Path(path)
    if place.suffix == ".json":
        return place
    return place / f"{record.experiment.replace('/', '_')}_{record.scale}.json"


def load_record(path: str | Path) -> Record:
    """Reads a record.

    Raises:
        DamagedFileError: it cannot be read, holds no JSON object, or has another checksum.
        ResultError: it is no record, or of a later version.
    """
    return Record.from_dict(read_json(Path(path)))
