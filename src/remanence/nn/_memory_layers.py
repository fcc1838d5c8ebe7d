"""Recurrent layers that attend to their own past: all of it (Mem), or what was screened as relevant (Rel)."""

# Torch's arguments may come by position (`*shape`) or by name, which pyright cannot tell apart in a call of `super`.
# pyright: reportCallIssue=false

from __future__ import annotations

from typing import Literal, Unpack

from remanence.ops import Full, Read, Screen, Screened

from ._layer import RecurrentLayer
from ._options import CellOptions, TorchArgument, refuse_memory
from ._recurrent import GRU, LSTM, RNN


class FullMemory(RecurrentLayer):
    """What the Mem layers share, for every cell.

    Args:
        limit: attend to the newest ``limit`` states only, in a ring of fixed size.
        score: ``"additive"``, ``"dot"`` or a :class:`remanence.ops.Read`.
    """

    document = "kerg2020"
    fixed = ("memory", "max_steps")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *shape: TorchArgument,
        limit: int | None = None,
        score: Literal["additive", "dot"] | Read = "additive",
        **options: Unpack[CellOptions],
    ) -> None:
        refuse_memory(options, self)
        super().__init__(input_size, hidden_size, num_layers, *shape, memory=Full(limit, score), **options)


class MemRNN(FullMemory, RNN):
    """RNN with additive attention over all its past states. **Its state grows with the sequence** unless limited.

    Example:
        >>> import torch
        >>> _, state = MemRNN(3, 8)(torch.randn(5, 2, 3))
        >>> state.recent.shape
        torch.Size([1, 2, 5, 8])
    """


class MemLSTM(FullMemory, LSTM):
    """LSTM with additive attention over all its past states. **Its state grows with the sequence** unless limited.

    Example:
        >>> import torch
        >>> _, state = MemLSTM(3, 8, limit=4)(torch.randn(5, 2, 3))
        >>> state.recent.shape
        torch.Size([1, 2, 4, 8])
    """


class MemGRU(FullMemory, GRU):
    """GRU with additive attention over all its past states. **Its state grows with the sequence** unless limited.

    Example:
        >>> import torch
        >>> MemGRU(3, 8)(torch.randn(5, 2, 3))[0].shape
        torch.Size([5, 2, 8])
    """


class ScreenedMemory(RecurrentLayer):
    """What the Rel layers share, for every cell.

    Args:
        recent: size of the short-term buffer (nu).
        relevant: size of the relevant set (rho).
        screen: decides which states stay in the relevant set: ``"attention"`` (received in the buffer), ``"mean"``,
            ``"value"``, ``"learned"``, ``"random"``, ``"newest"``, or a :class:`remanence.ops.Screen`.
        score: ``"additive"``, ``"dot"`` or a :class:`remanence.ops.Read`.
    """

    document = "kerg2020"
    fixed = ("memory", "max_steps")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *shape: TorchArgument,
        recent: int = 10,
        relevant: int = 10,
        screen: str | Screen = "attention",
        score: Literal["additive", "dot"] | Read = "additive",
        **options: Unpack[CellOptions],
    ) -> None:
        refuse_memory(options, self)
        memory = Screened(recent, relevant, screen, score)
        super().__init__(input_size, hidden_size, num_layers, *shape, memory=memory, **options)


class RelRNN(ScreenedMemory, RNN):
    """RNN with relevancy screening: it attends to its newest states and to the most relevant of the older ones.

    Cost and state are independent of the sequence length. With ``recent=0, relevant=0`` this is ``nn.RNN``; with
    ``recent`` at least the sequence length it is :class:`MemRNN`.

    Example:
        >>> import torch
        >>> _, state = RelRNN(3, 8, recent=4, relevant=2)(torch.randn(50, 2, 3))
        >>> state.recent.shape, state.relevant.shape
        (torch.Size([1, 2, 4, 8]), torch.Size([1, 2, 2, 8]))
    """


class RelLSTM(ScreenedMemory, LSTM):
    """LSTM with relevancy screening: it attends to its newest states and to the most relevant of the older ones.

    Cost and state are independent of the sequence length. With ``recent=0, relevant=0`` this is ``nn.LSTM``; with
    ``recent`` at least the sequence length it is :class:`MemLSTM`.

    The second result is the whole state: write ``output, state = layer(x)`` and ``h, c = state.hx``. Torch's
    ``output, (h, c) = layer(x)`` is an error that says so.

    Example:
        >>> import torch
        >>> layer = RelLSTM(3, 8, recent=4, relevant=2)
        >>> output, state = layer(torch.randn(50, 2, 3))
        >>> h, c = state.hx
        >>> output.shape, h.shape, state.nbytes == layer(torch.randn(500, 2, 3))[1].nbytes
        (torch.Size([50, 2, 8]), torch.Size([1, 2, 8]), True)
    """


class RelGRU(ScreenedMemory, GRU):
    """GRU with relevancy screening: it attends to its newest states and to the most relevant of the older ones.

    Example:
        >>> import torch
        >>> RelGRU(3, 8, recent=4, relevant=2)(torch.randn(50, 2, 3))[0].shape
        torch.Size([50, 2, 8])
    """
