"""Which law mutual information follows: exponential, power or constant, over the whole range or in pieces."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

from remanence._statistics import student
from remanence.runs import dataclass_from

Law: TypeAlias = Literal["exponential", "power", "constant"]
LAWS: tuple[Law, ...] = ("exponential", "power", "constant")
_FEWEST = 4
_PIECE = 5
"""Points that a regime must have."""
_WIGGLE = 0.05
"""Scatter of ln I that calls for no regime of its own."""


@dataclasses.dataclass(frozen=True)
class InformationLaw:
    """I = A exp(-lag / xi), I = A lag^-gamma, or I = A, fitted to ln I by weighted least squares.

    Weights are 1 / (e^2 + s^2), e being the standard error of ln I and s the scatter about the law beyond it, such that
    the residuals are as large as the weights say.

    Example:
        >>> lags = np.arange(1, 20)
        >>> round(best_law(lags, -lags / 7.0, np.zeros(19)).correlation_length, 6)
        7.0
    """

    law: Law
    """The one with the least Akaike criterion, or the one that was asked for."""
    amplitude: float
    """A."""
    slope: float
    """Change of ln I per step (exponential) or per factor e of the lag (power)."""
    interval: tuple[float, float]
    """95 % of the slope."""
    points: int
    """How many lags were fitted."""
    scatter: float
    """s."""
    aic: dict[str, float]
    """Akaike's criterion of each law, less the least."""
    bic: dict[str, float]
    """Schwarz's criterion of each law, less the least."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> InformationLaw:
        """The law whose fields a dictionary holds, as ``remanence mi --json`` writes them."""
        return dataclass_from(cls, values, "law")

    @property
    def correlation_length(self) -> float | None:
        """The xi of an exponential; infinite if it does not fall."""
        if self.law != "exponential":
            return None
        return _length(self.slope)

    @property
    def correlation_length_interval(self) -> tuple[float, float] | None:
        """95 % of xi; infinite where the slope may be zero."""
        if self.law != "exponential":
            return None
        low, high = self.interval
        return _length(low), _length(high)

    @property
    def exponent(self) -> float | None:
        """The gamma of a power law."""
        if self.law != "power":
            return None
        return -self.slope

    @property
    def exponent_interval(self) -> tuple[float, float] | None:
        """95 % of gamma."""
        if self.law != "power":
            return None
        return -self.interval[1], -self.interval[0]

    @property
    def verdict(self) -> str:
        """Law and parameter with its interval."""
        if self.law == "constant":
            return f"constant, {self.amplitude:.4g} nats"
        if self.exponent is not None and self.exponent_interval is not None:
            low, high = self.exponent_interval
            return f"power law, gamma = {self.exponent:.4g} (95 %: {low:.4g} to {high:.4g})"
        assert self.correlation_length_interval is not None
        low, high = self.correlation_length_interval
        return f"exponential, xi = {self.correlation_length:.4g} (95 %: {low:.4g} to {high:.4g})"

    def at(self, lags: np.ndarray) -> np.ndarray:
        """The law's values at lags: ``(K,)``."""
        return self.amplitude * np.exp(self.slope * _abscissa(self.law, np.asarray(lags, dtype=float)))


def _length(slope: float) -> float:
    """Steps in which an exponential of some slope falls by a factor e; infinite if it does not fall."""
    if slope < 0:
        return -1 / slope
    return math.inf


@dataclasses.dataclass(frozen=True)
class Regime:
    """A range of lags and the law in it.

    Example:
        >>> lags = np.arange(1, 30)
        >>> [regime.law.law for regime in find_regimes(lags, -0.5 * np.log(lags), np.zeros(29), 3)]
        ['power']
    """

    shortest: int
    longest: int
    law: InformationLaw


def _abscissa(law: Law, lags: np.ndarray) -> np.ndarray:
    return {"exponential": lags, "power": np.log(lags), "constant": np.zeros_like(lags)}[law]


def _design(law: Law, lags: np.ndarray) -> np.ndarray:
    ones = np.ones((len(lags), 1))
    if law == "constant":
        return ones
    return np.column_stack([ones, _abscissa(law, lags)])


def fit_one(law: Law, lags: np.ndarray, logs: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Coefficients ``(2,)``, the slope's 95 % interval ``(2,)``, and the scatter."""
    design = _design(law, lags)
    scatter = _scatter(design, logs, errors)
    variance = errors**2 + scatter**2
    coefficients, inverse = _weighted(design, logs, variance)
    if law == "constant":
        return np.array([coefficients[0], 0.0]), np.zeros(2), scatter
    half = student(len(lags) - 2) * math.sqrt(inverse[1, 1])
    return coefficients, coefficients[1] + np.array([-half, half]), scatter


def _weighted(design: np.ndarray, logs: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    inverse = np.linalg.inv(design.T @ (design / variance[:, None]))
    return inverse @ (design.T @ (logs / variance)), inverse


def _scatter(design: np.ndarray, logs: np.ndarray, errors: np.ndarray) -> float:
    """The s at which the weighted squares of the residuals sum to their degrees of freedom; tiny if none is needed."""
    freedom = len(logs) - design.shape[1]
    least = 1e-9 * max(1.0, float(np.abs(logs).max()))  # an exact law has no scatter, and no weights without it

    def excess(s: float) -> float:
        variance = errors**2 + s**2
        return float(((logs - design @ _weighted(design, logs, variance)[0]) ** 2 / variance).sum()) - freedom

    low = least
    high = max(float(np.ptp(logs)), 10 * least)
    if excess(low) <= 0:
        return low
    for _ in range(60):
        # The two ends are many powers of ten apart: the logarithm is halved.
        middle = math.sqrt(low * high)
        if excess(middle) > 0:
            low = middle
        else:
            high = middle
    return high


def _deviance(law: Law, coefficients: np.ndarray, scatter: float, points: tuple[np.ndarray, ...]) -> float:
    """Minus twice the logarithm of the likelihood."""
    lags, logs, errors = points
    variance = errors**2 + scatter**2
    residual = logs - coefficients[0] - coefficients[1] * _abscissa(law, lags)
    return float((np.log(variance) + residual**2 / variance).sum())


def best_law(
    lags: np.ndarray, logs: np.ndarray, errors: np.ndarray, wanted: Law | None = None
) -> InformationLaw | None:
    """Fits all laws and takes the one with the least Akaike criterion.

    Args:
        lags: ``(K,)``, at least 1.
        logs: ``(K,)``, ln I.
        errors: ``(K,)``, standard errors of ln I; zero where unknown.
        wanted: take this one, whatever the criterion says.

    Returns:
        ``None`` with fewer than four points.

    Example:
        >>> lags = np.array([1, 2, 4, 8])
        >>> best_law(lags, -0.5 * np.log(lags), np.zeros(4)).law
        'power'
    """
    if len(lags) < _FEWEST:
        return None
    lags = lags.astype(float)
    fits = {law: fit_one(law, lags, logs, errors) for law in LAWS}
    deviance = {law: _deviance(law, fits[law][0], fits[law][2], (lags, logs, errors)) for law in LAWS}
    size = {"exponential": 3, "power": 3, "constant": 2}  # the scatter is one
    aic = {law: deviance[law] + 2 * size[law] for law in LAWS}
    bic = {law: deviance[law] + math.log(len(lags)) * size[law] for law in LAWS}
    law = wanted or min(LAWS, key=lambda name: aic[name])
    coefficients, interval, scatter = fits[law]
    return InformationLaw(
        law,
        math.exp(coefficients[0]),
        float(coefficients[1]),
        (float(interval[0]), float(interval[1])),
        len(lags),
        scatter,
        {name: value - min(aic.values()) for name, value in aic.items()},
        {name: value - min(bic.values()) for name, value in bic.items()},
    )


def find_regimes(lags: np.ndarray, logs: np.ndarray, errors: np.ndarray, most: int) -> tuple[Regime, ...]:
    """The cuts and laws, of ``most`` pieces, with the least Schwarz criterion; arguments as in :func:`best_law`.

    Residuals within errors or 5 % call for no cut.
    """
    count = len(lags)
    if count < _FEWEST:
        return ()
    squares = _squares(lags.astype(float), logs, 1 / (errors**2 + _WIGGLE**2))
    best = math.inf
    chosen = (0, count)
    for pieces in range(1, most + 1):
        for cuts in itertools.combinations(range(_PIECE, count - _PIECE + 1), pieces - 1):
            spans = list(itertools.pairwise((0, *cuts, count)))
            if pieces > 1 and any(end - begin < _PIECE for begin, end in spans):
                continue
            excess = max(sum(squares[span] for span in spans) / count, 1.0)
            # Two coefficients for each piece, and the places of the cuts.
            criterion = count * math.log(excess) + (3 * pieces - 1) * math.log(count)
            if criterion < best:
                best = criterion
                chosen = (0, *cuts, count)
    return tuple(_regime(lags[a:b], logs[a:b], errors[a:b]) for a, b in itertools.pairwise(chosen))


def _regime(lags: np.ndarray, logs: np.ndarray, errors: np.ndarray) -> Regime:
    law = best_law(lags, logs, errors)
    assert law is not None
    return Regime(int(lags[0]), int(lags[-1]), law)


def _squares(lags: np.ndarray, logs: np.ndarray, weights: np.ndarray) -> dict[tuple[int, int], float]:
    """Weighted squares of the residuals of the better line, exponential or power, in every piece."""
    found = {}
    for begin in range(len(lags)):
        for end in range(begin + min(_PIECE, len(lags)), len(lags) + 1):
            piece = slice(begin, end)
            lines = (_line_squares(_abscissa(law, lags[piece]), logs[piece], weights[piece]) for law in LAWS[:2])
            found[begin, end] = min(lines)
    return found


def _line_squares(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    x = x - np.average(x, weights=weights)
    y = y - np.average(y, weights=weights)
    across = weights @ (x * y)
    return max(float(weights @ (y * y) - across**2 / (weights @ (x * x))), 0.0)
