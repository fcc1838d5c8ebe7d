"""A curve of mutual information as what a record keeps: points, and the laws that fit them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from remanence.probes import InformationLaw, MutualInformation, logarithmic_lags, mutual_information
from remanence.runs import Settings, Values, check_version, tag

KEPT_CURVE = "kept-curve"
"""Kind of what a record keeps of a curve of mutual information."""
POINTS = ("lags", "values", "low", "high", "error", "bias", "floor")
SHOWN = 40
"""Points that a record keeps of a curve; fits take all."""


def measured(symbols: object, lags: np.ndarray) -> MutualInformation:
    """The curve; what it warns of stays in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mutual_information(symbols, lags)


def described(curve: MutualInformation, shortest: int, longest: int, threshold: float | None) -> Values:
    """Points, and both laws on a range of lags; a threshold of None is the floor of the estimates.

    Example:
        >>> curve = measured(b"0011" * 200, np.arange(1, 9))
        >>> described(curve, 1, 8, None)["fitted"]
        [1, 8]
    """
    wanted = logarithmic_lags(int(curve.lags.max()), SHOWN)
    shown = np.unique(np.abs(curve.lags[:, None] - wanted).argmin(0))
    points = {name: _short(getattr(curve, name)[shown]) for name in POINTS}
    laws = {law: curve.fit(shortest, longest, threshold=threshold, law=law) for law in ("exponential", "power")}
    best = curve.fit(shortest, longest, threshold=threshold)
    fits = {law: _facts(fit) for law, fit in laws.items()}
    found = {"best": best and best.law, "fits": fits, "fitted": [shortest, longest]}
    return {**tag(KEPT_CURVE), **points, **found}


def _facts(fit: InformationLaw | None) -> Values | None:
    if fit is None:
        return None
    scales = {"xi": fit.correlation_length, "gamma": fit.exponent}
    interval = fit.correlation_length_interval or fit.exponent_interval or ()
    return {
        **{name: _finite(value) for name, value in scales.items() if value is not None},
        "interval": [_finite(end) for end in interval],
        "amplitude": _finite(fit.amplitude),
        "aic": _finite(fit.aic[fit.law]),
        "points": fit.points,
        "scatter": _finite(fit.scatter),
    }


def _finite(value: float) -> float | None:
    """JSON knows no infinity; None stands for it."""
    return float(f"{value:.6g}") if np.isfinite(value) else None


def finite(value: object) -> Any:
    """The same with None for what is not finite, at any depth.

    Example:
        >>> finite({"share": float("nan"), "counts": (1, 2.0)})
        {'share': None, 'counts': [1, 2.0]}
    """
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float):
        return _finite(value)
    return value


def _short(values: np.ndarray) -> list[Any]:
    """Six digits are more than the estimates have."""
    if values.dtype.kind == "i":
        return values.tolist()
    return [_finite(value) for value in values.tolist()]


def kept_curve(points: Settings) -> MutualInformation:
    """The curve whose points a record keeps, to be fitted again; None stands for what is not finite.

    Example:
        >>> points = described(measured(b"0011" * 200, np.arange(1, 9)), 1, 8, None)
        >>> kept_curve(points).lags.tolist()
        [1, 2, 3, 4, 5, 6, 7, 8]

    Raises:
        ResultError: it is no kept curve, or of a later version.
    """
    check_version(points, KEPT_CURVE, 1)
    columns = {name: np.array(points[name], dtype=float) for name in POINTS}  # None becomes NaN
    columns["lags"] = columns["lags"].astype(np.int64)
    unknown = np.zeros_like(columns["lags"])
    return MutualInformation(**columns, pairs=unknown, alphabet=0, sequences=0, estimator="grassberger", warnings=())


def kept_law(points: Settings) -> InformationLaw | None:
    """The law that fits the points of a record best, as it was found then; None if none does.

    Example:
        >>> kept_law({"best": "power", "fits": {"power": {"gamma": 0.5, "amplitude": 1.0}}}).exponent
        0.5
    """
    fit = (points.get("fits") or {}).get(points.get("best"))
    if not fit or fit["amplitude"] is None:
        return None
    if fit.get("gamma") is not None:
        return _law(fit, "power", lambda gamma: -gamma, fit["gamma"])
    if fit.get("xi") is not None:
        return _law(fit, "exponential", lambda xi: -1 / xi, fit["xi"])
    return None


def _law(
    fit: Settings, law: Literal["power", "exponential"], slope: Callable[[float], float], scale: float
) -> InformationLaw:
    ends = [slope(end) for end in fit.get("interval", ()) if end is not None]
    if len(ends) != 2:
        ends = [slope(scale)]
    return InformationLaw(
        law=law,
        amplitude=fit["amplitude"],
        slope=slope(scale),
        interval=(min(ends), max(ends)),
        points=fit.get("points", 0),
        scatter=fit.get("scatter") or 0.0,
        aic={},
        bic={},
    )
