"""bfloat16 and float16 on the CPU: the kernel computes in float32, and the caller gets his own dtype back."""

from __future__ import annotations

import pytest
import torch

from remanence.nn import GRU, LSTM, SABLSTM, MemLSTM, RelLSTM, RelRNN
from remanence.ops import _backend, generate
from remanence.testing import assert_matches

LAYERS = {
    "LSTM": lambda **options: LSTM(3, 5, **options),
    "GRU": lambda **options: GRU(3, 5, num_layers=2, **options),
    "RelRNN": lambda **options: RelRNN(3, 5, recent=3, relevant=2, **options),
    "RelLSTM": lambda **options: RelLSTM(3, 5, recent=3, relevant=2, bidirectional=True, **options),
    "MemLSTM": lambda **options: MemLSTM(3, 5, **options),
    "SABLSTM": lambda **options: SABLSTM(3, 5, **options),
}
HALVES = [torch.bfloat16, torch.float16]


def run(layer, x):
    layer.zero_grad()
    x = x.clone().requires_grad_()
    output, state = layer(x)
    (output.double().square().sum() + state.s.double().sum()).backward()
    named = layer.named_parameters()
    # A static score leaves the gradients of its query and bias at 0, or out.
    gradients = {
        name: p.grad for name, p in named if not (isinstance(layer, SABLSTM) and ("query" in name or "score" in name))
    }
    return {"output": output.detach(), "s": state.s.detach(), "x.grad": x.grad, **gradients}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_half_precision_is_as_good_as_the_reference_in_it(name, dtype):
    torch.manual_seed(3)
    layer = LAYERS[name]().to(dtype)
    x = torch.randn(8, 4, 3).to(dtype)
    assert _backend.choose_backend("auto", layer.spec, x) == "fused"
    actual = run(layer, x)
    layer.backend = "reference"
    plain = run(layer, x)
    exact = run(layer.double(), x.double())
    assert {key: value.dtype for key, value in actual.items()} == dict.fromkeys(actual, dtype)
    assert_matches(actual, exact, plain)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_the_numbers_are_those_of_float32_rounded(dtype):
    layer = RelLSTM(3, 5, recent=3, relevant=2).to(dtype)
    x = torch.randn(8, 4, 3).to(dtype)
    output, state = layer(x)
    wide, wide_state = layer.float()(x.float())
    assert torch.equal(output, wide.to(dtype))
    assert torch.equal(state.recent, wide_state.recent.to(dtype))
    assert torch.equal(state.step, wide_state.step)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_stream_is_a_run_of_one_step(dtype):
    layer = RelLSTM(3, 5, recent=2, relevant=2).to(dtype)
    state = layer.initial_state(4)._replace(step=torch.full((1, 4), 1001))
    x = torch.randn(4, 3).to(dtype)
    with torch.no_grad():
        output, after = layer.step(x, state)
        whole, expected = layer(x.unsqueeze(0), state)
    assert output.dtype == dtype
    assert torch.equal(output, whole[0])
    assert all(torch.equal(a, b) for a, b in zip(after, expected, strict=True))
    assert after.step.unique().tolist() == [1002]


def test_autocast_gives_the_dtype_of_the_input_and_gradients_of_the_parameters():
    layer, head = RelLSTM(4, 5, recent=3, relevant=2), torch.nn.Linear(3, 4)
    x = torch.randn(8, 2, 3)
    with torch.autocast("cpu", torch.bfloat16):
        lifted = head(x)
        output, state = layer(lifted)
        with torch.no_grad():
            stepped, _ = layer.step(lifted[0])
    assert (lifted.dtype, output.dtype, stepped.dtype) == (torch.bfloat16,) * 3
    assert state.s.dtype == torch.float32
    wide = layer(lifted.float())[0]
    assert torch.equal(output, wide.bfloat16())
    assert torch.equal(stepped, output[0])
    output.float().sum().backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in layer.parameters())


def test_tokens_can_be_drawn_from_half_precision():
    layer = RelLSTM(4, 5, recent=2, relevant=2).to(torch.bfloat16)
    head = torch.randn(4, 5).to(torch.bfloat16)
    options = {"spec": layer.spec, "head": head, "steps": 6}
    drawn, state = generate(torch.tensor([0, 3]), [layer.weights()], **options)
    assert drawn.shape == (6, 2)
    assert state.s.dtype == torch.bfloat16
    assert state.step.tolist() == [[6, 6]]
