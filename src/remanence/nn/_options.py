"""The options of recurrent layers: their types, and what contradicts what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypedDict

import torch

from remanence import ops
from remanence._validate import dimension, message, one_of, real
from remanence.ops import Backend, Cell, Memory, MemoryRule, Read, ScanSpec, find_cell

from .cuts import Cuts, HDetach, TruncatedBPTT
from .init import RecurrentInit

Bias: TypeAlias = bool | Literal["single"]
Device: TypeAlias = torch.device | str | None
TorchArgument: TypeAlias = Any
"""One of torch's arguments by position, in torch's order: which of them it is, no type can say."""


class Factory(TypedDict):
    """Where and in what precision parameters are made."""

    device: Device
    dtype: torch.dtype | None


class ShapeOptions(TypedDict, total=False):
    """Torch's options of every recurrent layer apart from its sizes, which may be given by position too."""

    bias: Bias
    batch_first: bool
    dropout: float
    bidirectional: bool


class CommonOptions(ShapeOptions, total=False):
    """Options that every recurrent layer takes; :class:`RecurrentLayer` explains them."""

    combine: ops.Combine | None
    output: Literal["macro", "hidden", "summary", "weights"]
    max_steps: int | None
    backend: Backend
    device: Device
    dtype: torch.dtype | None


class MemoryOptions(CommonOptions, total=False):
    """Those that some presets decide themselves."""

    recurrent_init: RecurrentInit
    cuts: Cuts


class CellOptions(MemoryOptions, total=False):
    """And those of some cells alone, which the others refuse; by position an RNN's nonlinearity is before the bias."""

    nonlinearity: ops.Nonlinearity
    forget_bias: float


def options_of_other_cells(cell: Cell) -> set[str]:
    """Options that mean nothing to a cell: a nonlinearity is that of an RNN, a forget bias needs a forget gate."""
    others = set()
    if not hasattr(cell, "nonlinearity"):
        others.add("nonlinearity")
    if "f" not in cell.gates:
        others.add("forget_bias")
    return others


def refuse_unknown(unknown: Mapping[str, object], layer: str) -> None:
    """Refuse keyword arguments that do not exist, and say what to do instead of a projection."""
    if "proj_size" in unknown:
        hint = f"{layer} has no projection; add nn.Linear after it"
        raise ValueError(message("proj_size", "be absent", unknown["proj_size"], hint))
    if unknown:
        raise TypeError(f"{layer}() got an unexpected keyword argument {next(iter(unknown))!r}")


def refuse_memory(options: Mapping[str, object], layer: object) -> None:
    """Refuse a memory for a layer that makes its own: Python would say that some other class got it twice."""
    if "memory" in options:
        hint = "It makes its own; RNN, LSTM and GRU take any"
        raise TypeError(f"{type(layer).__name__}() got an unexpected keyword argument 'memory'. {hint}")


def check_cuts(cuts: object) -> Cuts:
    """Check the gradient cuts."""
    if cuts is not None and not isinstance(cuts, TruncatedBPTT | HDetach):
        raise TypeError(message("cuts", "be None, TruncatedBPTT(k) or HDetach(p)", repr(cuts)))
    return cuts


def check_forget_bias(value: float, bias: Bias) -> float:
    """Check what is added to the forget bias, which must be there."""
    real("forget_bias", value)
    if value and not bias:
        raise ValueError(message("forget_bias", "be 0 without a bias", value, "Leave `bias` at True"))
    return value


def make_spec(
    cell: Cell | str,
    memory: Memory,
    nonlinearity: ops.Nonlinearity | None,
    combine: ops.Combine | None,
    output: Literal["macro", "hidden", "summary", "weights"],
    max_steps: int | None,
    cuts: Cuts,
) -> ScanSpec:
    """Put the options together and refuse those that contradict each other."""
    if memory is not None and not isinstance(memory, MemoryRule):
        raise TypeError(message("memory", "be None, Full(), Screened() or Strided()", repr(memory)))
    one_of("output", output, (memory or MemoryRule).outputs)
    if (output == "weights") != (max_steps is not None):
        expected = "be given with output='weights', and only then"
        raise ValueError(message("max_steps", expected, f"{max_steps} with output={output!r}"))
    if max_steps is not None:
        dimension("max_steps", max_steps)
    cut_reads = isinstance(cuts, TruncatedBPTT) and cuts.reads == "cut"
    spec = ScanSpec(find_cell(cell), memory, nonlinearity, None, output, cut_reads, max_steps)
    combines = Read.combines
    if memory is not None:
        combines = memory.read.combines
    if combine is not None:
        one_of("combine", combine, combines)
    elif not spec.cell.bounded and "half" in combines:
        combine = "half"  # the sum of an unbounded state and its read overflows within a few hundred steps
    if combine == "concat" and not spec.has_memory:
        raise ValueError(message("combine", "not be 'concat' without a memory", "'concat'", "Give `recent` at least 1"))
    return replace(spec, combine=combine)
