"""Stored experiments: the runs and the information curves that are in them, whatever the experiment calls them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from remanence.report._comparison import Comparison, best_of, compare
from remanence.report._inputs import PROBE_FIELDS, Probed
from remanence.report._runs import Line, RunRecord
from remanence.report._words import as_number


def record_comparisons(place: str, record: Mapping[str, Any]) -> list[Comparison]:
    """Comparisons of the runs that a record keeps: those with ``settings`` and a ``curve``, in arms.

    Args:
        place: the file.
        record: its contents.

    Example:
        >>> record_comparisons("x.json", {"results": {}})
        []
    """
    results = record.get("results")
    entries = results.get("runs") if isinstance(results, dict) else None
    arms: dict[str, list[tuple[RunRecord, Mapping[str, Any]]]] = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("settings"), dict) and isinstance(entry.get("curve"), dict):
            arms.setdefault(str(entry.get("arm", "")), []).append((_run(place, entry), entry))
    runs = [run for arm in arms.values() for run, _ in arm]
    rows = [row for arm in arms.values() for row in _elsewhere(arm)]
    found = compare(runs, [(Path(place), {"command": [str(record.get("command", ""))], "transfer": rows})])
    return [replace(comparison, source=place) for comparison in found]


def _run(place: str, entry: Mapping[str, Any]) -> RunRecord:
    name = f"{entry.get('arm', 'run')}-s{entry.get('seed', 0)}"
    updates, minutes = as_number(entry.get("updates")) or 0, as_number(entry.get("minutes"))
    training = [_clock(entry.get("updates_to_99"), entry.get("minutes_to_99")), _clock(updates, minutes)]
    return RunRecord(
        folder=Path(place) / name,
        config=dict(entry["settings"]),
        settings=json.dumps(entry["settings"], indent=1),
        status="done",
        state={"update": updates, "reason": entry.get("reason")},
        training=tuple(line for line in training if line),
        validation=tuple(_validations(entry["curve"], entry["settings"])),
    )


def _clock(updates: Any, minutes: Any) -> Line | None:
    """A line of training that says how long so many updates took."""
    made, spent = as_number(updates), as_number(minutes)
    if not made or not spent:
        return None
    return {"kind": "train", "update": int(made), "seconds": 60 * spent, "updates_per_second": made / (60 * spent)}


def _validations(curve: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[Line]:
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


def record_curves(results: Any, name: str = "") -> Iterator[Probed]:
    """Every mutual-information curve inside the results of a record, named after where it stands.

    Args:
        results: of a record.
        name: of the place so far.

    Example:
        >>> curve = {"lags": [1], "values": [0.5], "floor": [0.1]}
        >>> [found.place for found in record_curves({"models": [{"label": "RNN 8", "curve": curve}]})]
        ['RNN 8']
    """
    if isinstance(results, list):
        for entry in results:
            yield from record_curves(entry, name)
    elif isinstance(results, dict):
        label = str(results["label"]) if "label" in results else name
        if results.keys() >= PROBE_FIELDS["mutual_information"]:
            yield Probed(label or "curve", "mutual_information", {**results, "fit": _best_fit(results)})
            return
        for key, value in results.items():
            yield from record_curves(value, label if key == "curve" or "label" in results else str(key))


def _best_fit(curve: Mapping[str, Any]) -> dict[str, Any] | None:
    """The law that a record names as the best, as ``remanence mi`` writes it."""
    law, fits = str(curve.get("best")), curve.get("fits")
    fit = fits.get(law) if isinstance(fits, dict) else None
    if not isinstance(fit, dict):
        return None
    gamma, length = as_number(fit.get("gamma")), as_number(fit.get("xi"))
    slope = -gamma if gamma is not None else -1 / length if length else None
    if slope is None:
        return None
    told = f"power law, gamma = {gamma:.4g}" if gamma is not None else f"exponential, xi = {length:.4g}"
    return {"law": law, "amplitude": fit.get("amplitude"), "slope": slope, "verdict": told}
