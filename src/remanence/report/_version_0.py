"""Files of version 0, written before results said their ``kind`` and ``version``: what they are, told by their fields.

This is the only place that does so. Everything it gives is a result of today.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

from remanence.probes import InformationLaw, MutualInformation, ProbeResult
from remanence.report._numbers import as_number
from remanence.runs import result_kinds, tag

CURVE = {"lags", "values", "floor"}
"""Fields that every curve of mutual information has, the short ones of stored experiments too."""
MARKS = {
    "reproduction": {"what", "command", "results"},
    "comparison": {"runs", "transfer"},
    "verdict": {"id", "verdict"},
}
"""Fields by which results other than those of probes are told."""
LATER: dict[str, dict[str, Any]] = {
    "reproduction": {
        "experiment": "", "scale": "", "scaled_down": "", "departures": [], "machine": "", "facts": {}
    },
    "verdict": {"place": "", "printed": "", "measures": "", "tolerance": "", "numbers": {}, "seconds": 0.0},
}  # fmt: skip
"""What fields are that a result of version 0 may lack."""


def tagged(values: object, name: str = "") -> Any:
    """The values with kind and version; those that say them already are left as they are.

    Files of version 0 name results by their kind.

    Example:
        >>> tagged({"chance": 0.1, "memory_free": 0.2, "model": None, "measured": True})["kind"]
        'memory_demand'
        >>> tagged({"id": "notes/4.1", "verdict": "holds", "agrees": True})["expected"]
        'holds'
    """
    if not isinstance(values, Mapping) or "kind" in values:
        return values
    kind = _told_by_fields(values, name)
    if kind is None:
        return values
    found = {**tag(kind), **LATER.get(kind, {}), **values}
    if kind == "verdict" and values.get("agrees") is True:
        found.setdefault("expected", values["verdict"])
    return found


def _told_by_fields(values: Mapping[str, Any], name: str) -> str | None:
    """The kind that the values are named after, or whose fields are all there; None if there is none."""
    probes = {kind: result for kind, result in result_kinds().items() if issubclass(result, ProbeResult)}
    if name in probes:
        return name
    needed = {kind: _needed_fields(result) for kind, result in probes.items()}
    return next((kind for kind, marks in {**MARKS, **needed}.items() if marks and marks <= values.keys()), None)


def _needed_fields(result: type[ProbeResult]) -> set[str]:
    fields = dataclasses.fields(result)  # type: ignore[arg-type]
    return {field.name for field in fields if field.default is dataclasses.MISSING}


def curves_inside(results: object, name: str = "") -> Iterator[tuple[str, MutualInformation, InformationLaw | None]]:
    """Every curve of mutual information inside the results of a record: where it stands, itself, and its law.

    Example:
        >>> curve = {"lags": [1, 2], "values": [1, 0.7], "floor": [0, 0]}
        >>> [name for name, _, _ in curves_inside({"models": [{"label": "RNN 8", "curve": curve}], "data": curve})]
        ['RNN 8', 'data']
    """
    if isinstance(results, list):
        for entry in results:
            yield from curves_inside(entry, name)
    elif isinstance(results, Mapping):
        label = str(results.get("label", name))
        if results.keys() >= CURVE:
            yield label or "curve", *stored_curve(results)
            return
        for key, value in results.items():
            place = str(key)
            if key == "curve" or "label" in results:
                place = label
            yield from curves_inside(value, place)


def stored_curve(values: Mapping[str, Any]) -> tuple[MutualInformation, InformationLaw | None]:
    """A short curve of a stored experiment, and the law that the experiment calls the best.

    Example:
        >>> law = {"best": "power", "fits": {"power": {"gamma": 0.5, "amplitude": 1.0}}}
        >>> curve, law = stored_curve({"lags": [1, 2], "values": [1, 0.7], "floor": [0, 0], **law})
        >>> law.exponent
        0.5
    """
    unknown = [None] * len(values["lags"])
    whole = {
        **dict.fromkeys(("low", "high", "error"), unknown),
        **{name: [0] * len(unknown) for name in ("bias", "pairs")},
        "alphabet": 0,
        "sequences": 0,
        "estimator": "grassberger",
        "warnings": [],
        **values,
    }
    return MutualInformation.from_dict(whole), _stored_law(values)


def _stored_law(values: Mapping[str, Any]) -> InformationLaw | None:
    name = values.get("best")
    fits = values.get("fits")
    if not isinstance(fits, Mapping) or not isinstance(fits.get(name), Mapping):
        return None
    fit = fits[name]
    gamma = as_number(fit.get("gamma"))
    length = as_number(fit.get("xi"))
    amplitude = as_number(fit.get("amplitude"))
    if amplitude is None:
        return None
    if gamma is not None:
        law = "power"
        slope = -gamma
    elif length:
        law = "exponential"
        slope = -1 / length
    else:
        return None
    low, high = _slopes(fit.get("interval"), law) or (slope, slope)
    return InformationLaw(
        law=law,
        amplitude=amplitude,
        slope=slope,
        interval=(low, high),
        points=int(as_number(fit.get("points")) or 0),
        scatter=as_number(fit.get("scatter")) or 0.0,
        aic={},
        bic={},
    )


def _slopes(interval: object, law: str) -> tuple[float, float] | None:
    """The interval of a slope, from that of xi or gamma."""
    if not isinstance(interval, list):
        return None
    ends = [end for end in map(as_number, interval) if end is not None]
    if len(ends) != 2 or len(interval) != 2:
        return None
    low, high = ends
    if law == "power":
        return -high, -low
    return _steepness(low), _steepness(high)


def _steepness(length: float) -> float:
    """The slope of an exponential that falls by a factor e in some length."""
    if not length:
        return -math.inf
    return -1 / length
