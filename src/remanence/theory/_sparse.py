"""Sparse attention over a linear recurrence: every step attends uniformly to a given set of earlier steps.

Steps count from 1; ``sets[t]`` names the steps that step ``t`` attends to, itself among them or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np
from numpy.typing import NDArray

Sets = Mapping[int, Set[int]]


def _weight(sets: Sets, reader: int, read: int) -> float:
    """Weight of one edge: the read, and 1 more where the state itself goes into its macro-state."""
    attended = sets.get(reader, frozenset())
    share = 1 / len(attended) if read in attended else 0.0
    return share + (reader == read)


def sparse_transfer(eigenvalue: complex, sets: Sets, t: int, k: int) -> complex:
    """p(lambda): the derivative ds_{t+k}/dh_t along one eigenvector of V.

    Args:
        eigenvalue: lambda.
        sets: attended steps of every step; a step without an entry reads nothing.
        t: step of the state.
        k: distance.

    Example:
        >>> sparse_transfer(0.5, {3: {1}}, t=1, k=2)
        (1.25+0j)
    """
    values = [complex(_weight(sets, t, t))]
    for reader in range(t + 1, t + k + 1):
        later = sum(_weight(sets, reader, t + j + 1) * values[j] for j in range(reader - t))
        values.append(_weight(sets, reader, t) + eigenvalue * later)
    return values[-1]


def sparse_chi(sets: Sets, t: int, k: int) -> NDArray[np.float64]:
    """chi_{0:k}(s) for s = 0 .. k: how much of ds_{t+k}/dh_t goes through exactly s Jacobians.

    Args:
        sets: attended steps of every step.
        t: step of the state.
        k: distance.

    Returns:
        ``(k + 1,)``.

    Example:
        >>> sparse_chi({3: {1}}, t=1, k=2).tolist()
        [1.0, 0.0, 1.0]
    """
    table = np.zeros((k + 1, k + 1))
    table[0, 0] = _weight(sets, t, t)
    for j in range(1, k + 1):
        reader = t + j
        table[j, 0] = _weight(sets, reader, t)
        for i in range(j):
            table[j, 1:] += _weight(sets, reader, t + i + 1) * table[i, :-1]
    return table[k]


def read_depth(sets: Sets, t: int, k: int) -> int:
    """The dependency depth: the least number of Jacobians on any path from ``t`` to ``t + k``.

    Example:
        >>> read_depth({3: {1}}, t=1, k=2), read_depth({}, t=1, k=2)
        (0, 2)
    """
    return int(np.flatnonzero(sparse_chi(sets, t, k))[0])


def dependency_bound(eigenvalue: float, depth: int, kappa: int) -> float:
    """Theorem 2 with its constants: the Frobenius norm is at least ``lambda^d kappa^-(d+1)``, lambda > 0 an eigenvalue.

    Args:
        eigenvalue: a positive real eigenvalue of the normal matrix V.
        depth: d, the number of Jacobians; the reads are one more.
        kappa: most states that any step attends to.

    Example:
        >>> dependency_bound(0.5, depth=1, kappa=2)
        0.125
    """
    return eigenvalue**depth * kappa ** -(depth + 1)


def random_sets(generator: np.random.Generator, length: int, kappa: int) -> dict[int, frozenset[int]]:
    """Every step attends to ``min(kappa, t)`` steps drawn without replacement, itself included.

    Example:
        >>> len(random_sets(np.random.default_rng(0), 5, 2)[5])
        2
    """
    choose: Sequence[int] = range(1, length + 1)
    return {t: frozenset(generator.choice(t, min(kappa, t), replace=False) + 1) for t in choose}
