"""Runs that stored experiments keep, as comparisons like those of run folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from remanence.report._comparison import Comparison, best_of, compare
from remanence.report._numbers import as_number
from remanence.report._reading import StoredExperiment
from remanence.report._run_record import Line, RunRecord


def stored_comparisons(found: StoredExperiment) -> list[Comparison]:
    """Comparisons of the runs that an experiment keeps: those with ``settings`` and a ``curve``, in arms.

    Args:
        found: what its file says.

    Example:
        >>> stored_comparisons(StoredExperiment("x.json", {"results": {}}))
        []
    """
    arms: dict[str, list[tuple[RunRecord, Mapping[str, Any]]]] = {}
    for entry in _entries(found.record.get("results")):
        arms.setdefault(str(entry.get("arm", "")), []).append((_run(found.place, entry), entry))
    runs = [run for arm in arms.values() for run, _ in arm]
    rows = [row for arm in arms.values() for row in _elsewhere(arm)]
    source = {"command": [str(found.record.get("command", ""))], "transfer": rows}
    made = compare(runs, [(Path(found.place), source)])
    return [replace(comparison, source=found.place) for comparison in made]


def _entries(results: Any) -> list[Mapping[str, Any]]:
    """The runs among the results that have settings and a learning curve."""
    runs = results.get("runs") if isinstance(results, dict) else None
    return [
        run
        for run in (runs if isinstance(runs, list) else [])
        if isinstance(run, dict) and isinstance(run.get("settings"), dict) and isinstance(run.get("curve"), dict)
    ]


def _run(place: str, entry: Mapping[str, Any]) -> RunRecord:
    updates = int(as_number(entry.get("updates")) or 0)
    seconds = 60 * (as_number(entry.get("minutes")) or 0.0)
    times = [(entry.get("updates_to_99"), entry.get("minutes_to_99")), (updates, entry.get("minutes"))]
    return RunRecord(
        folder=Path(place) / f"{entry.get('arm', 'run')}-s{entry.get('seed', 0)}",
        config=dict(entry["settings"]),
        settings=json.dumps(entry["settings"], indent=1),
        status="done",
        state={"update": updates, "reason": entry.get("reason")},
        validation=tuple(_validations(entry["curve"], entry["settings"])),
        clock=tuple(_clock(times)),
        updates_per_second=updates / seconds if updates and seconds else None,
    )


def _clock(times: list[tuple[Any, Any]]) -> Iterator[tuple[int, float]]:
    """Updates and the seconds that they took, where both are known."""
    for updates, minutes in times:
        made, spent = as_number(updates), as_number(minutes)
        if made and spent:
            yield int(made), 60 * spent


def _validations(curve: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[Line]:
    """The validations of a curve; which of them were the best so far follows from the metric of the settings."""
    evaluation = settings.get("evaluation")
    by_accuracy = isinstance(evaluation, dict) and evaluation.get("metric") == "accuracy"
    best = float("-inf")
    columns = (curve.get(name, []) for name in ("updates", "accuracy", "loss"))
    for update, accuracy, loss in zip(*columns, strict=False):
        value = as_number(accuracy) if by_accuracy else -(as_number(loss) or 0.0)
        gain = value is not None and value > best
        best = value if gain and value is not None else best
        yield {"kind": "validation", "update": int(update), "accuracy": accuracy, "loss": loss, "best": gain}


def _elsewhere(arm: list[tuple[RunRecord, Mapping[str, Any]]]) -> list[dict[str, Any]]:
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
