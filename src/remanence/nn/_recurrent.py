"""The three cells as layers. Without a memory they equal torch's; with one they are the presets of this package."""

# Torch's arguments may come by position (`*shape`) or by name, which pyright cannot tell apart in a call of `super`.
# pyright: reportCallIssue=false

from __future__ import annotations

from typing import Unpack

from remanence import ops
from remanence.ops import GRUCell, LSTMCell, Memory, RNNCell

from ._layer import RecurrentLayer
from ._options import CommonOptions, MemoryOptions, TorchArgument
from .cuts import HDetach
from .init import RecurrentInit


class RNN(RecurrentLayer):
    """Elman network: ``h = phi(W_ih x + b_ih + W_hh s + b_hh)``, any memory; torch's ``nn.RNN`` without one.

    Args:
        nonlinearity: ``"tanh"``, ``"relu"``, ``"modrelu"`` (``sign(z) relu(abs(z) + b)``) or ``"identity"``.
        memory: which past states may be attended: ``None``, :class:`Full`, :class:`Screened` or :class:`Strided`.

    Example:
        >>> import torch
        >>> layer = RNN(3, 8, nonlinearity="modrelu", recurrent_init="henaff")
        >>> output, state = layer(torch.randn(5, 2, 3))
        >>> output.shape, torch.equal(state.hx[0], output[-1])
        (torch.Size([5, 2, 8]), True)
    """

    cell = RNNCell()

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: ops.Nonlinearity = "tanh",
        *shape: TorchArgument,
        memory: Memory = None,
        **options: Unpack[MemoryOptions],
    ) -> None:
        shape = (input_size, hidden_size, num_layers, *shape)
        super().__init__(*shape, memory=memory, nonlinearity=nonlinearity, **options)

    @property
    def nonlinearity(self) -> str:
        """Name of the activation, as in torch."""
        return str(self.spec.nonlinearity)


class LSTM(RecurrentLayer):
    """LSTM with an optional memory of past states; without one it is torch's ``nn.LSTM``.

    Args:
        memory: which past states may be attended: ``None``, :class:`Full`, :class:`Screened` or :class:`Strided`.

    Example:
        >>> import torch
        >>> layer = LSTM(3, 8, num_layers=2, batch_first=True)
        >>> output, state = layer(torch.randn(2, 5, 3))
        >>> h, c = state.hx
        >>> output.shape, h.shape
        (torch.Size([2, 5, 8]), torch.Size([2, 2, 8]))
    """

    cell = LSTMCell()


class GRU(RecurrentLayer):
    """Gated recurrent unit with any memory; torch's ``nn.GRU`` without one.

    Gates and candidate see the macro-state ``s``; the leak carries ``h``: a leak of ``s = h + r`` overflows.

    Args:
        memory: which past states may be attended: ``None``, :class:`Full`, :class:`Screened` or :class:`Strided`.

    Example:
        >>> import torch
        >>> output, state = GRU(3, 8, bidirectional=True)(torch.randn(5, 2, 3))
        >>> output.shape, state.hx.shape
        (torch.Size([5, 2, 16]), torch.Size([2, 2, 8]))
    """

    cell = GRUCell()


class HDetachLSTM(LSTM):
    """LSTM whose gradient through ``h`` is cut before random steps of training, never that through ``c`` (h-detach).

    Args:
        p: probability of a cut, one draw a step for the whole batch; 0 switches it off.

    Example:
        >>> import torch
        >>> layer = HDetachLSTM(3, 8, p=0.5)
        >>> layer(torch.randn(5, 2, 3))[0].shape
        torch.Size([5, 2, 8])
    """

    document = "kerg2020"
    fixed = ("cuts",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *shape: TorchArgument,
        p: float = 0.25,
        recurrent_init: RecurrentInit = None,
        forget_bias: float = 0.0,
        **options: Unpack[CommonOptions],
    ) -> None:
        shape = (input_size, hidden_size, num_layers, *shape)
        cuts = HDetach(p)
        super().__init__(*shape, cuts=cuts, recurrent_init=recurrent_init, forget_bias=forget_bias, **options)
