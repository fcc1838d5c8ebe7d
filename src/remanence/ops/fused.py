"""The scan in C++ as torch operators: the call, and the backward formula, which calls the second operator."""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._half import HALF, widen_all
from ._kernel_config import SAVE_ALL, SAVE_LEAN, SAVE_NOTHING, encode
from ._kernel_tensors import (
    COTANGENT_PLACES,
    COUNT_PLACES,
    GRADIENT_PLACES,
    HISTORY,
    KEPT_PLACES,
    SAVED_PLACES,
    SCORE_PLACES,
    ScanInputs,
    fake_backward,
    fake_forward,
)
from ._library import library
from ._log import Log
from ._spec import ScanSpec
from ._state import State
from ._weights import Weights
from .state_shapes import check_chain


def transform_active() -> bool:
    """Whether functorch or forward-mode AD is at work, which need the reference.

    Example:
        >>> transform_active()
        False
    """
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def scan(
    x: Tensor,
    weights: Weights,
    state: State | None,
    *,
    spec: ScanSpec,
    reset: Tensor | None = None,
    lengths: Tensor | None = None,
    cut_h: Tensor | None = None,
    cut_c: Tensor | None = None,
    h_offset: Tensor | None = None,
    forced_log: Log | None = None,
    lean: bool = False,
) -> tuple[Tensor, State, Log]:
    """One layer, one direction, all steps. Arguments as in :func:`remanence.ops.scan`.

    ``x`` may also be packed, ``(N, input_size)``, with ``lengths`` longest first, and what is by time is so too: the
    data of a ``PackedSequence``.

    With ``lean`` less is saved for the backward pass, see :func:`remanence.ops.saving`.

    Half precision is computed in float32: the output has the dtype of ``x``, the state that of the weights.
    """
    if x.dtype in HALF or weights.ih.dtype in HALF:
        options = {"reset": reset, "lengths": lengths, "cut_h": cut_h, "cut_c": cut_c, "forced_log": forced_log}
        wide = (widen_all(x), widen_all(weights), widen_all(state))
        output, final, log = scan(*wide, spec=spec, h_offset=widen_all(h_offset), lean=lean, **options)
        return output.to(x.dtype), final.to(weights.ih.dtype), log
    carried: tuple[Tensor | None, ...] = _NO_STATE
    if state is not None:
        carried = (*state[:3], *state[4:])  # without `chain`
    forced = None
    if forced_log is not None:
        forced = forced_log.slot
    tensors = (x, *weights.known_to_kernel(), *carried, reset, lengths, cut_h, cut_c, h_offset, forced)
    # The forward pass allocates what the backward one needs: it must be known now whether there can be one.
    learns = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
    save = SAVE_NOTHING
    if learns:
        save = SAVE_LEAN if lean else SAVE_ALL
    config = encode(spec, save)
    if learns and not torch.compiler.is_compiling():
        made = _Scan.apply(config, *tensors)
    else:
        made = _FORWARD(*tensors, config)
    output, s, c, h, *held, slot, displaced = made[:HISTORY]
    chain = x.new_empty(s.shape[0], 0)
    if state is not None:
        chain = state.chain
        check_chain(chain, s)
    return output, State(s, c, h, chain, *held), Log(slot, displaced)


_NO_STATE = (None,) * (len(State._fields) - 1)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, config = inputs
    ctx.config = config
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*(output[i] for i in SCORE_PLACES))
    if config[-1] != SAVE_NOTHING:
        ctx.save_for_backward(*[tensors[i] for i in KEPT_PLACES], *[output[i] for i in SAVED_PLACES])


def _backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
    if ctx.config[-1] == SAVE_NOTHING:
        raise RuntimeError("this scan ran without saving anything for a backward pass")
    return (*_give(ctx, ctx.needs_input_grad, grads), None)


def _give(ctx: Any, needs: tuple[bool, ...], grads: tuple[Tensor | None, ...]) -> list[Tensor | None]:
    """The gradients of all inputs, ``None`` where there is or need be none."""
    # The kernel computes only the gradients whose bit is set; for the others it returns empty tensors.
    wanted = 0
    for bit, place in enumerate(GRADIENT_PLACES):
        wanted |= needs[place] << bit
    given = _BACKWARD(*[grads[i] for i in COTANGENT_PLACES], *ctx.saved_tensors, ctx.config, wanted)
    result: list[Tensor | None] = [None] * len(ScanInputs._fields)
    for place, gradient in zip(GRADIENT_PLACES, given, strict=True):
        if needs[place]:
            result[place] = gradient
    return result


class _Scan(torch.autograd.Function):
    """What :func:`torch.library.register_autograd` makes of the two above, in fewer steps.

    With those, torch's own bookkeeping took most of a short call. In a compiled graph the registered one serves.
    """

    @staticmethod
    def forward(ctx: Any, config: list[int], *tensors: Tensor | None) -> tuple[Tensor, ...]:
        with torch._C._AutoDispatchBelowAutograd():
            made = _FORWARD(*tensors, config)
        ctx.config = config
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[made[i] for i in COUNT_PLACES])
        ctx.save_for_backward(*[tensors[i] for i in KEPT_PLACES], *[made[i] for i in SAVED_PLACES])
        return made[:HISTORY]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        needs = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():  # somebody wants a second derivative: the operator says what to do
            return (None, *_give(ctx, needs, grads))
        with torch._C._AutoDispatchBelowAutograd():
            return (None, *_give(ctx, needs, grads))


def _refuse_double(ctx: Any, *grads: Tensor | None) -> NoReturn:
    raise RuntimeError("the fused kernel has no second derivative: use backend='reference' for double backward")


def _register() -> None:
    torch.library.register_fake("remanence::scan_forward")(fake_forward)
    torch.library.register_fake("remanence::scan_backward")(fake_backward)
    torch.library.register_autograd("remanence::scan_forward", _backward, setup_context=_save)
    torch.library.register_autograd("remanence::scan_backward", _refuse_double)


_FORWARD: Any = None  # the operators, looked up once: by name it takes longer
_BACKWARD: Any = None
if library().problem is None:
    _FORWARD = torch.ops.remanence.scan_forward.default
    _BACKWARD = torch.ops.remanence.scan_backward.default
    _register()
