"""Sums over chains of steps: what solves the recursions of Kerg et al. 2020, appendix A.2."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

import torch
from torch import Tensor

from remanence._validate import positive_int


def chain_sum(factor: Callable[[int, int], Tensor], first: int, last: int, s: int, *, printed: bool = False) -> Tensor:
    """Sum over chains of s steps, xi_{r:k}(s) of Eq. 23.

    Over all ``r = i_1 < .. < i_{s+1} = k`` it sums the products of ``F_{i_{m+1},i_m}``, latest first.

    Args:
        factor: ``factor(later, earlier)`` gives F, ``(n, n)``.
        first: r.
        last: k, at least ``r + s`` for anything to be summed.
        s: number of factors.
        printed: leave the second factor of every product out, as the paper does.

    Returns:
        ``(n, n)``.

    Example:
        >>> ones = lambda later, earlier: torch.ones(1, 1)
        >>> [int(chain_sum(ones, 0, 4, s)) for s in (1, 2, 3, 4)]
        [1, 3, 3, 1]
    """
    positive_int("s", s)
    total = torch.zeros_like(factor(last, first))
    for inner in combinations(range(first + 1, last), s - 1):
        edges = [(later, earlier) for earlier, later in pairwise((first, *inner, last))][::-1]
        kept = [edge for number, edge in enumerate(edges) if not (printed and number == 1)]
        product = torch.eye(total.shape[0], dtype=total.dtype)
        for edge in kept:
            product = product @ factor(*edge)
        total = total + product
    return total
