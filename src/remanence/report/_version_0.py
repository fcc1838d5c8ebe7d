"""Files of version 0, written before results said their ``kind`` and ``version``: what they are, told by their fields.

This is the only place that does so. Everything it gives is a result of today.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from remanence.probes import InformationLaw, MutualInformation
from remanence.report._numbers import as_number
from remanence.report._probe_results import KINDS

CURVE = {"lags", "values", "floor"}
"""Fields that every curve of mutual information has, the short ones of stored experiments too."""


def kind_of(values: Mapping[str, Any]) -> str | None:
    """The kind of a probe's result; None if it is no such result.

    Args:
        values: as ``to_dict`` gave them.

    Example:
        >>> kind_of({"chance": 0.1, "memory_free": 0.2, "model": None, "measured": True})
        'memory_demand'
    """
    for kind, result in KINDS.items():
        fields = dataclasses.fields(result)  # type: ignore[arg-type]
        needed = {field.name for field in fields if field.default is dataclasses.MISSING}
        if needed <= values.keys():
            return kind
    return None


def named_results(values: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The results of ``remanence probe --json``, by kind; or the one result that the values are.

    Args:
        values: of a whole file.

    Example:
        >>> [kind for kind, _ in named_results({"cost": {"lengths": [1]}, "note": 1})]
        ['cost']
    """
    kind = kind_of(values)
    if kind is not None:
        yield kind, values
        return
    for name, inside in values.items():
        if name in KINDS and isinstance(inside, Mapping):
            yield name, inside


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
