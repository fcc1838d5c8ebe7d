"""A packed sequence through a layer as it is: the kernel takes real steps only, so nothing is padded on the way."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence

from remanence.ops import State, fused
from remanence.ops._around import wrappers
from remanence.ops._backend import choose_backend
from remanence.ops._saving import present

from ._sequence import check, packed_lengths
from ._state_entry import stack_states


def run_packed(layer: Any, packed: PackedSequence, state: Any) -> tuple[PackedSequence, State] | None:
    """The layer's output and final state, or None where the sequence must be padded: the reference, or both directions.

    Args:
        layer: a recurrent layer.
        packed: ``(N, input_size)``, the rows' real steps.
        state: where to go on from, as the layer takes it.
    """
    if layer.bidirectional or layer.cuts is not None or wrappers() or torch.compiler.is_compiling():
        return None
    x, lengths = packed.data, packed_lengths(packed)
    check(x[:, None], layer.input_size, layer._like())
    if choose_backend(layer.backend, layer.spec, x) != "fused":
        return None
    given = layer._enter_state(state, len(lengths))
    if given is not None and packed.sorted_indices is not None:
        given = given.select(packed.sorted_indices)
    finals = []
    for i in range(layer.num_layers):
        start = None if given is None else State(*(field[i] for field in given))
        weights, lean = layer.weights(f"_l{i}"), present().lean
        x, final, _ = fused.scan(x, weights, start, spec=layer.spec, lengths=lengths, lean=lean)
        finals.append(final)
        if layer.dropout and i < layer.num_layers - 1:
            x = dropout(x, layer.dropout, layer.training)
    final = stack_states(finals)
    if packed.unsorted_indices is not None:
        final = final.select(packed.unsorted_indices)
    return PackedSequence(x, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices), final
