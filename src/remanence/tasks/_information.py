"""Mutual information of two binary symbols that are each as often 0 as 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from remanence import _validate

_NEWTON_STEPS = 100


def pair_information(correlation: Tensor) -> Tensor:
    """Gives the mutual information of two balanced binary symbols.

    With u the correlation of the symbols written as -1 and +1, they are equal with probability (1 + u) / 2 and
    I = u artanh u + ln(1 - u^2) / 2, computed so that no digits are lost where u is near 0 or 1.

    Args:
        correlation: u between -1 and 1, float64, any shape.

    Returns:
        Nats, same shape.

    Example:
        >>> pair_information(torch.tensor([0.0, 1.0], dtype=torch.float64))
        tensor([0.0000, 0.6931], dtype=torch.float64)
    """
    certain = correlation.abs() >= 1
    inside = torch.where(certain, torch.zeros_like(correlation), correlation)
    weak = inside * inside.atanh() + 0.5 * torch.log1p(-inside.square())
    # The square rounds away how far a strong correlation is from 1.
    strong = 0.5 * ((1 + inside) * torch.log1p(inside) + (1 - inside) * torch.log1p(-inside))
    value = torch.where(inside.abs() < 0.5, weak, strong)
    return torch.where(certain, torch.full_like(value, math.log(2)), value)


def pair_correlation(information: Tensor) -> Tensor:
    """Inverts `pair_information`: the correlation u >= 0 that carries a given information.

    Newton's method from above: the information is convex in u and at least u^2 / 2, so the steps never overshoot.

    Args:
        information: Nats between 0 and ln 2, float64, any shape.

    Returns:
        u between 0 and 1, same shape.

    Example:
        >>> pair_information(pair_correlation(torch.tensor([0.1], dtype=torch.float64)))
        tensor([0.1000], dtype=torch.float64)
    """
    largest = 1 - torch.finfo(information.dtype).eps
    guess = (2 * information).sqrt().clamp(max=largest)
    for _ in range(_NEWTON_STEPS):
        step = (pair_information(guess) - information) / guess.atanh()
        lower = torch.where(guess > 0, guess - step, guess)
        # Rounding may turn the last step upwards, and then it would never end.
        if not bool((lower < guess).any()):
            break
        guess = torch.minimum(lower, guess)
    return guess


def checked_lags(lags: Sequence[int] | Tensor) -> Tensor:
    """Checks distances between two symbols, one or more, all at least 1; gives them as int64.

    Example:
        >>> checked_lags([1, 2])
        tensor([1, 2])
    """
    checked = torch.as_tensor(lags)
    if checked.ndim != 1 or checked.is_floating_point() or len(checked) == 0 or bool((checked < 1).any()):
        raise ValueError(_validate.message("lags", "be a list of whole numbers >= 1", lags))
    return checked.long()
