"""One step of each recurrent cell, pure: no time, no memory, no state of its own."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ._types import ScanSpec, Weights

GATES = {"rnn": 1, "lstm": 4, "gru": 3, "goru": 3}
"""Blocks of rows in ``Weights.ih`` and ``Weights.hh``."""


def modrelu(z: Tensor, bias: Tensor) -> Tensor:
    """``sign(z) * relu(abs(z) + bias)``.

    Args:
        z: ``(..., n)``.
        bias: ``(n,)``.

    Example:
        >>> modrelu(torch.tensor([2.0, -2.0, 0.5]), torch.tensor(-1.0)).tolist()
        [1.0, -1.0, 0.0]
    """
    return z.sign() * F.relu(z.abs() + bias)


def project_input(x: Tensor, weights: Weights, cell: str) -> Tensor:
    """What the input gives to the gates, for all steps at once.

    Args:
        x: ``(T, B, input_size)``.
        weights: parameters of the layer.
        cell: name of the cell.

    Returns:
        ``(T, B, G)``. Both biases are in it, except for the recurrent bias of a GRU, which its reset gate multiplies.
    """
    bias = weights.bias_ih
    if weights.bias_hh is not None and cell != "gru":
        bias = weights.bias_hh if bias is None else bias + weights.bias_hh
    return F.linear(x, weights.ih, bias)


def step(spec: ScanSpec, weights: Weights, projected: Tensor, s: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """One step of the cell.

    Args:
        spec: which cell, which nonlinearity.
        weights: parameters of the layer.
        projected: ``(B, G)`` from :func:`project_input`.
        s: ``(B, m)`` previous macro-state.
        c: ``(B, n)`` previous cell of an LSTM.
        h: ``(B, n)`` previous hidden state, for the leak of a GRU or GORU.

    Returns:
        ``h`` ``(B, n)`` and ``c``.
    """
    if spec.cell == "lstm":
        return _lstm(weights, projected, s, c)
    if spec.cell == "gru":
        return _gru(weights, projected, s, h), c
    if spec.cell == "goru":
        return _goru(weights, projected, s, h), c
    return _activate(spec, weights, projected + F.linear(s, weights.hh)), c


def _activate(spec: ScanSpec, weights: Weights, z: Tensor) -> Tensor:
    if spec.nonlinearity == "tanh":
        return z.tanh()
    if spec.nonlinearity == "relu":
        return z.relu()
    if spec.nonlinearity == "modrelu":
        assert weights.modrelu is not None
        return modrelu(z, weights.modrelu)
    return z


def _lstm(weights: Weights, projected: Tensor, s: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = (projected + F.linear(s, weights.hh)).chunk(4, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru(weights: Weights, projected: Tensor, s: Tensor, h: Tensor) -> Tensor:
    """Gates and candidate see the macro-state; the leak carries ``h``, because a leak of ``s = h + r`` grows."""
    x_r, x_z, x_n = projected.chunk(3, dim=-1)
    s_r, s_z, s_n = F.linear(s, weights.hh, weights.bias_hh).chunk(3, dim=-1)
    r, z = (x_r + s_r).sigmoid(), (x_z + s_z).sigmoid()
    return (1 - z) * (x_n + r * s_n).tanh() + z * h


def _goru(weights: Weights, projected: Tensor, s: Tensor, h: Tensor) -> Tensor:
    """The reset gate multiplies after the rotation, which is the last block of ``weights.hh``."""
    assert weights.modrelu is not None
    x_r, x_g, x_c = projected.chunk(3, dim=-1)
    s_r, s_g, rotated = F.linear(s, weights.hh).chunk(3, dim=-1)
    r, g = torch.sigmoid(x_r + s_r), torch.sigmoid(x_g + s_g)
    return g * h + (1 - g) * modrelu(r * rotated + x_c, weights.modrelu)
