"""Uniform attention over a linear recurrence: how the gradient from step ``t + k`` to step ``t`` behaves.

The setting of Kerg et al. 2020: ``h_{t+1} = V s_t + ...``, ``s_t = h_t + mean(h_1 .. h_t)``, steps counted from 1. For
every eigenvalue of ``V`` the derivative ds_{t+k}/dh_t is a number, p(lambda) = sum_s lambda^s chi_{0:k}(s).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from remanence._validate import positive_int

Numbers = NDArray[np.float64]


def uniform_transfer(eigenvalue: complex, t: int, k: int) -> NDArray[np.complex128]:
    """p(lambda) at all distances 0 .. k, in linear time.

    With S the running sum of p, ``p_{j+1} = (1 + lambda S_j) / (t + j + 1) + lambda p_j`` and ``p_0 = 1 + 1/t``.

    Args:
        eigenvalue: lambda.
        t: step of the state, from 1.
        k: greatest distance.

    Returns:
        ``(k + 1,)`` complex.

    Example:
        >>> uniform_transfer(0.5, t=1, k=2).real.round(4).tolist()
        [2.0, 2.0, 2.0]
    """
    positive_int("t", t)
    positive_int("k", k, minimum=0)
    # ds_t/dh_t = 1 + 1/t: the state itself, and its share in the mean.
    value = 1 + 1 / t + 0j
    total = value
    values = [value]
    for place in range(t + 1, t + k + 1):
        value = (1 + eigenvalue * total) / place + eigenvalue * value
        total += value
        values.append(value)
    return np.array(values)


def growth_exponent(eigenvalue: complex) -> float:
    """The power of T with which abs(p(lambda)) grows: Re(lambda / (1 - lambda)) - 1, for abs(lambda) < 1.

    It is at least -1 exactly when abs(lambda - 1/2) <= 1/2, and positive, a gradient that grows, for real lambda > 1/2.

    Example:
        >>> growth_exponent(0.5), round(growth_exponent(-0.5), 3)
        (0.0, -1.333)
    """
    return complex(eigenvalue / (1 - eigenvalue)).real - 1


def printed_exponent(eigenvalue: complex) -> float:
    """The exponent as the paper prints it, max(-1, Re(lambda) - 1); :func:`growth_exponent` is the true one.

    Example:
        >>> printed_exponent(0.5), printed_exponent(-0.5)
        (-0.5, -1.0)
    """
    return max(-1.0, complex(eigenvalue).real - 1)


def power_sums(t: int, k: int, degree: int) -> list[float]:
    """S_1 .. S_degree with ``S_l = sum_{i<k} (t + i)^-l``; entry 0 is k.

    Example:
        >>> power_sums(t=1, k=2, degree=2)
        [2.0, 1.5, 1.25]
    """
    base = 1 / np.arange(t, t + k, dtype=float)
    return [float((base**power).sum()) for power in range(degree + 1)]


def omega(t: int, low: int, high: int, depth: int) -> Numbers:
    """omega_{low:high}(s) for s = 0 .. depth: elementary symmetric sums of ``1 / (t + i)``, ``low <= i < high``.

    Example:
        >>> omega(t=1, low=0, high=2, depth=3).tolist()
        [1.0, 1.5, 0.5, 0.0]
    """
    sums = np.zeros(depth + 1)
    sums[0] = 1.0
    for place in range(t + low, t + high):
        # Whether the factor 1 / place is taken or not: the right-hand side is the sum without it.
        sums[1:] += sums[:-1] / place
    return sums


def _ending_at(t: int, k: int, depth: int) -> Numbers:
    """``g[s, i]``: the sum over chains of ``s`` indices that end at ``i <= k``; row 0 is unused."""
    place = 1 / np.arange(t, t + k + 1, dtype=float)
    table = np.zeros((depth + 1, k + 1))
    if depth:
        # A chain of one index ends in the mean, 1 / (t + i), or, for i = 0, in the state itself.
        table[1] = place
        table[1, 0] += 1
    for s in range(2, depth + 1):
        # The index before may be any smaller one through the mean, or the one just before through the recurrence.
        before = np.concatenate([[0.0], np.cumsum(table[s - 1])[:-1]])
        table[s] = place * before
        table[s, 1:] += table[s - 1, :-1]
    return table


def theta(t: int, k: int, depth: int) -> Numbers:
    """theta_{0:k}(s) for s = 0 .. depth (theta(0) = 1), in O(k depth).

    Example:
        >>> theta(t=2, k=2, depth=2).round(4).tolist()
        [1.0, 1.8333, 2.0]
    """
    table = _ending_at(t, max(k - 1, 0), depth)
    sums = table.sum(axis=1) if k else np.zeros(depth + 1)
    sums[0] = 1.0
    return sums


def chi(t: int, k: int, depth: int) -> Numbers:
    """chi_{0:k}(s) for s = 0 .. depth: the coefficients of V^s in ds_{t+k}/dh_t, in O(k depth).

    Example:
        >>> bool(abs((0.5 ** np.arange(4) * chi(1, 3, 3)).sum() - uniform_transfer(0.5, 1, 3)[-1]) < 1e-12)
        True
    """
    return _ending_at(t, k, depth + 1)[1:, k].copy()


def omega_constants(sums: Sequence[float], *, printed: bool = False) -> list[float]:
    """delta_{s,0} of Lemma 9 for s = 0 .. len(sums) - 1, from ``D(z) = 1 - exp(sum_{l>=2} (-1)^l S_l z^l / l)``.

    Args:
        sums: power sums as :func:`power_sums` gives them.
        printed: put the paper's delta_{4,0} = -(S_4 + 2 S_2^2) / 8 in place of -(2 S_4 + S_2^2) / 8.

    Example:
        >>> omega_constants([0, 1, 1, 1, 1])[2:]
        [-0.5, 0.333..., -0.375]
    """
    exponential = [1.0] + [0.0] * (len(sums) - 1)
    # exp of a series by its derivative: E' = E * (sum)', compared power by power.
    for s in range(2, len(sums)):
        exponential[s] = sum((-1) ** m * sums[m] * exponential[s - m] for m in range(2, s + 1)) / s
    constants = [0.0] + [-value for value in exponential[1:]]
    if printed and len(sums) > 4:
        constants[4] = -(sums[4] + 2 * sums[2] ** 2) / 8
    return constants


def psi(constants: Sequence[float], *, printed: bool = False) -> list[float]:
    """Psi of Proposition 3: sums of products of delta over the ways to write l as a sum of parts of at least 2.

    Args:
        constants: delta_{s,0} from :func:`omega_constants`.
        printed: count ways that differ in order once (partitions), as the paper does; ordered ways (compositions)
            are right. The two differ from l = 5 on.

    Example:
        >>> psi([0, 0, 1, 1, 0, 0])[5], psi([0, 0, 1, 1, 0, 0], printed=True)[5]
        (2.0, 1.0)
    """
    values = [1.0] + [0.0] * (len(constants) - 1)
    # Part by part every multiset is counted once; the loop below, total by total, counts every order.
    if printed:
        for part in range(2, len(constants)):
            for total in range(part, len(constants)):
                values[total] += constants[part] * values[total - part]
        return values
    for total in range(2, len(constants)):
        values[total] = sum(constants[part] * values[total - part] for part in range(2, total + 1))
    return values


def omega_polynomial(sums: Sequence[float], s: int, *, printed: bool = False) -> float:
    """omega_{0:k}(s) by Proposition 3, a polynomial in S_1.

    Args:
        sums: power sums up to degree ``s`` at least.
        s: number of factors.
        printed: with the paper's partitions in psi.

    Example:
        >>> round(omega_polynomial(power_sums(1, 6, 3), 3), 6) == round(float(omega(1, 0, 6, 3)[3]), 6)
        True
    """
    weights = psi(omega_constants(sums[: s + 1]), printed=printed)
    return sum(weights[s - r] * sums[1] ** r / factorial(r) for r in range(s + 1))


def theta_bounds(t: int, k: int, s: int) -> tuple[float, float]:
    """Lower and upper bound of theta_{0:k}(s), Lemma 10; needs ``k >= s >= 1``.

    Example:
        >>> low, high = theta_bounds(t=2, k=5, s=2)
        >>> bool(low <= theta(2, 5, 2)[2] <= high)
        True
    """
    low = sum(comb(s, r) * omega(t, s - r, k, r)[r] for r in range(s + 1))
    high = sum(comb(s, r) * omega(t, 0, k - s + r, r)[r] for r in range(s + 1))
    return float(low), float(high)


def chi_bounds(t: int, k: int, s: int) -> tuple[float, float]:
    """Lower and upper bound of chi_{0:k}(s), Lemma 11; they hold for ``k >= s`` only.

    Example:
        >>> low, high = chi_bounds(t=2, k=5, s=2)
        >>> bool(low <= chi(2, 5, 2)[2] <= high)
        True
    """
    low = sum(comb(s + 1, r + 1) * omega(t, s - r, k, r)[r] for r in range(s + 1)) / (t + k)
    high = sum(comb(s + 1, r + 1) * omega(t, 0, k - s + r, r)[r] for r in range(s + 1)) / (t + k - s)
    # With as many factors as steps there is one chain that the sums leave out: V at every step.
    return float(low) + (k == s), float(high) + (k == s)
