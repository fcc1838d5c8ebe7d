"""Fitting decays and growths: which law, at what rate, how sure."""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

import numpy as np

Law: TypeAlias = Literal["exponential", "power"]
RESAMPLES = 200
CONFIDENCE = (2.5, 97.5)
SHARE = 0.2
"""Of the cost at the longest length: what a term must make up to count."""
LEAST_SCATTER = 0.03
"""Relative, of repeated times, even where few repetitions happen to agree."""
AGREEMENT = 0.9
"""Share of resamples in which one order must come out."""


@dataclasses.dataclass(frozen=True)
class Decay:
    """A straight line through log norms, against distance (exponential) or its logarithm (power law).

    Example:
        >>> fit_decay(np.arange(1, 50), -0.5 * np.arange(1, 50)).law
        'exponential'
    """

    law: Law
    rate: float
    """Slope of the chosen law: change of the log norm per step, or per factor e of distance."""
    interval: tuple[float, float]
    """95 % of block-bootstrap slopes: neighbouring norms are not independent."""
    change: float
    """Fitted change of the log norm over the whole range."""
    preference: float
    """By how much Akaike's criterion prefers the chosen law."""


def fit_decay(distance: np.ndarray, log_norm: np.ndarray) -> Decay | None:
    """Fits both laws and takes the better by Akaike's criterion; ``None`` with fewer than three finite points.

    Example:
        >>> round(fit_decay(np.arange(1, 50), -2 * np.log(np.arange(1, 50))).rate, 6)
        -2.0
    """
    good = np.isfinite(log_norm) & (distance > 0)
    d = distance[good].astype(float)
    y = log_norm[good].astype(float)
    if len(d) < 3:
        return None
    laws: dict[Law, np.ndarray] = {"exponential": d, "power": np.log(d)}
    lines = {law: _line(x, y) for law, x in laws.items()}
    criteria = {law: _criterion(y - fitted) for law, (_, fitted) in lines.items()}
    law: Law = "exponential"
    if criteria["power"] < criteria["exponential"]:
        law = "power"
    slope, fitted = lines[law]
    interval = _bootstrap(laws[law], slope, y - fitted)
    return Decay(law, slope, interval, float(fitted[-1] - fitted[0]), float(max(criteria.values()) - criteria[law]))


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Least-squares slope and fitted values; exactly 0 for values that are all the same."""
    centred = x - x.mean()
    rise = y - y[0]
    slope = float(centred @ rise / (centred @ centred))
    return slope, y[0] + (rise.mean() + slope * centred)


def _criterion(residual: np.ndarray) -> float:
    """Akaike's criterion up to a constant; both laws have two parameters."""
    return len(residual) * float(np.log(max(residual @ residual / len(residual), 1e-30)))


def _bootstrap(x: np.ndarray, slope: float, residual: np.ndarray) -> tuple[float, float]:
    """Slopes refitted with blocks of residuals drawn anew, so that their dependence along the run is kept."""
    generator = np.random.default_rng(0)
    size = len(x)
    block = max(1, int(np.sqrt(len(x))))
    starts = generator.integers(0, size - block + 1, (RESAMPLES, -(-size // block)))
    drawn = residual[(starts[:, :, None] + np.arange(block)).reshape(RESAMPLES, -1)[:, :size]]
    centred = x - x.mean()
    # A slope is linear in the values, so all refits are one product.
    slopes = slope + drawn @ centred / (centred @ centred)
    low, high = np.percentile(slopes, CONFIDENCE)
    return float(low), float(high)


@dataclasses.dataclass(frozen=True)
class Growth:
    """``a + b T + c T^2``, non-negative, fitted to costs relative to their size.

    Example:
        >>> fit_growth([10, 20, 40, 80], [30, 50, 90, 170]).order
        'linear'
    """

    constant: float
    linear: float
    quadratic: float
    exponent: float
    """Slope between the two longest, in logarithms: what a log-log plot would show."""
    order: Literal["constant", "linear", "quadratic", "unclear"]
    """The term that matters most at the longest length, if it makes up a fifth at least; "unclear" if the scatter of
    the measurements allows another one."""


def fit_growth(lengths: list[int], costs: list[float]) -> Growth:
    """Fits the three terms, none negative, to positive costs at two lengths or more: least squares, relative errors.

    Example:
        >>> round(fit_growth([10, 20, 40], [100, 400, 1600]).quadratic, 6)
        1.0
    """
    t = np.array(lengths, dtype=float)
    y = np.maximum(np.array(costs, dtype=float), 1e-30)
    # Divided by the costs, the terms shall add up to 1 at every length: that makes the errors relative.
    terms = np.stack([np.ones_like(t), t, t * t], axis=1) / y[:, None]
    # 1 and T^2 differ by many powers of ten, which least squares would feel.
    scale = np.linalg.norm(terms, axis=0)
    constant, linear, quadratic = (float(value) for value in _non_negative(terms / scale) / scale)
    exponent = float(np.log(y[-1] / y[-2]) / np.log(t[-1] / t[-2]))
    order = _order(linear * t[-1] / y[-1], quadratic * t[-1] ** 2 / y[-1])
    return Growth(constant, linear, quadratic, exponent, order)


def _order(linear_share: float, quadratic_share: float) -> Literal["constant", "linear", "quadratic"]:
    """The highest term that makes up a fifth of the cost at the longest length."""
    if quadratic_share >= SHARE:
        return "quadratic"
    if linear_share >= SHARE:
        return "linear"
    return "constant"


def fit_noisy_growth(lengths: list[int], runs: list[list[float]]) -> Growth:
    """Fits the best of repeated times, and says "unclear" where their scatter allows another order.

    A time is never too short, only too long. So the fit is repeated with each best time made shorter at random, by the
    scatter at its length; one order must come out nearly always. For each length there are the times of its ``runs``.

    Example:
        >>> fit_noisy_growth([10, 20, 40], [[1.0, 1.01], [2.0, 2.02], [4.0, 4.01]]).order
        'linear'
        >>> fit_noisy_growth([10, 20, 40], [[1.0, 1.1], [2.3, 2.7], [5.0, 6.2]]).order
        'unclear'
    """
    best = np.array([min(times) for times in runs])
    quarter = np.array([np.quantile(times, 0.25) for times in runs])  # most runs may be disturbed on a busy machine
    scatter = np.maximum(quarter / np.maximum(best, 1e-30) - 1, LEAST_SCATTER)
    found = fit_growth(lengths, best.tolist())
    generator = np.random.default_rng(0)
    excess = scatter * np.abs(generator.standard_normal((RESAMPLES, len(best))))
    orders = [fit_growth(lengths, (best / (1 + row)).tolist()).order for row in excess]
    if orders.count(found.order) >= AGREEMENT * RESAMPLES:
        return found
    return dataclasses.replace(found, order="unclear")


def _non_negative(terms: np.ndarray) -> np.ndarray:
    """Least squares against one with no negative coefficient: the best over all subsets of the three terms."""
    best = np.zeros(3)
    error = np.inf
    for subset in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
        coefficients = np.linalg.lstsq(terms[:, subset], np.ones(len(terms)), rcond=None)[0]
        left = float(np.square(terms[:, subset] @ coefficients - 1).sum())
        # Small subsets come first, and a larger one must be better by more than rounding.
        if (coefficients >= 0).all() and left < error * (1 - 1e-6) - 1e-24:
            best = np.zeros(3)
            error = left
            best[subset] = coefficients
    return best
