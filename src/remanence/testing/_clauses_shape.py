"""Clauses of the layer contract about shapes: batches, packed sequences, several layers and directions."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from remanence.ops import State

from ._layer_under_test import BATCH, HIDDEN, LENGTH, LayerUnderTest, assert_equal, clause, named, same
from ._tolerance import assert_matches


@clause()
def shapes(subject: LayerUnderTest) -> None:
    """Output, state and their leading dimensions."""
    layer = subject.layer()
    output, state = layer(subject.data())
    same(tuple(output.shape), (LENGTH, BATCH, layer.output_size), "output")
    for name, field in state._asdict().items():
        same(tuple(field.shape[:2]), (1, BATCH), f"leading dimensions of state.{name}")
    same(state.step.tolist(), [[LENGTH] * BATCH], "state.step")
    entering = state.hx[0] if isinstance(state.hx, tuple) else state.hx
    assert_equal(entering, state.s, "state.hx")


@clause()
def batch_first(subject: LayerUnderTest) -> None:
    """``batch_first`` moves the batch of input, output and reset, never that of the state."""
    x = subject.data()
    plain = subject.layer()
    swapped = subject.layer(batch_first=True)
    reset = torch.rand(LENGTH, BATCH, generator=torch.Generator().manual_seed(1)) < 0.1
    output, state = plain(x, reset=reset)
    other, other_state = swapped(x.transpose(0, 1), reset=reset.T)
    assert_matches({"output": other.transpose(0, 1)} | named(other_state), {"output": output} | named(state))
    one, _ = swapped.step(x[0])
    assert_matches({"step": one}, {"step": swapped(x[:1].transpose(0, 1))[0][:, 0]})


@clause()
def unbatched(subject: LayerUnderTest) -> None:
    """Input without a batch dimension gives output and state without one."""
    layer = subject.layer()
    x = subject.data(batch=1)
    output, state = layer(x)
    alone, alone_state = layer(x[:, 0], layer.initial_state())
    expected = State(*(field[:, 0] for field in state))
    assert_matches({"output": alone} | named(alone_state), {"output": output[:, 0]} | named(expected))


@clause()
def packed_sequence(subject: LayerUnderTest) -> None:
    """Packed in, packed out; every row as if it ran alone; padding touches neither state nor memory."""
    layer = subject.layer(num_layers=2, bidirectional=True)
    x = subject.data()
    # Not in order of length, and one row ends with its first step.
    lengths = [LENGTH // 2, LENGTH, 1]
    packed = pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
    result, state = layer(packed)
    padded, got = pad_packed_sequence(result)
    same(got.tolist(), lengths, "lengths")
    for row, length in enumerate(lengths):
        output, alone = layer(x[:length, row : row + 1])
        kept = State.cat([state.select([row]), alone])  # a growing memory of a short row has empty slots at its end
        actual = {"output": padded[:length, row]} | named(kept.select([0]))
        assert_matches(actual, {"output": output[:, 0]} | named(kept.select([1])))
    padding = float(padded[lengths[0] :, 0].detach().abs().max())
    same(padding, 0.0, "output at padding")


@clause()
def padding_gets_no_gradient(subject: LayerUnderTest) -> None:
    """What stands behind the end of a row has no influence, and its gradient is zero."""
    layer = subject.layer()
    x = subject.data().requires_grad_()
    packed = pack_padded_sequence(x, torch.tensor([LENGTH, 20, 5]), enforce_sorted=False)
    output, state = layer(packed)
    loss = output.data.sum() + sum(field.sum() for field in state if field.is_floating_point())
    (gradient,) = torch.autograd.grad(loss, x)
    same(float(gradient[20:, 1].abs().max()), 0.0, "gradient of padding")
    if not float(gradient[:20, 1].abs().min(dim=1).values.max()) > 0:
        raise AssertionError("no gradient reaches the real steps")


@clause()
def several_layers(subject: LayerUnderTest) -> None:
    """Two layers are the first layer's output put into the second."""
    layer = subject.layer(num_layers=2)
    x = subject.data()
    output, state = layer(x)
    same(tuple(state.s.shape[:2]), (2, BATCH), "leading dimensions of state.s")
    lower = subject.layer()
    upper = subject.factory(layer.output_size, HIDDEN, dtype=torch.float64)
    _copy_layer(layer, lower, "_l0")
    _copy_layer(layer, upper, "_l1")
    middle, lower_state = lower(x)
    expected, upper_state = upper(middle)
    joined = State(*(torch.cat(fields) for fields in zip(lower_state, upper_state, strict=True)))
    assert_matches({"output": output} | named(state), {"output": expected} | named(joined))


def _copy_layer(source: nn.Module, target: nn.Module, suffix: str) -> None:
    values = {name: value for name, value in source.state_dict().items() if name.endswith(suffix)}
    renamed = {name.removesuffix(suffix) + "_l0": value for name, value in values.items()}
    target.load_state_dict(renamed, strict=False)
    missing = {name for name, _ in target.named_parameters()} - set(renamed)
    same(missing, set(), "parameters without a counterpart")


@clause()
def dropout_between_layers(subject: LayerUnderTest) -> None:
    """Dropout acts between layers, in training mode only."""
    layer = subject.layer(num_layers=2, dropout=0.5)
    x = subject.data()
    torch.manual_seed(0)
    first = layer(x)[0]
    if torch.equal(first, layer(x)[0]):
        raise AssertionError("dropout does nothing in training mode")
    layer.eval()
    assert_equal(layer(x)[0], layer(x)[0], "evaluation mode")
    # The first layer's state comes before any dropout: it must not know of the mode.
    lower = layer(x)[1].s[0]
    assert_matches({"first layer": layer.train()(x)[1].s[0]}, {"first layer": lower})


@clause()
def bidirectional(subject: LayerUnderTest) -> None:
    """The second direction is the layer run from the end, with weights of its own."""
    layer = subject.layer(bidirectional=True)
    x = subject.data()
    output, state = layer(x)
    one = subject.layer()
    half = one.output_size
    same(tuple(output.shape), (LENGTH, BATCH, 2 * half), "output")
    values = {name.removesuffix("_reverse"): v for name, v in layer.state_dict().items() if name.endswith("_reverse")}
    one.load_state_dict(values, strict=False)
    backward, final = one(x.flip(0))
    expected = {"output": backward.flip(0)} | named(State(*(field[0] for field in final)))
    assert_matches({"output": output[..., half:]} | named(State(*(field[1] for field in state))), expected)
