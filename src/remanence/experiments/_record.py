"""Stored results: a reduction of cells, with settings, code, machine and what came out.

A record lies where the user says. Version 1 has the keys of :func:`load_stored` and, under ``results``, the ``cells``:
place, work (all settings), state, facts of the run and of each measurement, what was measured, and the learning curve.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remanence._validate import message
from remanence.experiments._cell import Cell, read_result, run_of
from remanence.experiments._experiment import Experiment
from remanence.experiments._facts import differences, machine_facts
from remanence.experiments._results import entries
from remanence.train import MetricsFile, Run, RunConfig

KIND = "remanence/experiment"
VERSION = 1
POINTS = 200
"""Of a learning curve."""


@dataclass(frozen=True)
class Record:
    """A stored result.

    Args:
        values: as :func:`make_record` gives them.

    Example:
        >>> Record({"kind": KIND, "version": VERSION, "experiment": "kerg2020/table-2"}).experiment
        'kerg2020/table-2'
    """

    values: dict[str, Any]

    @property
    def experiment(self) -> str:
        """Id of the table or figure."""
        return self.values["experiment"]

    @property
    def labels(self) -> list[str]:
        """What was different where it was made, in words: another version of the package, another machine."""
        return differences(self.values.get("facts", {}))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return self.values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Record:
        """Reads a record of this version or an older one.

        Args:
            values: of :meth:`to_dict`.

        Raises:
            ValueError: it is no record, or of a later version.
        """
        if values.get("kind") != KIND:
            raise ValueError(message("record", f"have the kind {KIND!r}", repr(values.get("kind"))))
        if values["version"] > VERSION:
            expected = f"be of version {VERSION} or older"
            raise ValueError(message("record", expected, f"version {values['version']}", "Upgrade remanence"))
        return cls(values)


def make_record(experiment: Experiment, scale: str, cells: Sequence[Cell]) -> Record:
    """Reduces cells, finished or not, to what is kept of them.

    Args:
        experiment: the table or figure.
        scale: at which its cells were run.
        cells: some of them.
    """
    departures = [departure.words for departure in experiment.scale(scale).departures]
    facts = machine_facts()
    results = {
        "cells": [_cell(cell) for cell in cells],
        "table": [entry.to_dict() for entry in entries(experiment, cells)],
    }
    return Record(
        {
            "kind": KIND,
            "version": VERSION,
            "experiment": experiment.id,
            "scale": scale,
            "what": experiment.title,
            "command": f"remanence reproduce {experiment.id} --scale {scale}",
            "scaled_down": "; ".join(departures),
            "departures": departures,
            "machine": f"{facts['machine']} {facts['instruction_set']}".strip(),
            "facts": facts,
            "results": results,
        }
    )


def _cell(cell: Cell) -> dict[str, Any]:
    state = cell.state
    kept = {measure.name: read_result(cell.folder, measure) for measure in cell.work.measures}
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
            name: found and {"facts": found["facts"], "values": found["values"]} for name, found in kept.items()
        },
        "curve": learning_curve(cell),
    }


def _run_facts(cell: Cell) -> dict[str, Any]:
    """Where and by which code the run was made."""
    manifest = Run(run_of(cell.folder)).manifest
    named = ("remanence", "git", "torch", "backend", "instruction_set", "machine", "threads", "kernel")
    return {name: manifest[name] for name in named if name in manifest}


def learning_curve(cell: Cell) -> dict[str, list[Any]]:
    """Validations of a run, or returns of a policy, thinned out evenly with the last one always there.

    Args:
        cell: of any kind; one that trains nothing has none.
    """
    lines = MetricsFile(run_of(cell.folder) / "metrics.jsonl").read()
    if isinstance(cell.work.config, RunConfig):
        columns = {"update": "updates", "accuracy": "accuracy", "loss": "loss"}
        lines = [line for line in lines if line["kind"] == "validation"]
    else:
        columns = {"frames": "frames", "mean_return": "mean_return"}
    stride = -(-len(lines) // POINTS)
    kept = lines[:: -stride or None][::-1]
    return {name: [_rounded(line.get(key)) for line in kept] for key, name in columns.items()} if kept else {}


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def save_record(record: Record, path: str | Path) -> Path:
    """Writes a record where the user says, in the same bytes for the same record.

    Args:
        record: of :func:`make_record`.
        path: a JSON file, or a folder, which gets a file named after experiment and scale.
    """
    place = Path(path)
    if place.suffix != ".json":
        place = place / f"{record.experiment.replace('/', '_')}_{record.values['scale']}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record.to_dict(), indent=1, sort_keys=True, allow_nan=False)
    place.write_text(text + "\n", encoding="utf-8")
    return place


def load_record(path: str | Path) -> Record:
    """Reads a record.

    Args:
        path: its file.

    Raises:
        ValueError: it is no record, or of a later version.
    """
    return Record.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
