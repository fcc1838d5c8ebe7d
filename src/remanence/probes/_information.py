"""How much a symbol tells about another at a distance."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch

from remanence._statistics import student
from remanence._validate import boolean, one_of, positive_int
from remanence.figures import Band, Curve, Figure, log_axis, looks

from ._entropy import ESTIMATORS, Estimator
from ._lags import checked_lags
from ._laws import LAWS, InformationLaw, Law, Regime, best_law, find_regimes
from ._many_symbols import Places, SortedPairs, shuffled_value, sorted_pairs
from ._pair_counts import LARGEST_TABLE, group_edges, pairs_by_lag
from ._result import ProbeResult
from ._symbols import Symbols, Unit, as_symbols

_ROUNDING = 1e-12
"""Nats that are not told from none."""
_ALIKE = 0.01
"""Share by which the number of pairs may differ between lags that have a floor in common."""
_THIN = 5
"""Pairs for each different pair, below which the alphabet is too large for the sample."""


@dataclasses.dataclass(frozen=True)
class MutualInformation(ProbeResult):
    """Mutual information in nats against distance.

    Example:
        >>> found = mutual_information(b"0011" * 500, [2, 4])
        >>> found.above, found.alphabet
        (array([ True,  True]), 2)
    """

    kind: ClassVar[str] = "mutual_information"

    lags: np.ndarray
    """int64 ``(K,)``."""
    values: np.ndarray
    """``(K,)``, nats; a little below zero is possible, as the estimate scatters."""
    low: np.ndarray
    """``(K,)``: lower end of the 95 % interval: the estimate less ``error`` times Student's t of so many groups; NaN
    without one."""
    high: np.ndarray
    """``(K,)``: upper end."""
    error: np.ndarray
    """``(K,)``: standard error, from leaving out one group of places after the other (jackknife)."""
    bias: np.ndarray
    """``(K,)``: mean estimate from pairs without any dependence; grows as symbols grow many and pairs few."""
    floor: np.ndarray
    """``(K,)``: what pairs without any dependence reach, mean and two standard deviations."""
    pairs: np.ndarray
    """int64 ``(K,)``: how many pairs were counted."""
    alphabet: int
    """How many different symbols were seen."""
    sequences: int
    """How many sequences were pooled."""
    estimator: Estimator
    """Which estimator of entropy."""
    warnings: tuple[str, ...]
    """What to be wary of."""

    @property
    def above(self) -> np.ndarray:
        """Where the estimate is above the floor: bool ``(K,)``."""
        return self.values > self.floor

    @property
    def excess(self) -> np.ndarray:
        """Estimates less their bias: ``(K,)``, what to compare between samples of different size."""
        return self.values - self.bias

    def fit(
        self,
        shortest: int | None = None,
        longest: int | None = None,
        *,
        threshold: float | None = None,
        unbiased: bool = False,
        law: Law | None = None,
    ) -> InformationLaw | None:
        """Fits an exponential, a power law and a constant to a range, and takes the best.

        Args:
            shortest: least lag that counts.
            longest: greatest lag that counts.
            threshold: estimates at or below it do not count; ``None`` for the floor of each lag. The document takes
                0.001 for bits, 0.002 for WikiText-2.
            unbiased: fit the excess over the bias, not the estimates themselves.
            law: take this one, whether or not it is the best: ``"exponential"``, ``"power"`` or ``"constant"``.

        Returns:
            The law, or ``None`` if fewer than four points are left.

        Example:
            >>> from remanence.tasks import BinaryPowerLaw
            >>> task = BinaryPowerLaw(length=256)
            >>> bits = task.draw(400, task.stream("train", seed=0)).T
            >>> mutual_information(bits, [1, 2, 4, 8, 16, 32]).fit().law
            'power'
        """
        if law is not None:
            one_of("law", law, LAWS)
        return best_law(*self._points(shortest, longest, threshold, unbiased), law)

    def regimes(self, most: int = 3, *, threshold: float | None = None) -> tuple[Regime, ...]:
        """Finds ranges of lags that follow different laws: as many as the data call for, at most ``most``.

        Args:
            most: greatest number of ranges.
            threshold: as in :meth:`fit`.

        Example:
            >>> from remanence.tasks import BinaryPowerLaw
            >>> task = BinaryPowerLaw(length=256)
            >>> bits = task.draw(400, task.stream("train", seed=0)).T
            >>> [regime.law.law for regime in mutual_information(bits, [1, 2, 4, 8, 16, 32]).regimes()]
            ['power']
        """
        return find_regimes(*self._points(None, None, threshold), positive_int("most", most))

    def _points(
        self, shortest: int | None, longest: int | None, threshold: float | None, unbiased: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lags, ln I and its standard error, where they count."""
        bar = self.floor
        if threshold is not None:
            bar = threshold
        shown = self.values
        if unbiased:
            shown = self.excess
        kept = (self.values > bar) & (shown > 0) & (self.lags >= (shortest or 1))
        kept &= self.lags <= (longest or self.lags.max())
        values = shown[kept]
        return self.lags[kept], np.log(values), np.nan_to_num(self.error[kept] / values)

    @property
    def verdict(self) -> str:
        """Law, its parameter and how far the information rises above the floor."""
        if not self.above.any():
            return f"no mutual information above the noise floor of {self.floor.max():.2g} nats"
        reach = int(self.lags[self.above].max())
        words = f"mutual information above the noise up to lag {reach} of {self.lags.max()}"
        law = self.fit()
        if law is not None:
            words += f"; {law.verdict}"
        return words

    def figures(self, law: InformationLaw | None = None) -> list[Figure]:
        """Information against lag, both logarithmic, with interval, noise floor and a law, or the fitted one."""
        colour = looks(["estimate"])["estimate"]
        estimate = Curve("estimate", self.lags, self.values, "both", colour)
        floor = Curve("noise floor", self.lags, self.floor, look=dataclasses.replace(colour, dash="dot"), faint=True)
        parts: list[Curve | Band] = [estimate, floor]
        if np.isfinite(self.low).all():
            parts.append(Band(("2.5 %", "97.5 %"), self.lags, self.low, self.high, colour))
        law = law or self.fit()
        if law is not None:
            parts.append(
                Curve(f"{law.law} fit", self.lags, law.at(self.lags), look=dataclasses.replace(colour, dash="dash"))
            )
        y = log_axis("mutual information, nats", np.concatenate([self.values, self.floor]))
        return [
            Figure("Mutual information", self.verdict, tuple(parts), log_axis("lag, symbols", self.lags), y, wide=True)
        ]


def mutual_information(
    sequence: object,
    lags: Iterable[int] | torch.Tensor | None = None,
    *,
    estimator: Estimator = "grassberger",
    unit: Unit = "characters",
    groups: int = 20,
    intervals: bool = True,
    draws: int = 20,
    seed: int = 0,
    resamples: int | None = None,
) -> MutualInformation:
    """Estimates the mutual information of two symbols at a distance, over all positions and sequences.

    I = H(X) + H(Y) - H(X, Y) from the counts of pairs ``(x_t, x_{t + lag})``; X and Y have the marginals of that lag.

    Args:
        sequence: bytes; a text; integers, ``(L,)`` for one sequence or ``(S, L)`` for several; a list of any of these;
            a ``pathlib.Path``; or what :func:`read_symbols` gives.
        lags: distances, at least 1; ``None`` for 40 between 1 and a tenth of the longest sequence.
        estimator: of entropy: ``"grassberger"`` is that of Shen 2019, ``"grassberger-g"`` his better one, ``"plug-in"``
            the naive one, ``"miller-madow"`` corrects it to first order.
        unit: whether a text is characters or words.
        groups: groups of whole sequences, or of stretches of a long one, from which the standard errors follow. Each
            should be long compared with the memory of the sequence: groups are taken to be independent.
        intervals: whether standard errors and intervals are wanted. Intervals covered the truth in 93 to 99 % of 250
            three-state chains of 40,000 symbols, at lags of 1 to 64.
        draws: draws without dependence, for the floor. They are independent pairs: in a sequence with a long memory
            the scatter is greater, which the intervals show.
        seed: of the floor.
        resamples: of no use any more; ``intervals`` says whether there are any.

    Warns:
        UserWarning: where estimates lie below the floor, or the alphabet is too large for the sample.

    Reference:
        Shen 2019, "Mutual information scaling and expressive power of sequence models", Appendix D; Grassberger 2003,
        "Entropy estimates from insufficient samplings".

    Example:
        >>> mutual_information(b"01" * 500, [1, 2]).values.round(2)
        array([0.69, 0.69])
    """
    if resamples is not None:
        warnings.warn("`resamples` is no longer used; use `intervals`", DeprecationWarning, stacklevel=2)
        intervals = positive_int("resamples", resamples, 0) > 0
    how = _How(estimator, groups, intervals, draws, seed)
    how.check()
    symbols = as_symbols(sequence, unit)
    distances = checked_lags(lags, symbols)
    count = _by_tables
    if symbols.alphabet > LARGEST_TABLE:
        count = _by_sorting
    found = _curve(list(count(symbols, distances, how)), distances, len(symbols.starts) - 1, estimator)
    for remark in found.warnings:
        warnings.warn(remark, stacklevel=2)
    return found


class _How(NamedTuple):
    estimator: Estimator
    groups: int
    intervals: bool
    draws: int
    seed: int

    def check(self) -> None:
        one_of("estimator", self.estimator, ESTIMATORS)
        positive_int("groups", self.groups, 2)
        boolean("intervals", self.intervals)
        positive_int("draws", self.draws, 2)
        positive_int("seed", self.seed, 0)


class _Row(NamedTuple):
    """What is found at one lag."""

    value: float
    low: float
    high: float
    error: float
    bias: float
    floor: float
    pairs: int
    different: int
    alphabet: int


def _curve(rows: list[_Row], lags: np.ndarray, sequences: int, estimator: Estimator) -> MutualInformation:
    value, low, high, error, bias, floor = (np.array([getattr(row, name) for row in rows]) for name in _Row._fields[:6])
    pairs = np.array([row.pairs for row in rows], np.int64)
    remarks = _remarks(lags, value, floor, any(row.pairs < _THIN * row.different for row in rows))
    seen = max(row.alphabet for row in rows)
    return MutualInformation(lags, value, low, high, error, bias, floor, pairs, seen, sequences, estimator, remarks)


def _by_tables(symbols: Symbols, lags: np.ndarray, how: _How) -> Iterator[_Row]:
    """Small alphabets: a floor for each lag."""
    for lag, counts in zip(lags, pairs_by_lag(symbols, lags, how.groups), strict=True):
        generator = np.random.default_rng([how.seed, lag])
        value = counts.value(how.estimator)
        error = math.nan
        if how.intervals:
            error = counts.error(how.estimator)
        noise = counts.independent(how.estimator, how.draws, generator)
        seen = len(np.union1d(counts.first, counts.second))
        yield _Row(*_interval(value, error, counts.groups), *_floor(noise), counts.total, len(counts.first), seen)


def _by_sorting(symbols: Symbols, lags: np.ndarray, how: _How) -> Iterator[_Row]:
    """Large alphabets, threads over lags: lags share a floor while they have about as many pairs."""
    groups = 1
    if how.intervals:
        groups = min(how.groups, len(symbols.values))
    edges = group_edges(symbols, groups)
    places = Places.of(symbols, edges)
    floor = (0.0, 0.0)
    pairs = 0
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for found in _side_by_side(pool, lambda lag: sorted_pairs(places, int(lag), how.estimator), lags):
            if abs(found.total - pairs) > _ALIKE * pairs:
                shuffle = partial(_shuffle, found, how)
                floor = _floor(np.array(list(_side_by_side(pool, shuffle, range(how.draws)))))
                pairs = found.total
            seen = int(np.count_nonzero((found.first > 0) | (found.second > 0)))
            ends = _interval(found.value, found.error, len(edges) - 1)
            yield _Row(*ends, *floor, found.total, found.different, seen)


def _side_by_side(pool: ThreadPoolExecutor, work: Callable[[Any], Any], items: Sequence[Any] | np.ndarray) -> Iterator:
    """As many at a time as there are threads: results that wait for their turn take memory."""
    for at in range(0, len(items), torch.get_num_threads()):
        yield from pool.map(work, items[at : at + torch.get_num_threads()])


def _shuffle(found: SortedPairs, how: _How, draw: int) -> float:
    return shuffled_value(found, how.estimator, np.random.default_rng([how.seed, found.total, draw]))


def _interval(value: float, error: float, groups: int) -> tuple[float, float, float, float]:
    """Value, lower end, upper end and standard error."""
    if math.isnan(error):
        return value, math.nan, math.nan, math.nan
    reach = student(groups - 1) * error
    return value, value - reach, value + reach, error


def _floor(noise: np.ndarray) -> tuple[float, float]:
    """Bias and floor."""
    return float(noise.mean()), float(noise.mean() + 2 * noise.std(ddof=1)) + _ROUNDING


def _remarks(lags: np.ndarray, values: np.ndarray, floor: np.ndarray, thin: bool) -> tuple[str, ...]:
    remarks = []
    if (below := values <= floor).any():
        first = int(lags[below][0])
        remarks.append(
            f"{below.sum()} of {len(lags)} estimates are not above the noise floor, the first at lag {first}"
        )
    if thin:
        remarks.append(
            f"the alphabet is too large for the sample: fewer than {_THIN} pairs for each different pair; the "
            "estimates are biased. Take more data or fewer symbols"
        )
    return tuple(remarks)
