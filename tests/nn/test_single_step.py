"""The step of a layer where nothing learns: one call of the kernel, and the same answers as the ordinary way."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils import parametrize, prune

from remanence import nn, ops
from remanence.nn import _single_step

LAYERS = {
    "RelLSTM": lambda **options: nn.RelLSTM(6, 20, recent=3, relevant=4, **options),
    "MemRNN": lambda **options: nn.MemRNN(6, 20, **options),
    "SABGRU": lambda **options: nn.SABGRU(6, 20, **options),
    "ExpRNN": lambda **options: nn.ExpRNN(6, 20, **options),
    "GORU": lambda **options: nn.GORU(6, 16, **options),
}


@pytest.fixture(autouse=True)
def _kernel(require_or_skip) -> None:
    if ops.backend_report()["active"] != "fused":
        require_or_skip("kernel", "there is no kernel")


@pytest.fixture
def calls(monkeypatch) -> list[bool]:
    """Whether each step so far was one call of the kernel."""
    made: list[bool] = []

    def counted(*arguments):
        result = original(*arguments)
        made.append(result is not None)
        return result

    original = _single_step.step_at_once
    monkeypatch.setattr("remanence.nn._layer.step_at_once", counted)
    return made


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("rows", [(), (2,)], ids=["unbatched", "batched"])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_steps_have_the_bits_of_the_whole(make, mode, rows, num_layers, calls):
    layer, x = make(num_layers=num_layers), torch.randn(9, *rows, 6)
    with mode():
        output, final = layer(x)
        state, outputs = layer.initial_state(*rows), []
        for x_t in x:
            output_t, state = layer.step(x_t, state)
            outputs.append(output_t)
    assert torch.equal(torch.stack(outputs), output)
    assert all(torch.equal(a, b) for a, b in zip(state, final, strict=True))
    assert calls == [True] * 9


def test_the_ordinary_way_is_gone_where_it_must_be(calls):
    layer, x = LAYERS["RelLSTM"](num_layers=2, dropout=0.5), torch.randn(2, 6)
    state = layer.initial_state(2)
    layer.step(x, state)[0].sum().backward()  # learns
    assert layer.weight_hh_l0.grad is not None
    with torch.no_grad():
        layer.step(x, state)  # drops
        layer.eval().step(x, None)  # has no state yet
        layer.step(x, (state.s, state.c))  # has torch's
        assert calls == [False] * 4
        layer.step(x, state)
        assert calls[-1]
        layer.backend = "reference"
        layer.step(x, state)
    assert not calls[-1]


def test_hooks_see_every_step(calls):
    layer, x, seen = LAYERS["RelLSTM"](), torch.randn(2, 6), []
    layer.register_forward_hook(lambda *_: seen.append(1))
    with torch.no_grad():
        layer.step(x, layer.initial_state(2))
    assert seen == [1]
    assert calls == [False]


def test_pruned_and_parametrised_weights_are_used(calls):
    class Halve(torch.nn.Module):
        def forward(self, weight):
            return weight / 2

    pruned, halved = LAYERS["RelLSTM"](), LAYERS["RelLSTM"]()
    prune.l1_unstructured(pruned, "weight_key_l0", amount=0.5)
    parametrize.register_parametrization(halved, "bias_ih_l0", Halve())
    x = torch.randn(2, 6)
    for layer in (pruned, halved):
        with torch.no_grad():
            _, state = layer(torch.randn(5, 2, 6))
            assert torch.equal(layer.step(x, state)[0], layer(x[None], state)[0][0])
    assert calls == [False, True]  # pruning recomputes its weight in a hook


def test_what_is_kept_for_all_steps_follows_a_new_specification(calls):
    layer, x = LAYERS["RelLSTM"](), torch.randn(2, 6)
    with torch.no_grad():
        _, state = layer(torch.randn(5, 2, 6))
        layer.step(x, state)
        layer.spec = LAYERS["RelLSTM"](combine="half").spec
        assert torch.equal(layer.step(x, state)[0], layer(x[None], state)[0][0])
    assert calls == [True, True]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, state: (x[:, :5], state), "`input` must have 6 features"),
        (lambda x, state: (x.double(), state), "`input` must have the layer's dtype"),
        (lambda x, state: (x[:1], state), "`state.s` must have shape"),
        (lambda x, state: (x, state._replace(recent=state.recent[:, :, 1:])), "`state.recent` must have shape"),
        (lambda x, state: (x, state.to(torch.float64)), "`state.s` must have dtype"),
        (lambda x, state: (x[None], state), "`input_t` must have shape"),
    ],
)
def test_bad_input_is_named_as_always(change, words):
    layer = LAYERS["RelLSTM"]()
    with torch.no_grad(), pytest.raises(ValueError, match=words):
        layer.step(*change(torch.randn(2, 6), layer.initial_state(2)))


@pytest.mark.parametrize("name", ["RelLSTM", "SABGRU", "GORU"])
def test_a_stream_needs_no_more_memory_the_longer_it_is(name):
    layer = LAYERS[name]()
    with torch.inference_mode():
        state = layer.initial_state(1)
        size = state.nbytes
        for x_t in torch.randn(3000, 1, 6):
            output, state = layer.step(x_t, state)
            assert state.nbytes == size
    assert state.step.item() == 3000
    assert bool(output.isfinite().all())
