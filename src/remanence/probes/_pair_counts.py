"""Counts of the pairs at each lag, apart by groups of places, from which bootstrap and floor follow."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator

import numpy as np
import torch

from remanence.ops import count_pairs

from ._entropy import Estimator, information
from ._symbols import Symbols

_TABLE_CELLS = 1 << 23  # numbers in the tables that are held at a time
_DENSE_CELLS = 1 << 22  # a greater table of all pairs gives way to sorting
_PRODUCT_CELLS = 1 << 18


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
        return float(information(self.counts.sum(0), self.first, self.second, estimator))

    def resampled(self, estimator: Estimator, resamples: int, generator: np.random.Generator) -> np.ndarray:
        """Estimates from groups drawn with replacement, their spread made that of independent groups: ``(R,)``.

        Only the spread is kept: values drawn twice look like information, so the centre is put back to zero.
        """
        groups = self.counts[self.counts.sum(1) > 0]
        if len(groups) < 2 or resamples < 2:
            return np.full(max(resamples, 1), np.nan)
        weights = generator.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), size=resamples)
        step = max(1, _DENSE_CELLS // groups.shape[1])
        parts = [weights[at : at + step] @ groups for at in range(0, resamples, step)]
        values = np.concatenate([information(part, self.first, self.second, estimator) for part in parts])
        return (values - values.mean()) * np.sqrt(len(groups) / (len(groups) - 1))

    def independent(self, estimator: Estimator, draws: int, generator: np.random.Generator) -> np.ndarray:
        """Estimates from as many pairs with the same marginals and nothing in common, as after a shuffle: ``(D,)``."""
        together = self.counts.sum(0)
        seen = [np.unique(side, return_inverse=True)[1] for side in (self.first, self.second)]
        rows, columns = (np.bincount(side, weights=together) for side in seen)
        if len(rows) * len(columns) > _PRODUCT_CELLS:
            return np.array([_shuffled(rows, columns, estimator, generator) for _ in range(draws)])
        chances = np.outer(rows, columns).ravel() / self.total**2
        drawn = generator.multinomial(self.total, chances / chances.sum(), size=draws)
        first, second = np.divmod(np.arange(len(chances)), len(columns))
        return information(drawn, first, second, estimator)


def _shuffled(rows: np.ndarray, columns: np.ndarray, estimator: Estimator, generator: np.random.Generator) -> float:
    first = np.repeat(np.arange(len(rows)), rows.astype(int))
    second = generator.permutation(np.repeat(np.arange(len(columns)), columns.astype(int)))
    codes, counts = np.unique(first * len(columns) + second, return_counts=True)
    return float(information(counts, *np.divmod(codes, len(columns)), estimator))


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
    starts, groups = torch.from_numpy(symbols.starts), torch.from_numpy(edges)
    step = max(2, _TABLE_CELLS // (size * size * (len(edges) - 1)))
    for at in range(0, len(lags), step):
        tables = count_pairs(values, torch.from_numpy(lags[at : at + step]), size, starts=starts, groups=groups)
        for table in tables.numpy():
            flat = table.reshape(len(edges) - 1, -1)
            codes = np.flatnonzero(flat.any(0))
            yield PairCounts(*np.divmod(codes, size), flat[:, codes])


def _listed(symbols: Symbols, lag: int, edges: np.ndarray) -> PairCounts:
    """Without a table of all pairs where that would be large: by sorting the pairs that occur."""
    size, values = symbols.alphabet, symbols.values
    ends = np.repeat(symbols.starts[1:], np.diff(symbols.starts))[: max(len(values) - lag, 0)]
    first = np.flatnonzero(np.arange(lag, lag + len(ends)) < ends)
    codes = values[first] * size + values[first + lag]
    group = np.searchsorted(edges, first, side="right") - 1
    if size * size * (len(edges) - 1) <= _DENSE_CELLS * 4:
        table = np.bincount(group * (size * size) + codes, minlength=(len(edges) - 1) * size * size)
        table = table.reshape(len(edges) - 1, -1)
        seen = np.flatnonzero(table.any(0))
        return PairCounts(*np.divmod(seen, size), table[:, seen])
    seen, inverse = np.unique(codes, return_inverse=True)
    table = np.bincount(group * len(seen) + inverse, minlength=(len(edges) - 1) * len(seen))
    return PairCounts(*np.divmod(seen, size), table.reshape(len(edges) - 1, -1))
