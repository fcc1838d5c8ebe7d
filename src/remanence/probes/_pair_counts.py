"""Tables of the pairs at each lag, apart by groups of places, from which standard error and floor follow."""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from collections.abc import Iterator

import numpy as np
import torch

from remanence.ops import count_pairs

from ._entropy import Estimator, information_from_counts
from ._symbols import Symbols

_TABLE_CELLS = 1 << 23  # numbers in the tables that are held at a time
_BLOCK = 1 << 20  # places that are looked at at a time
LARGEST_TABLE = 512
"""Alphabet from which on the table of all pairs gives way to sorting."""


@dataclasses.dataclass(frozen=True)
class PairCounts:
    """Pairs that were seen at one lag."""

    first: np.ndarray
    """``(U,)``."""
    second: np.ndarray
    """``(U,)``."""
    counts: np.ndarray
    """int64 ``(G, U)``."""

    @property
    def total(self) -> int:
        """Number of pairs."""
        return int(self.counts.sum())

    def value(self, estimator: Estimator) -> float:
        """The estimate from all groups together."""
        return float(information_from_counts(self.counts.sum(0), self.first, self.second, estimator))

    @property
    def groups(self) -> int:
        """Number of groups that have a pair."""
        return int(np.count_nonzero(self.counts.sum(1)))

    def error(self, estimator: Estimator) -> float:
        """Standard error, from leaving out one group after the other (jackknife); NaN of a single group.

        Neighbouring pairs are alike; stretches that are long compared with the memory of the sequence are independent.
        """
        if self.groups < 2:
            return math.nan
        held = self.counts[self.counts.sum(1) > 0]
        values = information_from_counts(held.sum(0) - held, self.first, self.second, estimator)
        # The jackknife's variance: (G - 1) times the mean square deviation of the G estimates.
        return math.sqrt((len(values) - 1) * values.var())

    def independent(self, estimator: Estimator, draws: int, generator: np.random.Generator) -> np.ndarray:
        """Estimates from as many pairs with the same marginals and nothing in common, as after a shuffle: ``(D,)``."""
        together = self.counts.sum(0)
        # Symbols that never occur would only widen the table of chances.
        seen = [np.unique(side, return_inverse=True)[1] for side in (self.first, self.second)]
        rows, columns = (np.bincount(side, weights=together) for side in seen)
        chances = np.outer(rows, columns).ravel() / self.total**2
        drawn = generator.multinomial(self.total, chances / chances.sum(), size=draws)
        first, second = np.divmod(np.arange(len(chances)), len(columns))
        return information_from_counts(drawn, first, second, estimator)


def group_edges(symbols: Symbols, groups: int) -> np.ndarray:
    """Where the groups begin: whole sequences if there are enough, else equal stretches: int64 ``(G + 1,)``."""
    sequences = len(symbols.starts) - 1
    if sequences >= groups:
        return symbols.starts[np.linspace(0, sequences, groups + 1).round().astype(int)]
    return np.linspace(0, len(symbols.values), groups + 1).round().astype(np.int64)


def pairs_by_lag(symbols: Symbols, lags: np.ndarray, groups: int) -> Iterator[PairCounts]:
    """The counts at one lag after the other."""
    edges = group_edges(symbols, min(groups, len(symbols.values)))
    if symbols.values.dtype == np.uint8:
        yield from _counted(symbols, lags, edges)
    else:
        for lag in lags:
            yield _listed(symbols, int(lag), edges)


def _counted(symbols: Symbols, lags: np.ndarray, edges: np.ndarray) -> Iterator[PairCounts]:
    """By tables of all pairs, in the kernel, as many lags at a time as fit."""
    size = symbols.alphabet
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given buffer is not writable")  # and nobody will write
        values = torch.frombuffer(symbols.values.data, dtype=torch.uint8)
    starts = torch.from_numpy(symbols.starts)
    groups = torch.from_numpy(edges)
    step = max(2, _TABLE_CELLS // (size * size * (len(edges) - 1)))
    for at in range(0, len(lags), step):
        tables = count_pairs(values, torch.from_numpy(lags[at : at + step]), size, starts=starts, groups=groups)
        for table in tables.numpy():
            flat = table.reshape(len(edges) - 1, -1)
            codes = np.flatnonzero(flat.any(0))
            yield PairCounts(*np.divmod(codes, size), flat[:, codes])


def _listed(symbols: Symbols, lag: int, edges: np.ndarray) -> PairCounts:
    """By a table too, in blocks of places; of symbols that are no bytes."""
    size = symbols.alphabet
    groups = len(edges) - 1
    table = np.zeros((groups, size * size), np.int64)
    for group, first, second in pair_blocks(symbols, lag, edges):
        table[group] += np.bincount(first.astype(np.int64) * size + second, minlength=size * size)
    seen = np.flatnonzero(table.any(0))
    return PairCounts(*np.divmod(seen, size), table[:, seen])


def pair_blocks(symbols: Symbols, lag: int, edges: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Group, first and second symbols of the pairs within sequences, a block of places at a time."""
    values = symbols.values
    starts = symbols.starts
    end = len(symbols.values) - lag
    for group, (begin, stop) in enumerate(itertools.pairwise(edges.tolist())):
        for at in range(begin, min(stop, end), _BLOCK):
            to = min(at + _BLOCK, stop, end)
            first = values[at:to]
            second = values[at + lag : to + lag]
            # One sequence has no border inside; with several, a pair must not reach into the next one.
            if len(starts) > 2:
                places = np.arange(at, to)
                inside = places + lag < starts[np.searchsorted(starts, places, side="right")]
                first = first[inside]
                second = second[inside]
            yield group, first, second
