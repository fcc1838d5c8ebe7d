"""Sparse Attentive Backtracking: recurrent layers that read, and send gradient to, a few states of their past."""

# Torch's arguments may come by position (`*shape`) or by name, which pyright cannot tell apart in a call of `super`.
# pyright: reportCallIssue=false

from __future__ import annotations

from typing import Any, Literal, TypedDict, TypeVar, Unpack

from remanence.ops import Strided

from ._options import MemoryOptions, RNNOptions
from ._recurrent import GRU, LSTM, RNN
from ._signatures import add_options
from .cuts import TruncatedBPTT


class ReadOptions(TypedDict, total=False):
    """How the stored states are scored and read; :class:`remanence.ops.Strided` explains them."""

    keep: Literal["k-1", "k"]
    score: Literal["affine", "tanh", "mlp"]
    normalise: bool
    underfull: Literal["threshold", "raw"]
    sparse: Literal["forward", "backward"]
    hops: Literal["many", "one"]
    start: Literal["empty", "zero"]


class SABOptions(MemoryOptions, ReadOptions, total=False):
    """All options of a backtracking layer."""


def _split(top_k: int, every: int, truncate: int | None, options: Any) -> dict[str, Any]:
    """Sort the options into those of the memory, the cuts and the layer."""
    reading = {name: options.pop(name) for name in ReadOptions.__annotations__ if name in options}
    if truncate is not None:
        if options.get("cuts") is not None:
            raise ValueError(
                f"`truncate` must be None when `cuts` is given; got {truncate} and {options['cuts']}. Give one of them."
            )
        options["cuts"] = TruncatedBPTT(truncate, offset=-1)
    return {"memory": Strided(top_k, every, **reading), **options}


class SABRNNOptions(SABOptions, RNNOptions, total=False):
    """Those of the RNN."""


Layer = TypeVar("Layer", bound=type)


def _show_read_options(cls: Layer) -> Layer:
    add_options(cls, Strided, list(ReadOptions.__annotations__))
    return cls


@_show_read_options
class SABRNN(RNN):
    """RNN with sparse attentive backtracking.

    Args:
        top_k: rank of the score that serves as threshold (k_top).
        every: stride at which states are stored (k_att).
        truncate: cut the recurrent gradient every ``truncate`` steps (k_trunc); reads stay open.

    Example:
        >>> import torch
        >>> _, state = SABRNN(3, 8, top_k=4, every=2, truncate=5)(torch.randn(50, 2, 3))
        >>> state.relevant.shape
        torch.Size([1, 2, 4, 8])
    """

    document = "ke2017"
    fixed = ("memory",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *shape: Any,
        top_k: int = 5,
        every: int = 2,
        truncate: int | None = None,
        **options: Unpack[SABRNNOptions],
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, *shape, **_split(top_k, every, truncate, options))


@_show_read_options
class SABLSTM(LSTM):
    """LSTM with sparse attentive backtracking, the model of the document.

    The affine and tanh scores do not depend on the present state, so a state that has dropped out of the best ``top_k``
    never returns: time is linear in T and the state holds ``top_k`` entries, exactly.

    Args:
        top_k: rank of the score that serves as threshold (k_top).
        every: stride at which states are stored (k_att).
        truncate: cut the recurrent gradient every ``truncate`` steps (k_trunc); reads stay open.

    Example:
        >>> import torch
        >>> layer = SABLSTM(3, 8, top_k=4, every=2, truncate=5, output="summary")
        >>> layer(torch.randn(50, 2, 3))[0].shape
        torch.Size([50, 2, 16])
    """

    document = "ke2017"
    fixed = ("memory",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *shape: Any,
        top_k: int = 5,
        every: int = 2,
        truncate: int | None = None,
        **options: Unpack[SABOptions],
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, *shape, **_split(top_k, every, truncate, options))


@_show_read_options
class SABGRU(GRU):
    """GRU with sparse attentive backtracking.

    Args:
        top_k: rank of the score that serves as threshold (k_top).
        every: stride at which states are stored (k_att).
        truncate: cut the recurrent gradient every ``truncate`` steps (k_trunc); reads stay open.

    Example:
        >>> import torch
        >>> SABGRU(3, 8, top_k=4)(torch.randn(50, 2, 3))[0].shape
        torch.Size([50, 2, 8])
    """

    document = "ke2017"
    fixed = ("memory",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *shape: Any,
        top_k: int = 5,
        every: int = 2,
        truncate: int | None = None,
        **options: Unpack[SABOptions],
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, *shape, **_split(top_k, every, truncate, options))
