"""Sparse Attentive Backtracking: recurrent layers that read, and send gradient to, a few states of their past."""

# Torch's arguments may come by position (`*shape`) or by name, which pyright cannot tell apart in a call of `super`.
# pyright: reportCallIssue=false

from __future__ import annotations

from typing import Any, Literal, TypedDict, Unpack

from remanence.ops import Strided

from ._layer import RecurrentLayer
from ._options import CellOptions, TorchArgument, refuse_memory
from ._recurrent import GRU, LSTM, RNN
from ._signatures import add_options
from .cuts import Cuts, TruncatedBPTT


class ReadOptions(TypedDict, total=False):
    """How the stored states are scored and read; :class:`remanence.ops.Strided` explains them."""

    keep: Literal["k-1", "k"]
    score: Literal["affine", "tanh", "mlp"]
    normalise: bool
    underfull: Literal["threshold", "raw"]
    sparse: Literal["forward", "backward"]
    hops: Literal["many", "one"]
    start: Literal["empty", "zero"]


class SABOptions(CellOptions, ReadOptions, total=False):
    """All options of a backtracking layer."""


class StridedMemory(RecurrentLayer):
    """What the SAB layers share, for every cell.

    Args:
        top_k: rank of the score that serves as threshold (k_top).
        every: stride at which states are stored (k_att).
        truncate: cut the recurrent gradient every ``truncate`` steps (k_trunc); reads stay open. As in the authors'
            code the cut comes before the steps t with ``(t + 1) % truncate == 0``. If ``every`` is a multiple of
            ``truncate``, that is just before each step whose state is stored, and the gradient of a stored state
            reaches one step. ``cuts=TruncatedBPTT(truncate)`` cuts one step later: it reaches ``truncate`` steps.
    """

    document = "ke2017"
    fixed = ("memory",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *shape: TorchArgument,
        top_k: int = 5,
        every: int = 2,
        truncate: int | None = None,
        **options: Unpack[SABOptions],
    ) -> None:
        refuse_memory(options, self)
        further: dict[str, Any] = dict(options)
        reading = {name: further.pop(name) for name in ReadOptions.__annotations__ if name in further}
        if truncate is not None:
            further["cuts"] = _cut_every(truncate, further.get("cuts"))
        memory = Strided(top_k, every, **reading)
        super().__init__(input_size, hidden_size, num_layers, *shape, memory=memory, **further)


def _cut_every(truncate: int, cuts: Cuts) -> TruncatedBPTT:
    if cuts is not None:
        raise ValueError(f"`truncate` must be None when `cuts` is given; got {truncate} and {cuts}. Give one of them.")
    return TruncatedBPTT(truncate, offset=-1)


add_options(StridedMemory, Strided, list(ReadOptions.__annotations__))


class SABRNN(StridedMemory, RNN):
    """RNN with sparse attentive backtracking.

    Example:
        >>> import torch
        >>> _, state = SABRNN(3, 8, top_k=4, every=2, truncate=5)(torch.randn(50, 2, 3))
        >>> state.relevant.shape
        torch.Size([1, 2, 4, 8])
    """


class SABLSTM(StridedMemory, LSTM):
    """LSTM with sparse attentive backtracking, the model of Ke et al. 2017.

    The affine and tanh scores do not depend on the present state, so a state that has dropped out of the best ``top_k``
    never returns: time is linear in T and the state holds ``top_k`` entries, exactly.

    Example:
        >>> import torch
        >>> layer = SABLSTM(3, 8, top_k=4, every=2, truncate=5, output="summary")
        >>> layer(torch.randn(50, 2, 3))[0].shape
        torch.Size([50, 2, 16])
    """


class SABGRU(StridedMemory, GRU):
    """GRU with sparse attentive backtracking.

    Example:
        >>> import torch
        >>> SABGRU(3, 8, top_k=4)(torch.randn(50, 2, 3))[0].shape
        torch.Size([50, 2, 8])
    """
