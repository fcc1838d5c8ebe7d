"""Runs that stored experiments of version 0 keep, as comparisons like those of run folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from remanence import train
from remanence.report._comparison import Comparison, best_of, compare
from remanence.report._numbers import as_number
from remanence.report._reading import StoredExperiment
from remanence.report._run_record import RunRecord
from remanence.runs import History, Measurement

StoredRun = Mapping[str, Any]


def stored_comparisons(found: StoredExperiment) -> list[Comparison]:
    """Comparisons of the runs that an experiment keeps: those with ``settings`` and a ``curve``, in arms."""
    arms: dict[str, list[tuple[RunRecord, StoredRun]]] = {}
    for entry in _entries(found.record.results.get("runs")):
        arms.setdefault(str(entry.get("arm", "")), []).append((_run(found.place, entry), entry))
    runs = [run for arm in arms.values() for run, _ in arm]
    rows = [row for arm in arms.values() for row in _elsewhere(arm)]
    source = train.Comparison(runs=[], transfer=rows, command=[found.record.command])
    made = compare(runs, [(Path(found.place), source)])
    return [replace(comparison, source=found.place) for comparison in made]


def _entries(runs: object) -> Iterator[StoredRun]:
    """The runs among the results that have settings and a learning curve."""
    if not isinstance(runs, list):
        return
    for run in runs:
        if isinstance(run, dict) and isinstance(run.get("settings"), dict) and isinstance(run.get("curve"), dict):
            yield run


def _run(place: str, entry: StoredRun) -> RunRecord:
    record = RunRecord(
        folder=Path(place) / f"{entry.get('arm', 'run')}-s{entry.get('seed', 0)}",
        config=entry["settings"],
        settings=json.dumps(entry["settings"], indent=1),
        state={"status": "done", "update": entry.get("updates"), "reason": entry.get("reason")},
    )
    validation = tuple(_validations(entry["curve"], record.by_accuracy))
    return replace(record, history=History(tuple(_clock(entry)), validation))


def _clock(entry: StoredRun) -> Iterator[Measurement]:
    """What is known of the time that the training took: until 99 %, and in all."""
    for updates, minutes in (("updates_to_99", "minutes_to_99"), ("updates", "minutes")):
        made = as_number(entry.get(updates))
        spent = as_number(entry.get(minutes))
        if made and spent:
            yield Measurement(int(made), {"seconds": 60 * spent, "updates_per_second": int(made) / (60 * spent)})


def _validations(curve: StoredRun, by_accuracy: bool) -> Iterator[Measurement]:
    """The validations of a curve; which of them were the best so far follows from the metric of the settings."""
    best = float("-inf")
    columns = (curve.get(name, []) for name in ("updates", "accuracy", "loss"))
    for update, accuracy, loss in zip(*columns, strict=False):
        numbers = {"accuracy": as_number(accuracy), "loss": as_number(loss)}
        value = -(numbers["loss"] or 0.0)
        if by_accuracy:
            value = numbers["accuracy"]
        gain = value is not None and value > best
        if value is not None:
            best = max(best, value)
        yield Measurement(int(update), numbers, gain)


def _elsewhere(arm: list[tuple[RunRecord, StoredRun]]) -> list[dict[str, Any]]:
    """How the best run of an arm does at other lengths."""
    best = best_of([run for run, _ in arm])
    asked = next((entry.get("elsewhere") for run, entry in arm if run is best), None)
    if best is None or not isinstance(asked, dict):
        return []
    return [
        {"run": str(best.folder), "measured_at": int(length), "accuracy": found.get("accuracy")}
        for length, found in asked.items()
        if length.isdigit() and isinstance(found, dict)
    ]
