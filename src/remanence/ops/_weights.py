"""The parameters of one layer and direction, as the scan takes them."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .states import register_state


class Weights(NamedTuple):
    """Parameters of one layer and direction; those that the specification does not ask for are ``None``.

    Gates are stacked in torch's order: i, f, g, o (LSTM); r, z, n (GRU); r, g, candidate (GORU).
    ``G`` is their number times ``n``, ``m`` the size of the macro-state.
    """

    ih: Tensor
    """``(G, input_size)``."""
    hh: Tensor
    """``(G, m)``."""
    bias_ih: Tensor | None = None
    """``(G,)``."""
    bias_hh: Tensor | None = None
    """``(G,)``."""
    query: Tensor | None = None
    """``(n, m)``; ``(n,)`` with the affine and tanh scores."""
    key: Tensor | None = None
    """``(n, n)``; ``(n,)`` with the affine and tanh scores."""
    score: Tensor | None = None
    """``(n,)``, or ``(1,)``, the bias of the affine score."""
    modrelu: Tensor | None = None
    """``(n,)``."""
    gate: Tensor | None = None
    """``(n,)``: of a :class:`Learned` screen."""
    gate_bias: Tensor | None = None
    """``(1,)``: likewise."""


register_state(Weights, "remanence.ops.Weights")
