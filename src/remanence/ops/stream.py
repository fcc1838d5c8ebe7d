"""One step of a stack of layers, for streams: one call, and nothing kept for a backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from remanence._validate import shape

from . import reference
from ._backend import Backend, choose_backend
from ._checks import check_given_state, check_layers
from ._half import HALF, widen_all
from ._kernel_config import SAVE_NOTHING, Config, encode, unsupported
from ._kernel_tensors import one_device
from ._library import library
from ._spec import ScanSpec
from ._stack import walk_stack
from ._state import State
from ._weights import Weights
from .state_shapes import check_chain, check_state
from .states import add_row, drop_row

NOTHING = torch.empty(0)
"""Stands for a weight that a layer does not have."""


@torch.no_grad()
def step(
    x: Tensor, layers: Sequence[Weights], state: State, *, spec: ScanSpec, backend: Backend = "auto"
) -> tuple[Tensor, State]:
    """One step through all layers: the same numbers as :func:`scan` layer by layer, without gradient.

    Args:
        x: ``(B, input_size)``, or ``(input_size,)`` unbatched.
        layers: parameters of each layer, the lowest first; all of one specification.
        state: fields ``(num_layers, B, ...)``, without ``B`` unbatched.
        spec: what kind of layer these are.
        backend: as in :func:`scan`.

    Returns:
        Output ``(B, output_size)`` of the last layer, and the state after it.

    Raises:
        RuntimeError: if `x` and `layers` do not fit together, or as :func:`scan`.
        ValueError: if the state does not fit, or as :func:`scan`.

    Example:
        >>> from remanence.ops.state_shapes import empty_state
        >>> weights, spec = Weights(ih=torch.randn(4, 3), hh=torch.randn(4, 4)), ScanSpec("rnn")
        >>> output, state = step(torch.randn(2, 3), [weights], empty_state(spec, 4, (1, 2), weights.hh), spec=spec)
        >>> output.shape, torch.equal(output, state.s[0]), state.step.tolist()
        (torch.Size([2, 4]), True, [[1, 1]])
    """
    if choose_backend(backend, spec, x) != "fused":
        try:
            return reference_step(x, layers, state, spec)
        except (AssertionError, TypeError, AttributeError):
            check_layers(layers, spec, x)
            raise
    if x.dtype in HALF:
        output, final = step(*widen_all((x, list(layers), state)), spec=spec, backend=backend)
        return output.to(x.dtype), final.to(state.s.dtype)
    try:
        return kernel_step(x, flatten(layers), state, encode(spec, SAVE_NOTHING))
    except RuntimeError:
        check_stack_state(state, layers, spec, x.shape[:-1])
        raise


def check_stack_state(state: State, layers: Sequence[Weights], spec: ScanSpec, rows: Sequence[int]) -> None:
    """Says which field of a state ``(num_layers, *rows, ...)`` does not fit, if one does not."""
    for weights in layers:
        shape("weights.ih", weights.ih, ("G", "input_size"))
        shape("weights.hh", weights.hh, ("G", "m"))
    check_given_state(state, spec, spec.cell.hidden_size(layers[0]), (len(layers), *rows), layers[0].hh)


def kernel_config(spec: ScanSpec) -> list[int] | None:
    """What :func:`kernel_step` must know of a specification; ``None`` if the kernel is not there or cannot run it."""
    if _KERNEL is None or unsupported(spec, torch.float32, torch.device("cpu")) is not None:
        return None
    return encode(spec, SAVE_NOTHING)


def kernel_step(x: Tensor, weights: list[Tensor], state: State, config: list[int]) -> tuple[Tensor, State]:
    """What :func:`step` does in the kernel, where that can run and gradients are off.

    Weights are as :func:`flatten` gives them, the configuration is that of :func:`kernel_config`.
    """
    # The chain is that of one-hop gradients, which the kernel does not compute: it passes by.
    s, c, h, chain, *held = state
    output, s, c, h, *held = _KERNEL(x, weights, s, c, h, *held, config)
    check_chain(chain, s)
    return output, State(s, c, h, chain, *held)


def flatten(layers: Iterable[Weights]) -> list[Tensor]:
    """All weights one after the other, an empty tensor where there is none."""
    return [NOTHING if tensor is None else tensor for layer in layers for tensor in layer.known_to_kernel()]


def reference_step(x: Tensor, layers: Sequence[Weights], state: State, spec: ScanSpec) -> tuple[Tensor, State]:
    """What :func:`step` does in plain torch; its arguments are the same."""
    check_state(state, spec, spec.cell.hidden_size(layers[0]), (len(layers), *x.shape[:-1]), layers[0].hh)

    def scan_one(rows: Tensor, start: State | None, index: int) -> tuple[Tensor, State]:
        output, final, _ = reference.scan(rows, layers[index], start, spec=spec)
        return output, final

    if x.dim() == 2:
        output, final = walk_stack(x.unsqueeze(0), scan_one, state, layers=len(layers))
        return output[0], final
    output, final = walk_stack(x[None, None], scan_one, add_row(state), layers=len(layers))
    return output[0, 0], drop_row(final)


def _fake(x: Tensor, weights: list[Tensor], *rest: Any) -> tuple[Tensor, ...]:
    *before, numbers = rest
    one_device((x, *present(weights), *before))
    config = Config(*numbers)
    s, c, h, recent, *others = before
    output = x.new_empty(*x.shape[:-1], s.shape[-1] * config.output_parts)
    after = [torch.empty_like(field) for field in (s, c, h)]
    return output, *after, grown(recent, 1, config), *map(torch.empty_like, others)


def present(weights: list[Tensor]) -> list[Tensor]:
    """The weights that a stack of layers has, of those that :func:`flatten` gives."""
    return [weight for weight in weights if weight is not NOTHING]


def grown(recent: Tensor, steps: int, config: Config) -> Tensor:
    """An empty tensor of the shape that a ring ``(..., slots, n)`` has after some steps: longer if it has no limit."""
    return recent.new_empty(*recent.shape[:-2], recent.shape[-2] + steps * config.grows, recent.shape[-1])


_KERNEL: Any = None  # the operator, looked up once: by its name it takes longer
if library().problem is None:
    _KERNEL = torch.ops.remanence.step.default
    torch.library.register_fake("remanence::step")(_fake)
