"""Mutual information of large alphabets, such as words: pairs are sorted, and no table of all of them is held.

Places are put in the order of their symbols, once for all lags, in a temporary file. Then pairs are looked at in ranges
of their first symbol, at most ``HELD`` at a time. So memory is bounded, whatever the length of the sequence, and grows
with the alphabet alone.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ._entropy import Estimator, weighted_logs
from ._pair_counts import pair_blocks
from ._symbols import Symbols

HELD = 1 << 20
"""Pairs that are sorted together: some 100 MB at work, for each thread."""
_BLOCK = 1 << 20  # places that are looked at at a time
_SMALL = 4096  # counts whose logarithms are looked up


@dataclasses.dataclass(frozen=True)
class SortedPairs:
    """What is found at one lag."""

    value: float
    """Nats, from all groups together."""
    error: float
    """Standard error, from leaving out one group after the other (jackknife); NaN of a single group."""
    different: int
    """Number of different pairs."""
    first: np.ndarray
    """int64 ``(A,)``: how often each symbol comes first."""
    second: np.ndarray
    """int64 ``(A,)``."""

    @property
    def total(self) -> int:
        """Number of pairs."""
        return int(self.first.sum())


class _Logs:
    """Counts times the estimator's stand-in for their logarithms, less half a count with Miller and Madow's term."""

    def __init__(self, estimator: Estimator) -> None:
        self.estimator: Estimator = estimator
        self.correction = 0.5 * (estimator == "miller-madow")
        self.small = self._of(np.arange(_SMALL))

    def _of(self, counts: np.ndarray) -> np.ndarray:
        return weighted_logs(counts, self.estimator) - self.correction * (counts > 0)

    def __call__(self, counts: np.ndarray) -> np.ndarray:
        # Nearly all counts are small, and those are looked up.
        found = self.small[np.minimum(counts, _SMALL - 1)]
        large = counts >= _SMALL
        found[large] = self._of(counts[large])
        return found

    def information(
        self, pairs: float | np.ndarray, marginals: float | np.ndarray, totals: float | np.ndarray
    ) -> np.ndarray:
        """H(X) + H(Y) - H(X, Y) from sums over pairs, sums over both marginals, and numbers of pairs."""
        return np.log(totals) - (marginals - pairs + self.correction) / totals


@dataclasses.dataclass(frozen=True)
class Places:
    """All places, those of one symbol after those of another."""

    symbols: Symbols
    """Whose."""
    edges: np.ndarray
    """int64 ``(G + 1,)``, where groups of places begin."""
    order: np.ndarray
    """``(N,)``: the places, mapped."""
    ends: np.ndarray
    """int64 ``(A,)``: where those of each symbol end."""

    @classmethod
    def of(cls, symbols: Symbols, edges: np.ndarray) -> Places:
        """Sorts them, a block at a time."""
        values = symbols.values
        blocks = [(at, values[at : at + _BLOCK]) for at in range(0, len(values), _BLOCK)]
        ends = np.cumsum(sum(np.bincount(block, minlength=symbols.alphabet) for _, block in blocks))
        following = np.concatenate([[0], ends[:-1]])
        with tempfile.TemporaryFile() as file:
            order = np.memmap(file, np.min_scalar_type(len(values)), "w+", shape=values.shape)
            for at, block in blocks:
                # A counting sort over blocks: the places of a symbol go behind those that earlier blocks had of it.
                inside = np.argsort(block, kind="stable")
                found = block[inside]
                begins = _begins(found)
                counts = np.diff(np.append(begins, len(found)))
                rank = np.arange(len(found)) - np.repeat(begins, counts)
                order[following[found] + rank] = at + inside
                following[found[begins]] += counts
            return cls(symbols, edges, order, ends)

    def pairs(self, lag: int, low: int, high: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First symbols less ``low``, second symbols and groups, of pairs whose first symbol is in a range."""
        begin = 0
        if low > 0:
            begin = int(self.ends[low - 1])
        places = self.order[begin : self.ends[high - 1]].astype(np.int64)
        first = np.repeat(np.arange(high - low), np.diff(self.ends[low:high], prepend=begin))
        starts = self.symbols.starts
        ends = starts[-1]  # of the sequence in which each place lies; a single one needs no search
        if len(starts) > 2:
            ends = starts[np.searchsorted(starts, places, side="right")]
        inside = places + lag < ends
        if not inside.all():
            places = places[inside]
            first = first[inside]
        groups = np.searchsorted(self.edges, places, side="right") - 1
        return first, self.symbols.values[places + lag], groups


def sorted_pairs(places: Places, lag: int, estimator: Estimator) -> SortedPairs:
    """Counts the pairs at one lag by sorting them.

    Example:
        >>> from remanence.probes._symbols import as_symbols
        >>> found = sorted_pairs(Places.of(as_symbols(b"0101"), np.array([0, 4])), 1, "plug-in")
        >>> found.total, found.different
        (3, 2)
    """
    symbols = places.symbols
    edges = places.edges
    logs = _Logs(estimator)
    sides = _marginals(symbols, lag, edges)
    first, second = (side.sum(0) for side in sides)
    pairs = 0.0
    without = np.zeros(len(edges) - 1)
    different = 0
    for low, high in _ranges(np.diff(places.ends, prepend=0)):
        found = _counted(places, lag, low, high)
        pairs += float(logs(found.together).sum())
        different += len(found.together)
        without += _changes(found, logs, len(edges) - 1)
    total = first.sum()
    totals = sides[0].sum(1)
    value = logs.information(pairs, logs(first).sum() + logs(second).sum(), total)
    rest = [[logs(whole - part).sum() for part in side] for whole, side in zip((first, second), sides, strict=True)]
    left = np.array(rest).sum(0)
    # Without a group that has no pair nothing changes, and without one that has all nothing is left.
    kept = (totals > 0) & (totals < total)
    values = logs.information(pairs + without[kept], left[kept], total - totals[kept])
    error = np.nan
    if len(values):
        error = np.sqrt((len(values) - 1) * values.var())
    return SortedPairs(float(value), float(error), different, first, second)


def shuffled_value(pairs: SortedPairs, estimator: Estimator, generator: np.random.Generator) -> float:
    """The estimate after the second symbols have been shuffled, so that pairs have nothing in common."""
    logs = _Logs(estimator)
    left = pairs.second
    found = 0.0
    for low, high in _ranges(pairs.first):
        share = pairs.first[low:high]
        # To deal the second symbols out range by range, by the hypergeometric law, is to shuffle all of them.
        dealt = left
        if int(share.sum()) < int(left.sum()):  # the last range takes what is left
            dealt = generator.multivariate_hypergeometric(left, int(share.sum()), method="marginals")
        left = left - dealt
        if high - low == 1:
            counts = dealt
        else:
            seconds = generator.permutation(np.repeat(np.arange(len(dealt)), dealt))
            counts = _runs(np.repeat(np.arange(len(share)), share) * len(dealt) + seconds)[1]
        found += float(logs(counts).sum())
    marginals = logs(pairs.first).sum() + logs(pairs.second).sum()
    return float(logs.information(found, marginals, pairs.total))


class _Counts(NamedTuple):
    """Different pairs, and apart by the groups where they occur."""

    together: np.ndarray
    """``(U,)``."""
    apart: np.ndarray
    """``(E,)``."""
    whole: np.ndarray
    """``(E,)``: of the same pair in all groups."""
    group: np.ndarray
    """``(E,)``."""


def _changes(found: _Counts, logs: _Logs, groups: int) -> np.ndarray:
    """What the sum over pairs loses without each group: ``(G,)``. Most pairs are seen once, which needs no look-up."""
    if groups == 1:
        return np.zeros(1)
    more = found.whole > 1
    once = np.bincount(found.group[~more], minlength=groups) * logs(np.ones(1, np.int64))
    whole = found.whole[more]
    apart = found.apart[more]
    return np.bincount(found.group[more], weights=logs(whole - apart) - logs(whole), minlength=groups) - once


def _ranges(first: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of first symbols that come at most ``HELD`` times, or are a single symbol."""
    ends = np.cumsum(first)
    low = 0
    before = 0
    while low < len(first):
        high = max(int(np.searchsorted(ends, before + HELD, side="right")), low + 1)
        yield low, high
        low = high
        before = ends[high - 1]


def _marginals(symbols: Symbols, lag: int, edges: np.ndarray) -> np.ndarray:
    """How often each symbol comes first and second, by groups: int64 ``(2, G, A)``."""
    counts = np.zeros((2, len(edges) - 1, symbols.alphabet), np.int64)
    for group, first, second in pair_blocks(symbols, lag, edges):
        for side, part in zip(counts, (first, second), strict=True):
            side[group] += np.bincount(part, minlength=symbols.alphabet)
    return counts


def _counted(places: Places, lag: int, low: int, high: int) -> _Counts:
    """Pairs whose first symbol is in a range: by sorting, or by a table where it is one symbol."""
    if high - low == 1:
        return _tabled(places.symbols, lag, places.edges, low)
    bits = (len(places.edges) - 2).bit_length()  # the last bits of a key are its group
    first, second, group = places.pairs(lag, low, high)
    keys = (first * places.symbols.alphabet + second << bits) | group
    del first, second, group
    seen, counts = _runs(keys)
    begins = _begins(seen >> bits)
    together = counts
    if len(begins):
        together = np.add.reduceat(counts, begins)
    whole = np.repeat(together, np.diff(np.append(begins, len(seen))))
    return _Counts(together, counts, whole, seen & ((1 << bits) - 1))


def _tabled(symbols: Symbols, lag: int, edges: np.ndarray, symbol: int) -> _Counts:
    table = np.zeros((symbols.alphabet, len(edges) - 1), np.int64)
    for group, first, second in pair_blocks(symbols, lag, edges):
        table[:, group] += np.bincount(second[first == symbol], minlength=symbols.alphabet)
    table = table[table.any(1)]
    together = table.sum(1)
    pair, group = table.nonzero()
    return _Counts(together, table[pair, group], together[pair], group)


def _runs(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different keys in order, and how often they come. The keys are sorted in place."""
    keys.sort()
    begins = _begins(keys)
    return keys[begins], np.diff(np.append(begins, len(keys)))


def _begins(ordered: np.ndarray) -> np.ndarray:
    """Where another value begins."""
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
