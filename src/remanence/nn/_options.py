"""The options of recurrent layers: their types, what contradicts what, and how a preset shows them."""

from __future__ import annotations

import inspect
from typing import Any, Literal, TypedDict

import torch

from remanence import ops
from remanence._validate import message, one_of, positive_int, real
from remanence.ops import Backend, Full, ScanSpec, Screened, Strided

from .cuts import Cuts, HDetach, TruncatedBPTT
from .init import RecurrentInit

_UNBOUNDED = ("relu", "modrelu", "identity")


class CommonOptions(TypedDict, total=False):
    """Options that every recurrent layer takes; :class:`RecurrentLayer` explains them."""

    combine: ops.Combine | None
    output: Literal["macro", "hidden", "summary", "weights"]
    max_steps: int | None
    backend: Backend
    device: torch.device | str | None
    dtype: torch.dtype | None


class MemoryOptions(CommonOptions, total=False):
    """Those that some presets decide themselves."""

    recurrent_init: RecurrentInit
    cuts: Cuts


class LSTMOptions(MemoryOptions, total=False):
    """Those of an LSTM."""

    forget_bias: float


_CELLS_OWN = {"nonlinearity": "rnn", "forget_bias": "lstm"}
"""Options of one cell alone."""


def read_shapes(spec: ScanSpec, n: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the parameters that the read needs."""
    if not spec.has_memory:
        return {}
    memory = spec.memory
    if isinstance(memory, Strided) and memory.score != "mlp":
        shapes: dict[str, tuple[int, ...]] = {"weight_query": (n,), "weight_key": (n,)}
        return shapes | ({"weight_score": (1,)} if memory.score == "affine" else {})
    query = n if isinstance(memory, Strided) else spec.macro_size(n)
    shapes = {"weight_query": (n, query), "weight_key": (n, n)}
    dot = not isinstance(memory, Strided) and memory is not None and memory.score == "dot"
    return shapes if dot else shapes | {"weight_score": (n,)}


def refuse_unknown(unknown: dict[str, Any], layer: str) -> None:
    """Refuse keyword arguments that do not exist, and say what to do instead of a projection."""
    if "proj_size" in unknown:
        raise ValueError(
            message(
                "proj_size", "be absent", unknown["proj_size"], f"{layer} has no projection; add nn.Linear after it"
            )
        )
    if unknown:
        raise TypeError(f"{layer}() got an unexpected keyword argument {next(iter(unknown))!r}")


def check_cuts(cuts: Any) -> Cuts:
    """Check the gradient cuts."""
    if cuts is not None and not isinstance(cuts, TruncatedBPTT | HDetach):
        raise TypeError(message("cuts", "be None, TruncatedBPTT(k) or HDetach(p)", repr(cuts)))
    return cuts


def check_forget_bias(value: Any, bias: Any) -> float:
    """Check what is added to the forget bias, which must be there."""
    real("forget_bias", value)
    if value and not bias:
        raise ValueError(message("forget_bias", "be 0 without a bias", value, "Leave `bias` at True"))
    return value


def make_spec(
    cell: Any, memory: Any, nonlinearity: Any, combine: Any, output: Any, max_steps: int | None, cuts: Cuts
) -> ScanSpec:
    """Put the options together and refuse those that contradict each other."""
    if memory is not None and not isinstance(memory, Full | Screened | Strided):
        raise TypeError(message("memory", "be None, Full(), Screened() or Strided()", repr(memory)))
    one_of("nonlinearity", nonlinearity, ("tanh", *_UNBOUNDED))
    strided = isinstance(memory, Strided)
    outputs = ("macro", "hidden", "summary", "weights") if strided else ("macro", "hidden")
    one_of("output", output, outputs)
    if (output == "weights") != (max_steps is not None):
        expected = "be given with output='weights', and only then"
        raise ValueError(message("max_steps", expected, f"{max_steps} with output={output!r}"))
    if max_steps is not None:
        positive_int("max_steps", max_steps)
    if combine is not None:
        one_of("combine", combine, ("sum",) if strided else ("sum", "half", "concat"))
    bounded = strided or not (cell == "goru" or (cell == "rnn" and nonlinearity in _UNBOUNDED))
    combine = combine or ("sum" if bounded else "half")
    cut_reads = isinstance(cuts, TruncatedBPTT) and cuts.reads == "cut"
    spec = ScanSpec(cell, memory, nonlinearity, combine, output, cut_reads, max_steps)
    if combine == "concat" and not spec.has_memory:
        raise ValueError(message("combine", "not be 'concat' without a memory", "'concat'", "Give `recent` at least 1"))
    return spec


def spell_out_options(cls: Any) -> None:
    """Give a preset that takes ``*shape`` and ``**options`` a signature that names them, for ``help`` and editors."""
    own = [item for item in inspect.signature(cls.__init__).parameters.values() if item.name != "self"]
    if own[-1].name != "options":
        return
    inherited = inspect.signature(cls.__mro__[1]).parameters.values()
    others = {name for name, cell in _CELLS_OWN.items() if cell != cls.cell}
    hidden = {mine.name for mine in own} | set(cls.fixed) | {"unknown"} | others
    missing = [item for item in inherited if item.name not in hidden]
    positional = [item for item in missing if item.kind == item.POSITIONAL_OR_KEYWORD]
    keywords = [item for item in missing if item.kind == item.KEYWORD_ONLY]
    first = [item for item in own if item.kind == item.POSITIONAL_OR_KEYWORD]
    named = [item for item in own if item.kind == item.KEYWORD_ONLY]
    cls.__signature__ = inspect.Signature([*first, *positional, *named, *keywords])  # type: ignore[attr-defined]
