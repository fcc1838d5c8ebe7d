"""One call of a recurrent layer: layouts and states in, the walk over its stack, layouts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from remanence import ops
from remanence._validate import message
from remanence.ops import State, Trace
from remanence.ops.reference import scan as reference_scan

from . import _sequence
from ._state_entry import StateLike

if TYPE_CHECKING:
    from ._layer import RecurrentLayer


def call_layer(
    layer: RecurrentLayer, input: _sequence.SequenceInput, state: StateLike, reset: Tensor | None
) -> tuple[_sequence.SequenceInput, State]:
    """What :meth:`RecurrentLayer.forward` does, with its arguments."""
    if isinstance(input, PackedSequence) and reset is None and _stays_packed(layer, input):
        return _call_packed(layer, input, state)
    output, final, layout = _run(layer, input, state, reset, None)
    return _sequence.leave(output, layout), final


def trace_layer(
    layer: RecurrentLayer, input: _sequence.SequenceInput, state: StateLike, reset: Tensor | None
) -> tuple[Trace, ...]:
    """What :meth:`RecurrentLayer.trace` does, with its arguments."""
    traces: list[Trace] = []
    *_, layout = _run(layer, input, state, reset, traces)
    return tuple(Trace(*(layout.outer(part) for part in trace)) for trace in traces)


def _run(
    layer: RecurrentLayer,
    input: _sequence.SequenceInput,
    state: StateLike,
    reset: Tensor | None,
    traces: list[Trace] | None,
) -> tuple[Tensor, State, _sequence.CallLayout]:
    """The walk over ``(T, B, ...)``; with ``traces``, one is appended for every layer and direction."""
    x, lengths, layout = _sequence.enter(input, layer.input_size, layer.batch_first, layer._like())
    length, batch = x.shape[:2]
    reset = _sequence.enter_reset(reset, layout, length, batch, x.device)
    given = layer._enter_state(state, batch, batched=layout.batched)
    _check_steps(layer, given, length)
    resets = [reset] * layer.directions
    if layer.bidirectional and reset is not None:
        resets[1] = ops.reverse_reset(reset, lengths)

    def scan_one(x: Tensor, start: State | None, index: int) -> tuple[Tensor, State]:
        weights = layer.weights(layer.suffix(index))
        starts = resets[index % layer.directions]
        cut_h, cut_c = layer.cut_masks(x, start, starts)
        options: dict[str, Any] = {
            "spec": layer.spec,
            "reset": starts,
            "lengths": lengths,
            "cut_h": cut_h,
            "cut_c": cut_c,
        }
        output, final, log = ops.scan(x, weights, start, backend=layer.backend, **options)
        if traces is not None:
            reference_scan(x, weights, start, forced_log=log, trace=traces, **options)
        return output, final

    output, final = ops.walk_stack(
        x,
        scan_one,
        given,
        layers=layer.num_layers,
        directions=layer.directions,
        lengths=lengths,
        drop=layer.dropout * layer.training,
    )
    return output, layout.outer_state(final), layout


def _check_steps(layer: RecurrentLayer, state: State | None, length: int) -> None:
    most = layer.spec.max_steps
    if most is None:
        return
    end = length
    if state is not None:
        end += int(state.step.max())
    if end > most:
        raise ValueError(message("max_steps", f"be at least the {end} steps of this row", most))


def _stays_packed(layer: RecurrentLayer, packed: PackedSequence) -> bool:
    """Whether nothing needs the sequence padded: cuts and the other direction do, and the reference."""
    if layer.bidirectional or layer.cuts is not None or torch.compiler.is_compiling():
        return False
    _sequence.check(packed.data[:, None], layer.input_size, layer._like())
    return ops.stays_packed(packed, layer.spec, layer.backend)


def _call_packed(layer: RecurrentLayer, packed: PackedSequence, state: StateLike) -> tuple[PackedSequence, State]:
    given = layer._enter_state(state, int(packed.batch_sizes[0]), batched=True)
    if given is not None and packed.sorted_indices is not None:
        given = given.select(packed.sorted_indices)

    def scan_one(x: PackedSequence, start: State | None, index: int) -> tuple[PackedSequence, State]:
        output, final, _ = ops.scan(x, layer.weights(f"_l{index}"), start, spec=layer.spec, backend=layer.backend)
        return output, final

    # Rows are sorted here, once for all layers: to the scans they are in their own order.
    rows = PackedSequence(packed.data, packed.batch_sizes)
    drop = layer.dropout * layer.training
    output, final = ops.walk_stack(rows, scan_one, given, layers=layer.num_layers, drop=drop)
    if packed.unsorted_indices is not None:
        final = final.select(packed.unsorted_indices)
    return PackedSequence(output.data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices), final
