"""Where the mathematics degenerates, a layer must become one that everybody knows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from remanence import nn
from remanence.testing import assert_matches, collect, sharpen_

PAIRS = [(nn.RNN, torch.nn.RNN), (nn.LSTM, torch.nn.LSTM), (nn.GRU, torch.nn.GRU)]
EMPTY_MEMORY = [(nn.RelRNN, torch.nn.RNN), (nn.RelLSTM, torch.nn.LSTM), (nn.RelGRU, torch.nn.GRU)]
SHAPES = [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}, {"batch_first": True}]


def _data(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _run(layer: torch.nn.Module, x: torch.Tensor, hx: Any) -> dict[str, torch.Tensor]:
    """Output, final recurrent state and all gradients of a torch-like layer."""
    x = x.clone().requires_grad_()
    hx = tuple(part.clone().requires_grad_() for part in hx)
    lstm = len(hx) == 2
    output, state = layer(x, hx if lstm else hx[0])
    final = state.hx if isinstance(state, nn.State) else state
    final = final if lstm else (final,)
    results = [output, *final]
    loss = sum((result * _data(*result.shape, seed=9 + i)).sum() for i, result in enumerate(results))
    names = ["input", *("h", "c")[: len(hx)], *(name for name, _ in layer.named_parameters())]
    gradients = torch.autograd.grad(loss, [x, *hx, *layer.parameters()])
    found = dict(zip(["output", "h_n", "c_n"], results, strict=False))
    return found | {f"grad.{name}": gradient for name, gradient in zip(names, gradients, strict=True)}


@pytest.mark.parametrize("options", SHAPES, ids=str)
@pytest.mark.parametrize(("ours", "theirs"), PAIRS + EMPTY_MEMORY, ids=lambda cls: cls.__name__)
def test_nothing_in_memory_equals_torch(ours: Any, theirs: Any, options: dict[str, Any]) -> None:
    nothing = {"recent": 0, "relevant": 0} if (ours, theirs) in EMPTY_MEMORY else {}
    torch.manual_seed(0)
    reference = theirs(3, 5, dtype=torch.float64, **options)
    torch.manual_seed(0)
    layer = ours(3, 5, dtype=torch.float64, **options, **nothing)
    assert list(layer.state_dict()) == list(reference.state_dict())
    for name, value in reference.state_dict().items():
        assert torch.equal(layer.state_dict()[name], value), f"{name} is drawn differently"
    x = _data(11, 4, 3)
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    batch = 11 if options.get("batch_first") else 4
    hx = [_data(layers, batch, 5, seed=seed) for seed in range(2 if theirs is torch.nn.LSTM else 1)]
    assert_matches(_run(layer, x, hx), _run(reference, x, hx))


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda cls: cls.__name__)
def test_packed_input_equals_torch(ours: Any, theirs: Any) -> None:
    reference = theirs(3, 5, num_layers=2, bidirectional=True, dtype=torch.float64)
    layer = ours.from_torch(reference)
    packed = pack_padded_sequence(_data(9, 4, 3), torch.tensor([3, 9, 1, 5]), enforce_sorted=False)
    output, state = layer(packed)
    expected, hx = reference(packed)
    assert torch.equal(output.batch_sizes, expected.batch_sizes)
    assert torch.equal(output.sorted_indices, expected.sorted_indices)
    final, wanted = (state.hx, hx) if isinstance(hx, tuple) else ((state.hx,), (hx,))
    named = {"output": output.data} | {f"final{i}": part for i, part in enumerate(final)}
    assert_matches(named, {"output": expected.data} | {f"final{i}": part for i, part in enumerate(wanted)})


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_from_torch_takes_over_weights_and_options(nonlinearity: str) -> None:
    reference = torch.nn.RNN(3, 5, 2, nonlinearity=nonlinearity, batch_first=True, dtype=torch.float64)
    layer = nn.RelRNN.from_torch(reference, recent=4, relevant=2)
    assert (layer.batch_first, layer.num_layers, layer.nonlinearity) == (True, 2, nonlinearity)
    for name, value in reference.state_dict().items():
        assert torch.equal(layer.state_dict()[name], value)
    assert layer.weight_key_l1.shape == (5, 5)


@pytest.mark.parametrize(("rel", "mem"), [("RelRNN", "MemRNN"), ("RelLSTM", "MemLSTM"), ("RelGRU", "MemGRU")])
@pytest.mark.parametrize("score", ["additive", "dot"])
def test_everything_in_memory_equals_full_attention(rel: str, mem: str, score: str) -> None:
    x = _data(15, 3, 2)
    full = sharpen_(getattr(nn, mem)(2, 4, score=score, dtype=torch.float64))
    screened = getattr(nn, rel)(2, 4, recent=15, relevant=3, score=score, dtype=torch.float64)
    screened.load_state_dict(full.state_dict())
    found = {}
    for layer in (screened, full):
        output, state = layer(x)
        gradients = torch.autograd.grad(output.pow(2).sum(), list(layer.parameters()))
        names = [f"grad.{name}" for name, _ in layer.named_parameters()]
        values = {"output": output, "s": state.s, "recent": state.recent}
        found[layer] = values | dict(zip(names, gradients, strict=True))
    assert_matches(found[screened], found[full])


def test_full_attention_by_its_definition() -> None:
    """MemRNN written out: every step attends to all states so far, with the query from the step before."""
    layer, x = sharpen_(nn.MemRNN(2, 4, dtype=torch.float64)), _data(9, 3, 2)
    w = layer.weights()
    s, states, outputs = torch.zeros(3, 4, dtype=torch.float64), [], []
    for x_t in x:
        query = s @ w.query.T
        h = torch.tanh(x_t @ w.ih.T + w.bias_ih + s @ w.hh.T + w.bias_hh)
        states.append(h)
        scores = torch.stack([torch.tanh(query + m @ w.key.T) @ w.score for m in states])
        weights = torch.softmax(scores, dim=0)
        s = h + sum(weight[:, None] * m for weight, m in zip(weights, states, strict=True))
        outputs.append(s)
    output, state = layer(x)
    assert_matches(
        {"output": output, "memory": state.recent[0]},
        {"output": torch.stack(outputs), "memory": torch.stack(states, 1)},
    )


def test_a_ring_as_long_as_the_sequence_is_full_attention() -> None:
    full, x = sharpen_(nn.MemLSTM(2, 4, dtype=torch.float64)), _data(12, 3, 2)
    ring = nn.MemLSTM(2, 4, limit=12, dtype=torch.float64)
    ring.load_state_dict(full.state_dict())
    assert_matches(collect(ring, x), collect(full, x))


def test_single_bias_is_torch_with_the_second_bias_at_zero() -> None:
    layer, reference = nn.GRU(2, 4, bias="single", dtype=torch.float64), torch.nn.GRU(2, 4, dtype=torch.float64)
    with torch.no_grad():
        reference.load_state_dict({**layer.state_dict(), "bias_hh_l0": torch.zeros(12, dtype=torch.float64)})
    x = _data(7, 3, 2)
    assert_matches({"output": layer(x)[0]}, {"output": reference(x)[0]})


def test_the_reference_is_linear_in_the_length() -> None:
    """Nodes of the backward graph per step do not grow with T: no quadratic trap."""

    def nodes(length: int) -> int:
        output, _ = nn.RelLSTM(2, 3, recent=2, relevant=2)(torch.randn(length, 1, 2))
        seen, stack = set(), [output.grad_fn]
        while stack:
            node = stack.pop()
            if node is not None and node not in seen:
                seen.add(node)
                stack.extend(following for following, _ in node.next_functions)
        return len(seen)

    first, second, third = nodes(50), nodes(100), nodes(150)
    assert third - second == second - first


@pytest.mark.parametrize("name", ["LSTM", "RelLSTM", "MemLSTM", "SABLSTM", "HDetachLSTM"])
def test_a_forget_bias_moves_the_forget_gate_alone(name: str) -> None:
    layers = []
    for bias in (0.0, -2.0):
        torch.manual_seed(0)
        layers.append(getattr(nn, name)(3, 4, num_layers=2, forget_bias=bias, dtype=torch.float64))
    plain, moved = (dict(layer.named_parameters()) for layer in layers)
    with torch.no_grad():
        for parameter, values in plain.items():
            if parameter.startswith("bias_ih"):
                values[4:8] -= 2.0
    assert_matches(moved, plain)


def test_a_forget_bias_is_what_the_cell_forgets_by() -> None:
    layer = nn.LSTM(3, 4, forget_bias=-2.0, dtype=torch.float64)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            parameter.zero_()
            if name == "bias_ih_l0":
                parameter[4:8] = layer.forget_bias
    start = torch.zeros(1, 1, 4, dtype=torch.float64), torch.ones(1, 1, 4, dtype=torch.float64)
    _, state = layer(torch.zeros(1, 1, 3, dtype=torch.float64), start)
    forgotten = torch.full((1, 1, 4), -2.0, dtype=torch.float64).sigmoid()
    assert_matches({"c": state.hx[1]}, {"c": forgotten})


def test_other_cells_have_no_forget_bias() -> None:
    with pytest.raises(TypeError, match="forget_bias"):
        nn.RelRNN(3, 4, forget_bias=1.0)  # type: ignore[call-arg]


def test_a_layer_without_memory_traces_no_slots_in_its_own_dtype():
    (trace,) = nn.LSTM(3, 4, dtype=torch.float64).trace(_data(6, 2, 3))
    assert trace.weights.shape == trace.steps.shape == trace.scores.shape == (6, 2, 0)
    assert (trace.weights.dtype, trace.steps.dtype) == (torch.float64, torch.int64)
    assert trace.entered.eq(-1).all()
