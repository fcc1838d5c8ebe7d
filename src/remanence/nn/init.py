"""Initial values of recurrent matrices."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from remanence._validate import one_of

RecurrentInit: TypeAlias = Literal["henaff", "cayley", "random", "identity", "xavier", "kaiming"] | None
RECURRENT_INITS = ("henaff", "cayley", "random", "identity", "xavier", "kaiming")


def henaff_angles(count: int) -> Tensor:
    """``count`` angles, uniform between -pi and 0."""
    return torch.empty(count).uniform_(-math.pi, 0)


def cayley_angles(count: int) -> Tensor:
    """``count`` angles ``-tan(u / 2)``, ``u`` uniform between 0 and pi/2."""
    return -torch.tan(torch.empty(count).uniform_(0, math.pi / 2) / 2)


def block_skew(angles: Tensor, size: int) -> Tensor:
    """Skew-symmetric ``(size, size)`` with blocks ``[[0, s], [-s, 0]]`` on the diagonal; an odd last row is zero.

    Example:
        >>> block_skew(torch.tensor([2.0]), 3).tolist()
        [[0.0, 2.0, 0.0], [-2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    upper = torch.zeros(size, size, dtype=angles.dtype)
    even = torch.arange(0, 2 * len(angles), 2)
    upper[even, even + 1] = angles
    return upper - upper.T


def initial_skew(size: int, kind: str) -> Tensor:
    """The logarithm of an orthogonal start: ``"henaff"``, ``"cayley"`` or ``"random"``."""
    if kind == "henaff":
        return block_skew(henaff_angles(size // 2), size)
    if kind == "cayley":
        return block_skew(cayley_angles(size // 2), size)
    return _random_skew(size)


def _random_skew(size: int) -> Tensor:
    """Logarithm of a rotation drawn from the Haar measure: blocks of angles in a random orthogonal basis."""
    rotation = nn.init.orthogonal_(torch.empty(size, size, dtype=torch.float64))
    if torch.linalg.det(rotation) < 0:
        rotation[0] = -rotation[0]
    values, vectors = torch.linalg.eig(rotation)
    skew = (vectors @ torch.diag(1j * values.angle()) @ vectors.conj().T).real
    return ((skew - skew.T) / 2).to(torch.get_default_dtype())


@torch.no_grad()
def fill_recurrent_(weight: Tensor, kind: str) -> Tensor:
    """Fill a recurrent matrix ``(gates * n, n)`` block by block.

    Args:
        weight: filled in place.
        kind: ``"henaff"``, ``"cayley"`` or ``"random"`` (orthogonal), ``"identity"``, ``"xavier"`` or ``"kaiming"``
            (normal).

    Example:
        >>> fill_recurrent_(torch.empty(2, 2), "identity")
        tensor([[1., 0.],
                [0., 1.]])
    """
    one_of("recurrent_init", kind, RECURRENT_INITS)
    rows, size = weight.shape
    if rows % size:
        raise ValueError(
            f"`recurrent_init` must be None for a recurrent matrix without square blocks; got shape {(rows, size)}"
        )
    for block in weight.split(size):
        if kind == "identity":
            block.copy_(torch.eye(size))
        elif kind == "xavier":
            nn.init.xavier_normal_(block)
        elif kind == "kaiming":
            nn.init.kaiming_normal_(block)
        else:
            block.copy_(torch.linalg.matrix_exp(initial_skew(size, kind).double()))
    return weight
