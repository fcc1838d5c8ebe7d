"""Entropy and mutual information from counts: four estimators, which differ in their bias."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import torch

Estimator: TypeAlias = Literal["grassberger", "plug-in", "miller-madow", "grassberger-g"]
ESTIMATORS: tuple[Estimator, ...] = ("grassberger", "plug-in", "miller-madow", "grassberger-g")


def entropy(counts: np.ndarray, estimator: Estimator = "grassberger") -> np.ndarray:
    """Entropies in nats of rows of counts, ``(..., V)``; a symbol that was never seen adds nothing.

    ``"plug-in"`` is ln N - sum n ln n / N, too low by (V - 1) / 2N; ``"miller-madow"`` adds that for the V symbols
    seen. ``"grassberger"`` has psi(n) for ln n (Equation 53 of Shen 2019), ``"grassberger-g"`` Grassberger's better
    G(n) = psi(n) + (-1)^n (psi((n + 1) / 2) - psi(n / 2)) / 2.

    Example:
        >>> entropy(np.array([5, 5]), "plug-in").round(4)
        np.float64(0.6931)
    """
    total = counts.sum(-1).astype(float)
    mean = weighted_logs(counts, estimator).sum(-1) / total
    found = np.log(total) - mean
    if estimator == "miller-madow":
        found = found + ((counts > 0).sum(-1) - 1) / (2 * total)
    return found


def weighted_logs(counts: np.ndarray, estimator: Estimator) -> np.ndarray:
    """Count times the estimator's stand-in for its logarithm; 0 where it is 0."""
    n = torch.from_numpy(np.asarray(counts, dtype=float))
    seen = n.clamp(min=1)
    if estimator in ("plug-in", "miller-madow"):
        return (n * seen.log()).numpy()
    logs = torch.digamma(seen)
    if estimator == "grassberger-g":
        sign = 1 - 2 * torch.remainder(seen, 2)
        logs = logs + sign / 2 * (torch.digamma((seen + 1) / 2) - torch.digamma(seen / 2))
    return (n * logs).numpy()


def information_from_counts(
    counts: np.ndarray, first: np.ndarray, second: np.ndarray, estimator: Estimator = "grassberger"
) -> np.ndarray:
    """Mutual information in nats, H(X) + H(Y) - H(X, Y), from counts of pairs that were seen.

    Args:
        counts: ``(..., U)``, one column for each pair.
        first: ``(U,)``, the first symbol of each pair.
        second: ``(U,)``, the second.
        estimator: one of the four.

    Returns:
        ``(...)``.

    Example:
        >>> information_from_counts(np.array([4, 4]), np.array([0, 1]), np.array([0, 1]), "plug-in").round(4)
        np.float64(0.6931)
    """
    parts = [entropy(_sums(counts, symbols), estimator) for symbols in (first, second)]
    return parts[0] + parts[1] - entropy(counts, estimator)


def _sums(counts: np.ndarray, symbols: np.ndarray) -> np.ndarray:
    """Sums of the columns that share a symbol: ``(..., symbols seen)``."""
    order = np.argsort(symbols, kind="stable")
    sorted_symbols = symbols[order]
    begins = np.flatnonzero(np.r_[True, sorted_symbols[1:] != sorted_symbols[:-1]])
    return np.add.reduceat(counts[..., order], begins, axis=-1)
