"""Files of version 0, written before results said their ``kind`` and ``version``: what they are, told by their fields.

This is the only place that does so. Everything it gives is a result of today.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from remanence.probes import InformationLaw, MutualInformation, ProbeResult
from remanence.report._numbers import as_number
from remanence.runs import result_kinds, tag

FIRST_VERSION = 1
"""What version 0 has in common with: only kind and version were added."""
CURVE = {"lags", "values", "floor"}
"""Fields that every curve of mutual information has, the short ones of stored experiments too."""


def probe_kinds() -> dict[str, type[ProbeResult]]:
    """The results of probes, by kind.

    Example:
        >>> probe_kinds()["cost"].__name__
        'Cost'
    """
    return {kind: result for kind, result in result_kinds().items() if issubclass(result, ProbeResult)}


def tagged(values: Any, name: str = "") -> Any:
    """The values with kind and version; those that say them already are left as they are.

    Args:
        values: of a result.
        name: under which they were found: files of version 0 name results by their kind.

    Example:
        >>> tagged({"chance": 0.1, "memory_free": 0.2, "model": None, "measured": True})["kind"]
        'memory_demand'
    """
    if not isinstance(values, Mapping) or "kind" in values:
        return values
    kind = name if name in probe_kinds() else _told_by_fields(values)
    return values if kind is None else {**tag(kind, FIRST_VERSION), **values}


def _told_by_fields(values: Mapping[str, Any]) -> str | None:
    """The kind whose fields are all there; None if there is none."""
    for kind, result in probe_kinds().items():
        fields = dataclasses.fields(result)  # type: ignore[arg-type]
        needed = {field.name for field in fields if field.default is dataclasses.MISSING}
        if needed and needed <= values.keys():
            return kind
    return None


def stored_curve(values: Mapping[str, Any]) -> tuple[MutualInformation, InformationLaw | None]:
    """A short curve of a stored experiment, and the law that the experiment calls the best.

    Args:
        values: with lags, values and floor at least.

    Raises:
        ValueError: If these are no numbers.

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
    fit = fits.get(name) if isinstance(fits, Mapping) else None
    if not isinstance(fit, Mapping):
        return None
    gamma, length = as_number(fit.get("gamma")), as_number(fit.get("xi"))
    amplitude = as_number(fit.get("amplitude"))
    if amplitude is None or (gamma is None and not length):
        return None
    slope = -1 / length if gamma is None and length else -(gamma or 0.0)
    low, high = _slopes(fit.get("interval"), gamma is None) or (slope, slope)
    return InformationLaw(
        law="exponential" if gamma is None else "power",
        amplitude=amplitude,
        slope=slope,
        interval=(low, high),
        points=int(as_number(fit.get("points")) or 0),
        scatter=as_number(fit.get("scatter")) or 0.0,
        aic={},
        bic={},
    )


def _slopes(interval: Any, exponential: bool) -> tuple[float, float] | None:
    """The interval of a slope, from that of xi or gamma."""
    ends = [as_number(end) for end in interval] if isinstance(interval, list) else []
    if len(ends) != 2 or any(end is None for end in ends):
        return None
    low, high = (end or 0.0 for end in ends)
    if not exponential:
        return -high, -low
    return (-1 / low if low else -np.inf), (-1 / high if high else -np.inf)
