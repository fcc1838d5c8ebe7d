"""What a model asks of any core: ours, torch's own recurrent layers, or a user's that follows the protocol."""

from __future__ import annotations

import inspect
from typing import Any

from torch import Tensor, nn

from remanence._validate import message
from remanence.nn._core_layouts import CoreState, step_of
from remanence.nn._registry import get_model


def make_core(core: nn.Module | str, width: int, options: dict[str, Any], dropout: float) -> nn.Module:
    """Builds a named core, or checks that a given one fits.

    Args:
        core: the module, or the name of a class in :func:`remanence.nn.list_models`.
        width: features that it will be given.
        options: further arguments of a named core.
        dropout: of a named core.

    Example:
        >>> make_core("RelLSTM", 3, {"hidden_size": 8}, 0.0).hidden_size
        8
    """
    if isinstance(core, str):
        if dropout:  # cores that cannot drop anything do not take the argument
            options = {"dropout": dropout, **options}
        return get_model(core)(width, **options)
    if not isinstance(core, nn.Module):
        raise TypeError(message("core", "be a module or the name of one", type(core).__name__))
    if options:
        hint = "Give them to the module itself"
        raise TypeError(message("core", f"be a name to take options ({', '.join(options)})", type(core).__name__, hint))
    if core.input_size != width:
        raise ValueError(message("core", f"have input_size {width}, as the encoder gives", str(core.input_size)))
    return core


def core_output_size(core: Any) -> int:
    """Features of a core's output; torch's layers do not name theirs."""
    if isinstance(core, nn.RNNBase):
        return (core.proj_size or core.hidden_size) * (1 + core.bidirectional)
    return core.output_size


def core_step(core: Any, input_t: Tensor, state: CoreState) -> tuple[Tensor, CoreState]:
    """One step of a stream; torch's layers know whole sequences only."""
    if not isinstance(core, nn.RNNBase):
        return core.step(input_t, state)
    if core.bidirectional:
        raise ValueError(message("core", "run forward only to be stepped", "bidirectional=True"))
    return step_of(core, input_t, state)


def reset_option(core: nn.Module, reset: Tensor | None) -> dict[str, Tensor]:
    """The keyword argument that hands `reset` to the core: none if there is nothing to hand over."""
    if reset is None:
        return {}
    if "reset" not in inspect.signature(core.forward).parameters:
        hint = "The recurrent layers of remanence.nn take it"
        raise ValueError(message("reset", f"be None with the core {type(core).__name__}", "a tensor", hint))
    return {"reset": reset}
