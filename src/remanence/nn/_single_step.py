"""One step of a layer in one call of the kernel, where there is nothing to learn, to drop or to watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn.modules import module as torch_module

from remanence.ops import ScanSpec, State
from remanence.ops.fused import transform_active
from remanence.ops.stream import flatten, kernel_config, kernel_step

if TYPE_CHECKING:
    from ._layer import RecurrentLayer


class _Stream(NamedTuple):
    """What all steps of a layer have in common; kept on the layer: to find it takes longer than a small step."""

    spec: ScanSpec
    config: list[int] | None  # None where the kernel cannot run this layer
    suffixes: list[str]


def step_at_once(layer: RecurrentLayer, input_t: Tensor, state: object) -> tuple[Tensor, State] | None:
    """One step of a layer that runs forward only, or None where it needs the ordinary way, which names bad input."""
    if torch.is_grad_enabled() or not isinstance(state, State) or layer.backend == "reference" or not input_t.is_cpu:
        return None
    if layer.training and (layer.dropout or layer.cuts is not None):
        return None
    if _watched(layer) or torch.is_autocast_enabled("cpu") or torch.compiler.is_compiling():
        return None
    stream = layer.__dict__.get("_stream")
    if stream is None or stream.spec is not layer.spec:
        suffixes = [f"_l{i}" for i in range(layer.num_layers)]
        stream = layer.__dict__["_stream"] = _Stream(layer.spec, kernel_config(layer.spec), suffixes)
    if stream.config is None or transform_active():
        return None
    try:
        return kernel_step(input_t, flatten(map(layer.weights, stream.suffixes)), state, stream.config)
    except (RuntimeError, ValueError):
        return None


def _watched(layer: RecurrentLayer) -> bool:
    """Whether a hook must see the call."""
    own = layer._forward_hooks or layer._forward_pre_hooks
    return bool(own or torch_module._global_forward_hooks or torch_module._global_forward_pre_hooks)
