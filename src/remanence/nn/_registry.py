"""The models by name: for the command line, for experiments, and for whoever looks for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from remanence._validate import one_of

from ._backtracking import SABGRU, SABLSTM, SABRNN
from ._baselines import LRU, DeltaRule, MinGRU, MinLSTM
from ._convolution import CausalConvolution
from ._layer import RecurrentLayer
from ._memory_layers import MemGRU, MemLSTM, MemRNN, RelGRU, RelLSTM, RelRNN
from ._orthogonal import GORU, ExpRNN, OrthRNN
from ._recurrent import GRU, LSTM, RNN, HDetachLSTM
from ._screened_delta import ScreenedDeltaRule
from ._stable import StableLSTM, StableRNN
from ._transformer import Transformer
from ._truncated import TruncatedRNN

_RECURRENT: tuple[type[RecurrentLayer], ...] = (
    *(RNN, LSTM, GRU, OrthRNN, ExpRNN, GORU, StableRNN, StableLSTM, HDetachLSTM),
    *(MemRNN, MemLSTM, MemGRU, SABRNN, SABLSTM, SABGRU, RelRNN, RelLSTM, RelGRU),
)

# What is not a cell with a memory says here what it is made of: cell, memory, paper.
_OTHERS: dict[type[nn.Module], tuple[str, str, str]] = {
    Transformer: ("attention", "full", "shen2019"),
    CausalConvolution: ("convolution", "window", "miller2018"),
    TruncatedRNN: ("any", "window", "miller2018"),
    MinGRU: ("min-gru", "none", "baseline"),
    MinLSTM: ("min-lstm", "none", "baseline"),
    LRU: ("linear", "none", "baseline"),
    DeltaRule: ("delta-rule", "none", "baseline"),
    ScreenedDeltaRule: ("delta-rule", "screened", "baseline"),
}


@dataclass(frozen=True)
class ModelInfo:
    """One model, in words.

    Attributes:
        name: of the class in :mod:`remanence.nn`.
        summary: the first line of its documentation.
        document: key of the paper that describes it, such as ``"kerg2020"``; ``"all"`` for the cells that all of them
            use, ``"baseline"`` for what none of them describes.
        cell: what makes one step: ``"rnn"``, ``"lstm"``, ``"gru"``, ``"goru"``, ...; ``"any"`` for a wrapper.
        memory: which past states may be attended: ``"none"``, ``"full"``, ``"strided"``, ``"screened"``; a Transformer
            sees the past in full, convolutions and truncated layers through a window.

    Example:
        >>> info = next(info for info in list_models() if info.name == "RelLSTM")
        >>> info.cell, info.memory, info.document
        ('lstm', 'screened', 'kerg2020')
    """

    name: str
    summary: str
    document: str
    cell: str
    memory: str


def list_models() -> list[ModelInfo]:
    """Describes every model that has a name, plain cells first.

    Example:
        >>> [info.name for info in list_models()][:3]
        ['RNN', 'LSTM', 'GRU']
    """
    recurrent = [_info(cls, str(cls.cell), _memory_of(cls), cls.document or "all") for cls in _RECURRENT]
    return recurrent + [_info(cls, cell, memory, document) for cls, (cell, memory, document) in _OTHERS.items()]


def get_model(name: str) -> Any:
    """Finds a model's class by its name in :func:`list_models`; where there is none, the nearest is proposed.

    Example:
        >>> get_model("RelLSTM")(3, 8).hidden_size
        8
    """
    classes = {cls.__name__: cls for cls in (*_RECURRENT, *_OTHERS)}
    return classes[one_of("model", name, classes)]


def _info(cls: type, cell: str, memory: str, document: str) -> ModelInfo:
    summary = (cls.__doc__ or "").partition("\n")[0].replace("``", "").replace("**", "")  # words, without markup
    return ModelInfo(cls.__name__, summary, document, cell, memory)


def _memory_of(cls: type[RecurrentLayer]) -> str:
    """The memory that a layer has by default, read off a small one without storage."""
    memory = cls(2, 2, device="meta").spec.memory
    if memory is None:
        return "none"
    return type(memory).__name__.lower()
