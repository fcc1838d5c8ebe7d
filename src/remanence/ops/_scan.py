"""The scan: one layer, one direction, all steps; the one path under every recurrent layer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, overload

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from remanence._validate import message

from . import fused, reference
from ._backend import Backend, choose_backend
from ._backward_memory import present, scan_in_segments
from ._checks import check_options, check_packed, check_scan
from ._log import Log
from ._scan_hooks import wrappers
from ._spec import ScanSpec
from ._state import State
from ._weights import Weights
from .packed import like_packed, pack_like, pack_log, packed_lengths, pad, take_rows
from .state_shapes import initial_state


@overload
def scan(
    x: Tensor,
    weights: Weights,
    state: State | None = None,
    *,
    spec: ScanSpec,
    reset: Tensor | None = None,
    lengths: Tensor | None = None,
    cut_h: Tensor | None = None,
    cut_c: Tensor | None = None,
    h_offset: Tensor | None = None,
    forced_log: Log | None = None,
    backend: Backend = "auto",
) -> tuple[Tensor, State, Log]: ...
@overload
def scan(
    x: PackedSequence, weights: Weights, state: State | None = None, *, spec: ScanSpec, backend: Backend = "auto"
) -> tuple[PackedSequence, State, Log]: ...
def scan(
    x: Tensor | PackedSequence,
    weights: Weights,
    state: State | None = None,
    *,
    spec: ScanSpec,
    reset: Tensor | None = None,
    lengths: Tensor | None = None,
    cut_h: Tensor | None = None,
    cut_c: Tensor | None = None,
    h_offset: Tensor | None = None,
    forced_log: Log | None = None,
    backend: Backend = "auto",
) -> tuple[Tensor | PackedSequence, State, Log]:
    """One layer, one direction, over all steps: the one path under every recurrent layer.

    Args:
        x: ``(T, B, input_size)``, or a ``PackedSequence``; with that the options by time must be ``None``.
        weights: parameters of the layer.
        state: fields ``(B, ...)``; ``None`` starts empty.
        spec: what kind of layer this is.
        reset: ``(T, B)`` bool: the row is reset before this step.
        lengths: ``(B,)`` int64, at least 1: steps of each row; later outputs are 0 and leave the state alone.
        cut_h: ``(T, B)`` bool: no gradient through ``s`` (cell input, query and leak) into the step before.
        cut_c: ``(T, B)`` bool: no gradient through ``c`` into the step before.
        h_offset: ``(T, B, n)`` added to ``h``; its gradient is dL/dh.
        forced_log: take these choices of who enters the memory instead of making them.
        backend: ``"reference"``, ``"fused"`` or ``"auto"``.

    Raises:
        TypeError: a tensor was expected, and something else came.
        ValueError: arguments do not fit together; the message names the first that does not.

    Returns:
        Output ``(T, B, output_size)``, the final state and the log of who entered the memory. For a packed input the
        output is packed too, and the log is ``(N,)`` in its order; rows of the state are in the caller's order.

    Example:
        >>> import torch
        >>> weights = Weights(ih=torch.randn(4, 3), hh=torch.randn(4, 4))
        >>> output, state, log = scan(torch.randn(6, 2, 3), weights, spec=ScanSpec("rnn"))
        >>> output.shape, torch.equal(output[-1], state.s)
        (torch.Size([6, 2, 4]), True)
    """
    options = {
        "reset": reset,
        "lengths": lengths,
        "cut_h": cut_h,
        "cut_c": cut_c,
        "h_offset": h_offset,
        "forced_log": forced_log,
    }
    if isinstance(x, PackedSequence):
        return _scan_packed(x, weights, state, spec, backend, options)
    run = _scan
    for wrapper in wrappers():
        run = partial(wrapper, run)
    return run(x, weights, state, spec=spec, backend=backend, **options)


def stays_packed(packed: PackedSequence, spec: ScanSpec, backend: Backend = "auto") -> bool:
    """Whether the scan takes a packed sequence as it is: the kernel does; elsewhere it is padded on the way.

    Args:
        packed: ``(N, input_size)``.
        spec: what kind of layer this is.
        backend: as in :func:`scan`.

    Example:
        >>> packed = torch.nn.utils.rnn.pack_sequence([torch.zeros(3, 1), torch.zeros(1, 1)])
        >>> stays_packed(packed, ScanSpec("rnn"), "reference")
        False
    """
    if wrappers() or torch.compiler.is_compiling():  # they expect (T, B, ...)
        return False
    return choose_backend(backend, spec, packed.data) == "fused"


def _scan_packed(
    packed: PackedSequence,
    weights: Weights,
    state: State | None,
    spec: ScanSpec,
    backend: Backend,
    options: Mapping[str, object],
) -> tuple[PackedSequence, State, Log]:
    for name, value in options.items():
        if value is not None:
            hint = "Pad the sequence and give its `lengths`"
            raise ValueError(message(name, "be None with a PackedSequence", type(value).__name__, hint))
    if not stays_packed(packed, spec, backend):
        padded, lengths = pad(packed)
        output, final, log = scan(padded, weights, state, spec=spec, lengths=lengths, backend=backend)
        return pack_like(output, packed), final, pack_log(log, packed)
    start = take_rows(state, packed.sorted_indices)
    lengths = packed_lengths(packed)
    try:
        output, final, log = fused.scan(packed.data, weights, start, spec=spec, lengths=lengths, lean=present().lean)
    except RuntimeError:
        check_packed(packed, weights, state, spec)
        raise
    return like_packed(packed, output), take_rows(final, packed.unsorted_indices), log


def _scan(
    x: Tensor,
    weights: Weights,
    state: State | None = None,
    *,
    spec: ScanSpec,
    lengths: Tensor | None = None,
    forced_log: Log | None = None,
    backend: Backend = "auto",
    **by_time: Any,
) -> tuple[Tensor, State, Log]:
    """The scan itself, on the backend that was asked for."""
    options = {"lengths": lengths, "forced_log": forced_log, **by_time}
    if torch.compiler.is_compiling():
        return _run(x, weights, state, spec, backend, options)
    try:
        return _run(x, weights, state, spec, backend, options)
    except (RuntimeError, TypeError, AttributeError, IndexError, AssertionError):
        check_scan(x, weights, state, spec, options)
        raise


def _run(
    x: Tensor, weights: Weights, state: State | None, spec: ScanSpec, backend: Backend, options: dict[str, Any]
) -> tuple[Tensor, State, Log]:
    if not x.shape[0]:
        raise ValueError(message("x", "hold at least one step", "0 steps"))
    kept = present()
    run = reference.scan
    if choose_backend(backend, spec, x) == "fused":
        run = partial(fused.scan, lean=kept.lean)
    elif not torch.compiler.is_compiling():  # torch would stretch what does not fit
        check_options(x, spec.cell.hidden_size(weights), **options)
    segment = kept.segment
    if segment is not None and options["lengths"] is None and torch.is_grad_enabled() and x.shape[0] > segment:
        if state is None:
            state = initial_state(spec, weights, x.shape[1])
        by_time = {name: value for name, value in options.items() if name not in ("lengths", "forced_log")}
        return scan_in_segments(run, segment, x, weights, state, spec, by_time, options["forced_log"])
    return run(x, weights, state, spec=spec, **options)
