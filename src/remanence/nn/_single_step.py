"""One step of a layer in one call of the kernel, where there is nothing to learn, to drop or to watch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.modules import module as torch_module

from remanence.ops import State
from remanence.ops._backend import choose_backend
from remanence.ops.stream import fused_step


def step_at_once(layer: Any, input_t: Tensor, state: Any) -> tuple[Tensor, State] | None:
    """One step of a recurrent layer, or None where it needs the ordinary way: there, bad input is also named.

    Args:
        layer: the layer, running forward only.
        input_t: ``(B, input_size)`` or ``(input_size,)``.
        state: where the stream stands.
    """
    if torch.is_grad_enabled() or not isinstance(state, State) or layer.backend == "reference" or not input_t.is_cpu:
        return None
    if layer.training and (layer.dropout or layer.cuts is not None):
        return None
    if _watched(layer) or torch.is_autocast_enabled("cpu") or torch.compiler.is_compiling():
        return None
    try:
        choose_backend("fused", layer.spec, input_t)
        return fused_step(input_t, [layer.weights(f"_l{i}") for i in range(layer.num_layers)], state, layer.spec)
    except (RuntimeError, ValueError):
        return None


def _watched(layer: Any) -> bool:
    """Whether a hook must see the call."""
    own = layer._forward_hooks or layer._forward_pre_hooks
    return bool(own or torch_module._global_forward_hooks or torch_module._global_forward_pre_hooks)
