"""The cells: one step each, pure. No time, no memory, no state of their own.

A cell is a value that says all that the rest of the library must know of it, so a new one is one class. Those below are
in the fused kernel too; any other runs on the reference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from remanence._validate import one_of

from ._weights import OwnParameter, Weights

Nonlinearity: TypeAlias = Literal["tanh", "relu", "modrelu", "identity"]
NONLINEARITIES = ("tanh", "relu", "modrelu", "identity")


class Cell(ABC):
    """One step of a recurrent layer: the macro-state and the input in, the hidden state out.

    Derive from it and define ``name``, ``gates`` and :meth:`step`; set the other attributes where they differ. A cell
    with settings of its own is a frozen dataclass; a field ``nonlinearity`` is set by the layer's option of that name.

    Example:
        >>> class Leaky(Cell):
        ...     name = "leaky"
        ...     leaks = True
        ...
        ...     def step(self, weights, projected, s, c, h):
        ...         return 0.9 * h + 0.1 * (projected + s @ weights.hh.T).tanh(), c
        >>> from remanence.ops import ScanSpec, scan
        >>> weights = Weights(ih=torch.randn(4, 3), hh=torch.randn(4, 4))
        >>> scan(torch.randn(6, 2, 3), weights, spec=ScanSpec(Leaky()))[0].shape
        torch.Size([6, 2, 4])
    """

    name: ClassVar[str]
    """What it is called in messages and tables."""
    gates: ClassVar[tuple[str, ...]] = ("n",)
    """Names of the blocks of rows in ``Weights.ih`` and ``Weights.hh``, in their order."""
    has_c: ClassVar[bool] = False
    """Whether it carries a state ``c`` of its own in addition to ``h``, as an LSTM does."""
    leaks: ClassVar[bool] = False
    """Whether the last ``h`` leaks into the new one apart from what the gates see; with a memory ``h`` is then kept."""
    bounded: bool = True
    """Whether ``h`` stays bounded whatever enters; if not, states and reads are averaged and not added by default."""
    torch_layer: ClassVar[type[nn.RNNBase] | None] = None
    """The layer of torch that computes the same, if there is one."""

    @abstractmethod
    def step(self, weights: Weights, projected: Tensor, s: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """One step.

        Args:
            weights: parameters of the layer.
            projected: ``(B, G)`` from :meth:`project`.
            s: ``(B, m)`` previous macro-state, what the gates see.
            c: ``(B, n)`` previous own state; ``(B, 0)`` without :attr:`has_c`.
            h: ``(B, n)`` previous hidden state, for the leak.

        Returns:
            ``h`` ``(B, n)`` and ``c``.
        """

    def project(self, x: Tensor, weights: Weights) -> Tensor:
        """What the input ``(T, B, input_size)`` gives to the gates in all steps, biases included: ``(T, B, G)``."""
        bias = weights.bias_ih
        if bias is None:
            bias = weights.bias_hh
        elif weights.bias_hh is not None:
            bias = bias + weights.bias_hh
        return F.linear(x, weights.ih, bias)

    def own_parameters(self, hidden_size: int) -> dict[str, OwnParameter]:
        """Parameters apart from matrices and biases, by name; :meth:`step` finds them as ``weights.own(name)``.

        The layer holds each as ``name_l0``, ``name_l1``, ...
        """
        return {}

    def hidden_size(self, weights: Weights) -> int:
        """Features of the state of a layer with these parameters, n."""
        return weights.hh.shape[0] // len(self.gates)

    def __eq__(self, other: object) -> bool:
        # A cell equals its name: specifications held names before there were cells.
        if isinstance(other, str):
            return self.name == other
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"


def modrelu(z: Tensor, bias: Tensor) -> Tensor:
    """``sign(z) * relu(abs(z) + bias)``, of ``(..., n)`` and ``(n,)``.

    Example:
        >>> modrelu(torch.tensor([2.0, -2.0, 0.5]), torch.tensor(-1.0)).tolist()
        [1.0, -1.0, 0.0]
    """
    return z.sign() * F.relu(z.abs() + bias)


def _bias_of_modrelu(hidden_size: int) -> dict[str, OwnParameter]:
    """In the kernel too, where it has a place among the :class:`Weights`."""
    return {"bias_modrelu": OwnParameter((hidden_size,), partial(nn.init.uniform_, a=-0.01, b=0.01))}


def activate(nonlinearity: Nonlinearity, weights: Weights, z: Tensor) -> Tensor:
    """The nonlinearity of an Elman network."""
    if nonlinearity == "tanh":
        return z.tanh()
    if nonlinearity == "relu":
        return z.relu()
    if nonlinearity == "modrelu":
        assert weights.modrelu is not None
        return modrelu(z, weights.modrelu)
    return z


@dataclass(frozen=True, eq=False, repr=False)
class RNNCell(Cell):
    """Elman network: ``h = phi(W_ih x + b_ih + W_hh s + b_hh)``.

    Args:
        nonlinearity: ``"tanh"``, ``"relu"``, ``"modrelu"`` or ``"identity"``.

    Example:
        >>> RNNCell("relu").bounded
        False
    """

    name = "rnn"
    torch_layer = nn.RNN

    nonlinearity: Nonlinearity = "tanh"

    def __post_init__(self) -> None:
        one_of("nonlinearity", self.nonlinearity, NONLINEARITIES)

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """Whether ``h`` stays bounded whatever enters: a tanh does that."""
        return self.nonlinearity == "tanh"

    def step(self, weights: Weights, projected: Tensor, s: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """One step; see :meth:`Cell.step`."""
        return activate(self.nonlinearity, weights, projected + F.linear(s, weights.hh)), c

    def own_parameters(self, hidden_size: int) -> dict[str, OwnParameter]:
        """The bias of modReLU, if that is the nonlinearity."""
        if self.nonlinearity != "modrelu":
            return {}
        return _bias_of_modrelu(hidden_size)


class LSTMCell(Cell):
    """Long short-term memory: it keeps its own ``c`` and sees the macro-state where it would see ``h``.

    Example:
        >>> LSTMCell().gates
        ('i', 'f', 'g', 'o')
    """

    name = "lstm"
    gates = ("i", "f", "g", "o")
    has_c = True
    torch_layer = nn.LSTM

    def step(self, weights: Weights, projected: Tensor, s: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """One step; see :meth:`Cell.step`."""
        i, f, g, o = (projected + F.linear(s, weights.hh)).chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class GRUCell(Cell):
    """Gated recurrent unit.

    Gates and candidate see the macro-state; the leak carries ``h``, because a leak of ``s = h + r`` grows.

    Example:
        >>> GRUCell().leaks
        True
    """

    name = "gru"
    gates = ("r", "z", "n")
    leaks = True
    torch_layer = nn.GRU

    def project(self, x: Tensor, weights: Weights) -> Tensor:
        """As for every cell, but without the recurrent bias, which the reset gate multiplies."""
        return F.linear(x, weights.ih, weights.bias_ih)

    def step(self, weights: Weights, projected: Tensor, s: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """One step; see :meth:`Cell.step`."""
        x_r, x_z, x_n = projected.chunk(3, dim=-1)
        s_r, s_z, s_n = F.linear(s, weights.hh, weights.bias_hh).chunk(3, dim=-1)
        r = (x_r + s_r).sigmoid()
        z = (x_z + s_z).sigmoid()
        return (1 - z) * (x_n + r * s_n).tanh() + z * h, c


class GORUCell(Cell):
    """Gated orthogonal recurrent unit; its rotation is the last block of ``weights.hh``.

    Example:
        >>> GORUCell().own_parameters(8)["bias_modrelu"].shape
        (8,)
    """

    name = "goru"
    gates = ("r", "g", "candidate")
    leaks = True
    bounded = False

    def step(self, weights: Weights, projected: Tensor, s: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """One step; see :meth:`Cell.step`. The reset gate multiplies after the rotation."""
        assert weights.modrelu is not None
        x_r, x_g, x_c = projected.chunk(3, dim=-1)
        s_r, s_g, rotated = F.linear(s, weights.hh).chunk(3, dim=-1)
        r = torch.sigmoid(x_r + s_r)
        g = torch.sigmoid(x_g + s_g)
        return g * h + (1 - g) * modrelu(r * rotated + x_c, weights.modrelu), c

    def own_parameters(self, hidden_size: int) -> dict[str, OwnParameter]:
        """The bias of modReLU."""
        return _bias_of_modrelu(hidden_size)


CellName: TypeAlias = Literal["rnn", "lstm", "gru", "goru"]
IN_KERNEL: tuple[type[Cell], ...] = (RNNCell, LSTMCell, GRUCell, GORUCell)
"""The cells that the fused kernel knows, in the order of its ``Cell``."""

CELLS: dict[str, Cell] = {kind.name: kind() for kind in IN_KERNEL}
"""The cells that have a name in :class:`ScanSpec`; any other is given as itself."""
