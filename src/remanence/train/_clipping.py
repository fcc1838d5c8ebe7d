"""Gradient clipping that no finite gradient stops."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.utils import clip_grad_value_, clip_grads_with_norm_, get_total_norm

SURELY_SMALL = 0.99
"""Of the greatest norm: torch would multiply smaller gradients by 1, whichever way it rounds."""


def clip_gradients_(parameters: Sequence[nn.Parameter], norm: float | None, value: float | None) -> float:
    """Clips gradients in place, by the norm of all of them or by value.

    In float32 the square of 1e20 is infinite, and with it the norm of a gradient whose every entry is finite. There,
    norms are taken of the gradient divided by its largest entry; elsewhere the bits are those of torch.

    Args:
        parameters: whose gradients; those that have none are passed over.
        norm: the greatest norm; None does not clip by it.
        value: the greatest absolute value of an entry; None does not clip by it.

    Returns:
        The norm before. If an entry is infinite or NaN, so is the norm, and nothing is clipped. A gradient that is not
        to be clipped counts as infinite where its squares are: Adam would divide by them and never move again.

    Example:
        >>> import torch
        >>> weight = nn.Parameter(torch.zeros(2))
        >>> weight.grad = torch.tensor([3e30, -4e30])
        >>> round(clip_gradients_([weight], norm=1.0, value=None) / 1e30, 3), weight.grad
        (5.0, tensor([ 0.6000, -0.8000]))
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    total = get_total_norm(gradients)
    size = float(total)
    if norm is None and value is None:
        return size
    if math.isinf(size):
        return _clip_large_(gradients, norm, value)
    if norm is not None and size > SURELY_SMALL * norm:
        clip_grads_with_norm_(parameters, norm, total)
    elif norm is None and value is not None and math.isfinite(size):
        clip_grad_value_(parameters, value)
    return size


def _clip_large_(gradients: list[Tensor], norm: float | None, value: float | None) -> float:
    """Clips gradients whose sum of squares is infinite, though perhaps no entry is."""
    largest = float(get_total_norm(gradients, math.inf))
    if not math.isfinite(largest):
        return largest
    shares = [gradient / largest for gradient in gradients]
    total = float(get_total_norm(shares))
    for gradient, share in zip(gradients, shares, strict=True):
        if norm is not None and norm < largest * total:
            gradient.copy_(share * (norm / total))
        if value is not None:
            gradient.clamp_(-value, value)
    return largest * total
