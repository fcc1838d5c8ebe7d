"""Whether one part of the data is like another: a curve compared with those of equally long stretches."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import torch

from remanence._validate import message
from remanence.figures import Curve, Figure, log_axis

from ._information import mutual_information
from ._lags import logarithmic_lags
from ._result import ProbeResult
from ._symbols import Symbols, Unit, as_symbols

FEWEST = 4
"""Stretches, below which a range says nothing."""
_ROUNDING = 1e-12


@dataclasses.dataclass(frozen=True)
class Uniformity(ProbeResult):
    """Mutual information in one part of the data, and in stretches of another that are as long.

    Example:
        >>> uniformity(b"0011" * 500, b"0011" * 100, [1, 2]).outside.tolist()
        [False, False]
    """

    kind: ClassVar[str] = "uniformity"

    lags: np.ndarray
    """int64 ``(K,)``."""
    values: np.ndarray
    """``(K,)``, nats, of the part in question."""
    stretches: np.ndarray
    """``(P, K)``, nats, of the stretches in their order."""
    symbols: int
    """How many symbols a stretch has."""

    @property
    def outside(self) -> np.ndarray:
        """Where the part lies outside the range of all stretches: bool ``(K,)``."""
        return (self.values > self.stretches.max(0) + _ROUNDING) | (self.values < self.stretches.min(0) - _ROUNDING)

    @property
    def chance(self) -> float:
        """Share of lags outside that is to be expected of one more stretch like the others."""
        return 2 / (len(self.stretches) + 1)

    @property
    def verdict(self) -> str:
        """How many lags are outside, and how many that would be by chance."""
        count = int(self.outside.sum())
        total = len(self.lags)
        compared = f"{len(self.stretches)} stretches of {self.symbols:,} symbols"
        return f"outside the range of {compared} at {count} of {total} lags; by chance at {self.chance * total:.1f}"

    def figures(self) -> list[Figure]:
        """All stretches and the part, information against lag."""
        stretches = [Curve(f"stretch {number}", self.lags, curve) for number, curve in enumerate(self.stretches, 1)]
        parts = (*stretches, Curve("this part", self.lags, self.values))
        y = log_axis("nats", np.concatenate([self.stretches.ravel(), self.values]))
        return [Figure("Uniformity", self.verdict, parts, log_axis("lag", self.lags), y)]


def uniformity(
    reference: object, part: object, lags: Iterable[int] | torch.Tensor | None = None, *, unit: Unit = "characters"
) -> Uniformity:
    """Compares a part of the data, such as a validation set, with stretches of another, such as a training set.

    Estimates depend on the size of a sample: a small set seems to hold more information. Here all samples have one
    size, and the scatter between places of the reference shows what a difference means.

    Args:
        reference: cut into as many stretches as fit; whole sequences if there are several.
        part: what is compared; if fewer than four times as many symbols are in the reference, only its beginning.
        lags: distances; None for 20 between 1 and a tenth of the longest sequence.
        unit: whether texts are characters or words.

    Raises:
        ValueError: there is too little to cut.

    Example:
        >>> uniformity(b"0011" * 500, b"01" * 200, [1]).outside.tolist()
        [True]
    """
    whole = as_symbols(reference, unit)
    other = as_symbols(part, unit)
    size = min(len(other.values), len(whole.values) // FEWEST)
    pieces = _pieces(whole, size)
    compared = _pieces(other, size)[:1]
    if len(pieces) < FEWEST or not compared:
        raise ValueError(message("reference", f"hold at least {FEWEST} sequences or stretches", len(pieces)))
    longest = min(piece.longest for piece in [*pieces, *compared])
    distances = logarithmic_lags(max(longest // 10, 1), 20) if lags is None else lags
    curves = [_values(piece, distances) for piece in [*compared, *pieces]]
    return Uniformity(curves[0][0], curves[0][1], np.stack([values for _, values in curves[1:]]), size)


def _values(symbols: Symbols, lags: Any) -> tuple[np.ndarray, np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        curve = mutual_information(symbols, lags, intervals=False, draws=2)
    return curve.lags, curve.values


def _pieces(symbols: Symbols, size: int) -> list[Symbols]:
    """Stretches of one sequence, or groups of whole sequences that hold no more than ``size`` symbols."""
    if len(symbols.starts) == 2:
        places = range(0, len(symbols.values) - size + 1, max(size, 1))
        cuts = [(at, at + size) for at in places]
        return [Symbols(symbols.values[a:b], np.array([0, b - a]), symbols.alphabet) for a, b in cuts]
    pieces = []
    first = 0
    while first < len(symbols.starts) - 1:
        last = int(np.searchsorted(symbols.starts, symbols.starts[first] + size, side="right")) - 1
        if last <= first or symbols.starts[first] + size > symbols.starts[-1]:
            break
        starts = symbols.starts[first : last + 1]
        pieces.append(Symbols(symbols.values[starts[0] : starts[-1]], starts - starts[0], symbols.alphabet))
        first = last
    return pieces
