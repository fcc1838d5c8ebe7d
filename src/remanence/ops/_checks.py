"""What a scan was given, looked at closely.

The kernel checks every tensor itself, faster than Python could; where it refuses one, these checks say which and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from remanence._validate import message, shape

from ._log import Log
from ._spec import ScanSpec
from ._state import State
from ._weights import PARAMETER_NAMES, Weights
from .state_shapes import casts, check_counts, check_held, check_state, readable


def check_scan(x: Tensor, weights: Weights, state: State | None, spec: ScanSpec, options: dict[str, Any]) -> None:
    """Checks all arguments of :func:`remanence.ops.scan`; the backends do not.

    Raises:
        TypeError: an argument is no tensor.
        ValueError: an argument has another shape, dtype or device than the others need, or numbers that mean nothing.
    """
    shape("x", x, ("T", "B", "input_size"))
    check_weights(x, weights, spec)
    hidden = spec.cell.hidden_size(weights)
    if state is not None:
        check_given_state(state, spec, hidden, (x.shape[1],), weights.hh)
    check_options(x, hidden, **options)


def check_packed(packed: PackedSequence, weights: Weights, state: State | None, spec: ScanSpec) -> None:
    """As :func:`check_scan`, for a packed input, which has no options."""
    shape("x.data", packed.data, ("N", "input_size"))
    check_weights(packed.data, weights, spec)
    if state is not None:
        rows = int(packed.batch_sizes[0])
        check_given_state(state, spec, spec.cell.hidden_size(weights), (rows,), weights.hh)


def check_given_state(state: State, spec: ScanSpec, hidden: int, batch: tuple[int, ...], like: Tensor) -> None:
    """As :func:`check_state`, the counts too: for one that was refused already, so it may take its time."""
    if not isinstance(state, State):
        raise TypeError(message("state", "be a State or None", type(state).__name__))
    check_state(state, spec, hidden, batch, like)
    check_counts(state.step)
    check_held(state.relevant_step, state.step)


def check_weights(x: Tensor, weights: Weights, spec: ScanSpec) -> None:
    """Checks the parameters of one layer against its specification and its input ``(..., input_size)``."""
    gates = len(spec.cell.gates)
    shape("weights.hh", weights.hh, ("G", "m"))
    hidden = spec.cell.hidden_size(weights)
    expect("weights.ih", weights.ih, (gates * hidden, x.shape[-1]), x)
    expect("weights.hh", weights.hh, (gates * hidden, spec.macro_size(hidden)), x)
    for name in ("bias_ih", "bias_hh"):
        if getattr(weights, name) is not None:
            expect(f"weights.{name}", getattr(weights, name), (gates * hidden,), x)
    fields = dict(zip(PARAMETER_NAMES, Weights._fields, strict=False))
    for name, own in spec.own_parameters(hidden).items():
        if name in fields:
            expect(f"weights.{fields[name]}", getattr(weights, fields[name]), own.shape, x)


def check_layers(layers: Sequence[Weights], spec: ScanSpec, x: Tensor) -> None:
    """As :func:`check_weights`, for a stack of layers whose first one reads ``x`` ``(..., input_size)``."""
    for weights in layers:
        check_weights(x, weights, spec)
        x = x.new_empty(spec.output_size(spec.cell.hidden_size(weights)))


def check_options(
    x: Tensor,
    hidden: int,
    reset: Tensor | None = None,
    lengths: Tensor | None = None,
    cut_h: Tensor | None = None,
    cut_c: Tensor | None = None,
    h_offset: Tensor | None = None,
    forced_log: Log | None = None,
) -> None:
    """Checks the arguments of a scan that go by time, and the lengths."""
    steps, rows = x.shape[:2]
    for name, mask in {"reset": reset, "cut_h": cut_h, "cut_c": cut_c}.items():
        if mask is not None:
            expect(name, mask, (steps, rows), x, torch.bool)
    if h_offset is not None:
        expect("h_offset", h_offset, (steps, rows, hidden), x)
    if forced_log is not None:
        expect("forced_log.slot", getattr(forced_log, "slot", forced_log), (steps, rows), x, torch.int64)
    if lengths is None:
        return
    expect("lengths", lengths, (rows,), x, torch.int64)
    if readable(lengths) and rows:
        low, high = (int(bound) for bound in lengths.aminmax())
        if low < 1 or high > steps:
            raise ValueError(message("lengths", f"be from 1 to {steps}, the steps of `x`", f"{low} to {high}"))


def expect(name: str, value: Any, sizes: Sequence[int], like: Tensor, dtype: torch.dtype | None = None) -> None:
    """Checks a tensor: its shape, its dtype (that of ``like`` unless there is one of its own) and its device."""
    shape(name, value, sizes)
    if dtype is None and value.is_floating_point() and casts(like.device):
        dtype = value.dtype
    if value.dtype != (dtype or like.dtype):
        raise ValueError(message(name, f"have dtype {dtype or like.dtype}", str(value.dtype)))
    if value.device != like.device or value.layout != like.layout:
        expected, got = (f"{tensor.layout} on {tensor.device}" for tensor in (like, value))
        raise ValueError(message(name, f"be {expected}", got, "Move it with .to()"))
