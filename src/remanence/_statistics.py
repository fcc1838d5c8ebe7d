"""Statistics that several packages need."""

from __future__ import annotations

import math
from functools import cache

import numpy


@cache
def student(freedom: int) -> float:
    """The 97.5 % point of Student's t: how many standard errors an interval reaches if few values gave the error.

    With t = sqrt(freedom) tan(angle) the density is cos(angle)^(freedom - 1), which is summed here.

    Example:
        >>> round(student(1), 3), round(student(19), 3)
        (12.706, 2.093)
    """
    angles = numpy.linspace(0, math.pi / 2, 100_001)
    density = numpy.cos(angles) ** (freedom - 1)
    chance = numpy.concatenate([[0.0], numpy.cumsum(density[1:] + density[:-1])])
    return math.sqrt(freedom) * math.tan(float(numpy.interp(0.95 * chance[-1], chance, angles)))
