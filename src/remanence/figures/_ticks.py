"""Where an axis has its ticks, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

DECADES = 30
"""Ratio of the greatest to the least value from which on powers of ten are ticks enough."""
MOST = 8
"""Powers of ten that an axis names."""
FEWEST = 3
"""Ticks that an axis should have."""


def finite_numbers(values: Iterable[object]) -> list[float]:
    """The finite numbers among values.

    Example:
        >>> finite_numbers([1, None, "x", float("inf")])
        [1.0]
    """
    numbers = (float(value) for value in values if isinstance(value, int | float))
    return [number for number in numbers if math.isfinite(number)]


def linear_ticks(low: float, high: float) -> list[float]:
    """Round numbers from ``low`` to ``high``, four to eight.

    Example:
        >>> linear_ticks(0, 1)
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if high <= low:
        return [low]
    power = 10.0 ** math.floor(math.log10(high - low))
    step = power * next(factor for factor in (0.1, 0.2, 0.5, 1, 2, 5) if (high - low) / (power * factor) <= 8)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def log_ticks(values: Iterable[object]) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, or as many finer steps as a narrow range needs.

    Example:
        >>> log_ticks([1, 1000]), log_ticks([2.0, 9.0]), log_ticks([1.9, 2.1])
        ([1.0, 10.0, 100.0, 1000.0], [2.0, 5.0], [1.9, 1.95, 2.0, 2.05, 2.1])
    """
    positive = [value for value in finite_numbers(values) if value > 0]
    if not positive:
        return []
    low = min(positive)
    high = max(positive)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if high / low >= DECADES:
        decades = _within([10.0**power for power in powers], low, high)
        if len(decades) > 1:
            return decades[:: -(-len(decades) // MOST)]
    steps = _within([digit * 10.0**power for power in powers for digit in (1, 2, 5)], low, high)
    if len(steps) < FEWEST and high / low <= 4:
        return linear_ticks(low, high)
    return steps


def _within(ticks: Sequence[float], low: float, high: float) -> list[float]:
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def tick_label(value: float, unit: str) -> str:
    """A tick as it is written: plain, in percent, or with a prefix of the SI.

    Example:
        >>> tick_label(1600, ""), tick_label(0.5, "percent"), tick_label(2.5e6, "SI"), tick_label(2e-3, "SI")
        ('1,600', '50 %', '2.5M', '2m')
    """
    if unit == "percent":
        return f"{100 * value:g} %"
    if unit == "SI" and value:
        power = min(max(math.floor(math.log10(abs(value)) / 3 + 1e-9), -4), 4)
        return f"{value / 1000.0**power:.3g}{'pnµm_kMGT'[power + 4]}".replace("_", "")
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.6g}"
