"""Euclidean projections onto sets of matrices, in place, exact also after rounding to the parameter's dtype.

What lies inside its set is left bit for bit as it is; what lies outside is computed in float64 and never grows.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_EPSILON = torch.finfo(torch.float64).eps


def spectral_norm(matrix: Tensor) -> float:
    """Greatest singular value of ``(m, n)``, computed in float64; nan if an entry is not finite.

    Example:
        >>> spectral_norm(torch.tensor([[0.0, 3.0], [4.0, 0.0]]))
        4.0
    """
    exact = matrix.detach().double()
    if not exact.isfinite().all():
        return math.nan
    return float(torch.linalg.svdvals(exact)[0])


def row_sums(matrix: Tensor) -> Tensor:
    """Sums of absolute values along the rows of ``(m, n)``, in float64: ``(m,)``.

    Example:
        >>> row_sums(torch.tensor([[1.0, -2.0], [0.0, 0.5]])).tolist()
        [3.0, 0.5]
    """
    return matrix.detach().double().abs().sum(dim=1)


@torch.no_grad()
def project_spectral_(matrix: Tensor, limit: float) -> None:
    """Onto the matrices of spectral norm at most ``limit``: the nearest one has its singular values clamped.

    Example:
        >>> matrix = torch.diag(torch.tensor([2.0, 0.25]))
        >>> project_spectral_(matrix, 0.5)
        >>> matrix.tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    if spectral_norm(matrix) <= limit:
        return
    left, values, right = torch.linalg.svd(matrix.double(), full_matrices=False)
    ceiling = limit
    while True:
        rounded = ((left * values.clamp(max=ceiling)) @ right).to(matrix.dtype)
        excess = spectral_norm(rounded) - limit
        if excess <= 0:
            break
        # Rounding pushed the norm over the limit: aim lower by twice that, and by no less than one step of float64.
        ceiling -= max(2 * excess, _EPSILON * limit)
    matrix.copy_(rounded)


@torch.no_grad()
def project_rows_(matrix: Tensor, limit: float) -> None:
    """Every row onto the ball of sum of absolute values at most ``limit``: the nearest point, not a rescaling.

    The nearest point takes the same amount off every entry and stops at zero; sorting gives that amount (Duchi et al.,
    "Efficient projections onto the l1-ball", 2008).

    Example:
        >>> matrix = torch.tensor([[3.0, 1.0], [0.5, 0.25]])
        >>> project_rows_(matrix, 1.0)
        >>> matrix.round(decimals=5).tolist()
        [[1.0, 0.0], [0.5, 0.25]]
    """
    outside = row_sums(matrix) > limit
    if not outside.any():
        return
    size = matrix[outside].double().abs()
    rounding = 2 * size.shape[1] * _EPSILON
    shrunk = (size - _thresholds(size, limit)).clamp(min=0)
    # Entries far above the limit leave the difference of two great numbers behind; this takes it away.
    shrunk *= (limit * (1 - rounding) / shrunk.sum(dim=1, keepdim=True)).clamp(max=1)
    matrix[outside] = _towards_zero(shrunk, matrix.dtype) * matrix[outside].sign()


def _thresholds(size: Tensor, limit: float) -> Tensor:
    """What to take off every entry of a row of non-negative numbers so that ``limit`` is left: ``(m, 1)``."""
    ordered = size.sort(dim=1, descending=True).values
    number = torch.arange(1, size.shape[1] + 1, dtype=size.dtype, device=size.device)
    # What the k greatest entries must give up together, each the same; an entry below that would turn negative.
    threshold = (ordered.cumsum(dim=1) - limit) / number
    stay = (ordered > threshold).sum(dim=1, keepdim=True)
    return threshold.gather(1, stay - 1)


def _towards_zero(positive: Tensor, dtype: torch.dtype) -> Tensor:
    """Non-negative float64 numbers in ``dtype``, rounded down."""
    rounded = positive.to(dtype)
    return torch.where(rounded.double() > positive, torch.nextafter(rounded, torch.zeros_like(rounded)), rounded)
