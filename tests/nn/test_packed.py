"""Packed sequences go through the kernel as they are; what comes out is what the padded way gives."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from remanence import nn
from remanence.testing import assert_matches, sharpen_

LAYERS = [(nn.RelLSTM, {"recent": 3, "relevant": 2}), (nn.LSTM, {}), (nn.RelGRU, {"recent": 3, "relevant": 2})]
LAYERS += [(nn.MemRNN, {"combine": "half"}), (nn.SABLSTM, {"top_k": 2})]  # half: a sum of all would amplify rounding
ROWS = (5, 23, 1, 14, 14, 2)


def results(layer, rows, sorted_rows, state=None):
    if sorted_rows:
        rows = sorted(rows, key=len, reverse=True)
    learning = [row.clone().requires_grad_() for row in rows]
    packed = pack_sequence(learning, enforce_sorted=sorted_rows)
    output, final = layer(packed, state)
    weights = torch.arange(output.data.numel(), dtype=torch.float64).reshape(output.data.shape).cos()
    value = (output.data * weights).sum() + final.s.square().sum() + final.recent.sum()
    found = dict(zip(("output", *final._fields), (output.data, *final), strict=True))
    gradients = torch.autograd.grad(value, [*learning, *layer.parameters()], allow_unused=True)
    names = [*(f"row {i}" for i in range(len(rows))), *(name for name, _ in layer.named_parameters())]
    found |= {f"d.{name}": grad for name, grad in zip(names, gradients, strict=True) if grad is not None}
    return {name: tensor.detach() for name, tensor in found.items() if tensor.numel()}


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("sorted_rows", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize(("make", "options"), LAYERS, ids=lambda value: getattr(value, "__name__", ""))
def test_packed_input_equals_the_reference(make, options, num_layers, sorted_rows, started):
    torch.manual_seed(0)
    layer = make(3, 5, num_layers, dtype=torch.float64, backend="fused", **options)
    sharpen_(layer)
    rows = [torch.randn(length, 3, dtype=torch.float64) for length in ROWS]
    state = layer(torch.randn(7, len(ROWS), 3, dtype=torch.float64))[1].detach() if started else None
    found = results(layer, rows, sorted_rows, state)
    layer.backend = "reference"
    expected = results(layer, rows, sorted_rows, state)
    assert_matches(
        {name: found[name] for name in expected}, expected
    )  # the query of a static score cancels: no gradient


def test_a_reset_goes_the_padded_way():
    layer = nn.RelLSTM(3, 5, recent=3, relevant=2)
    packed = pack_sequence([torch.randn(6, 3), torch.randn(4, 3)])
    reset = torch.zeros(6, 2, dtype=torch.bool)
    assert torch.equal(layer(packed, reset=reset)[0].data, layer(packed)[0].data)


def test_what_does_not_fit_is_named():
    layer = nn.RelLSTM(3, 5)
    with pytest.raises(ValueError, match="3 features"):
        layer(pack_sequence([torch.randn(6, 2)]))
    with pytest.raises(ValueError, match="dtype"):
        layer(pack_sequence([torch.randn(6, 3, dtype=torch.float64)]))
