"""The parameters of one layer and direction: as the scan takes them, and as its parts declare them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    further: dict[str, Tensor] | None = None
    """Whatever else the parts of the layer declare, by name; see :meth:`own`."""

    def known_to_kernel(self) -> tuple[Tensor | None, ...]:
        """Those that the kernel takes, in the order of its schema."""
        return self[:-1]

    def own(self, name: str) -> Tensor:
        """A parameter that a cell, a read or a screen declared itself, by its name without the layer's suffix."""
        if self.further is None or name not in self.further:
            raise KeyError(f"there is no parameter {name!r}: it must be among those that `own_parameters` declares")
        return self.further[name]


register_state(Weights, "remanence.ops.Weights")

PARAMETER_NAMES = (
    "weight_ih",
    "weight_hh",
    "bias_ih",
    "bias_hh",
    "weight_query",
    "weight_key",
    "weight_score",
    "bias_modrelu",
    "weight_gate",
    "bias_gate",
)
"""What the fields of :class:`Weights` are called in a layer, in their order; any other name is in ``further``."""


@dataclass(frozen=True)
class OwnParameter:
    """A parameter of a cell, a read or a screen, for each layer and direction.

    Args:
        shape: of the tensor.
        init: fills it in place; ``None`` leaves it to the layer, whose rule is torch's uniform.

    Example:
        >>> import torch
        >>> OwnParameter((8,), init=torch.nn.init.zeros_).shape
        (8,)
    """

    shape: tuple[int, ...]
    init: Callable[[Tensor], object] | None = None
