"""Sparse attentive backtracking against its definition: all states kept, all scored, at every step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from remanence import nn
from remanence.testing import assert_matches, collect, sharpen_

DOUBLE = torch.float64
DENSE = {"sparse": "backward"}
VARIANTS: list[dict[str, Any]] = [
    {},
    {"keep": "k"},
    {"normalise": True},
    {"score": "tanh", "start": "zero"},
    {"score": "tanh", "underfull": "raw", "normalise": True},
    {"underfull": "raw"},
    {"score": "mlp"},
    {"score": "mlp", "keep": "k", "start": "zero"},
    DENSE,
    {"sparse": "backward", "normalise": True},
]


def _layer(**options: Any) -> nn.SABRNN:
    torch.manual_seed(0)
    layer = nn.SABRNN(2, 4, top_k=options.pop("top_k", 3), every=2, dtype=DOUBLE, **options)
    sharpen_(layer)
    with torch.no_grad():
        layer.weight_hh_l0.mul_(0.5)
    return layer


def _quadratic(layer: nn.SABRNN, x: Tensor) -> Tensor:
    """Equations 1 to 4 for one row, keeping and scoring everything."""
    w, memory = layer.weights(), layer.spec.memory
    assert isinstance(memory, nn.Strided)
    h, stored, outputs = x.new_zeros(4), [x.new_zeros(4)] if memory.start == "zero" else [], []
    for t, x_t in enumerate(x):
        provisional = torch.tanh(w.ih @ x_t + w.bias_ih + w.hh @ h + w.bias_hh)
        summary = _summary(memory, w, stored, provisional) if stored else x.new_zeros(4)
        h = provisional + summary
        if (t + 1) % memory.every == 0:
            stored.append(h)
        outputs.append(h)
    return torch.stack(outputs)


def _summary(memory: nn.Strided, w: Any, stored: list[Tensor], present: Tensor) -> Tensor:
    states, present_part = torch.stack(stored), present.new_zeros(())
    if memory.score == "affine":
        scores, present_part = states @ w.key, present @ w.query + w.score
    elif memory.score == "tanh":
        scores, present_part = states.tanh() @ w.key, present.tanh() @ w.query
    else:
        scores = torch.tanh(states @ w.key.T + w.query @ present) @ w.score
    rank = min(memory.top_k + (memory.keep == "k"), len(stored))
    threshold = scores.sort(descending=True).values[rank - 1]
    if memory.sparse == "backward":
        best = scores >= threshold
        scores = torch.where(best, scores, scores.detach()) + present_part
        states = torch.where(best[:, None], states, states.detach())
        weights = scores.softmax(dim=0) if memory.normalise else scores
    else:
        scores, threshold = scores + present_part, threshold + present_part
        weights = torch.relu(scores - threshold)
        weights = weights / (weights.sum() + 1e-7) if memory.normalise else weights
    if memory.underfull == "raw" and len(stored) <= memory.top_k:
        weights = scores
    return weights @ states


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_equals_the_quadratic_definition(options: dict[str, Any]) -> None:
    layer = _layer(**options)
    x = torch.randn(41, 3, 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(1), requires_grad=True)
    cotangent = torch.randn(41, 3, 4, dtype=DOUBLE, generator=torch.Generator().manual_seed(2))
    expected = torch.stack([_quadratic(layer, row) for row in x.unbind(1)], dim=1)
    output = layer(x)[0]
    names = ["input", *(name for name, _ in layer.named_parameters())]

    def gradients(result: Tensor) -> dict[str, Tensor]:
        sources = [x, *layer.parameters()]
        found = torch.autograd.grad((result * cotangent).sum(), sources, allow_unused=True, materialize_grads=True)
        return dict(zip(names, found, strict=True))

    actual, wanted = gradients(output), gradients(expected)
    if layer.spec.memory.underfull == "threshold" and layer.spec.memory.score != "mlp" and options != DENSE:
        # The query cancels; the definition computes it and gets rounding noise, the layer gets exactly nothing.
        for name in ("weight_query_l0", "weight_score_l0"):
            if name in actual:
                assert torch.count_nonzero(actual.pop(name)) == 0
                wanted.pop(name)
    assert_matches({"output": output} | actual, {"output": expected} | wanted)


def test_the_state_holds_top_k_entries_whatever_the_length() -> None:
    for keep, slots in (("k-1", 3), ("k", 4)):
        layer = _layer(keep=keep)
        assert {layer(torch.randn(length, 1, 2, dtype=DOUBLE))[1].relevant.shape[2] for length in (5, 50)} == {slots}


def test_k_minus_one_weights_are_positive_and_k_states_get_gradient() -> None:
    layer = _layer()
    x = torch.randn(40, 1, 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(3))
    (trace,) = layer.trace(x)
    assert ((trace.weights[10:] > 0).sum(dim=2) == 2).all()
    # Cut every recurrent path: what still gets gradient was read, k-1 by weight and one through the threshold.
    cut = nn.SABRNN(2, 4, top_k=3, every=2, truncate=1, hops="one", dtype=DOUBLE)
    cut.load_state_dict(layer.state_dict())
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(cut(x)[0][-1].sum(), x)
    reached = gradient[:-1, 0].abs().sum(dim=1).nonzero()[:, 0].tolist()
    (trace,) = cut.trace(x)
    assert sorted(reached) == sorted(trace.steps[-1, 0].tolist())
    assert len(reached) == 3


def test_one_hop_stops_where_many_hops_go_on() -> None:
    x = torch.randn(60, 1, 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(4))
    reach = {}
    for hops in ("one", "many"):
        layer = _layer(truncate=1, hops=hops)
        leaf = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(layer(leaf)[0][-1].sum(), leaf)
        reach[hops] = set(gradient[:, 0].abs().sum(dim=1).nonzero()[:, 0].tolist())
    assert reach["one"] < reach["many"]


def test_hops_change_gradients_only() -> None:
    x = torch.randn(30, 2, 2, dtype=DOUBLE)
    assert_matches({"output": _layer(hops="one")(x)[0]}, {"output": _layer(hops="many")(x)[0]})


def test_truncation_follows_the_rule_of_the_document() -> None:
    """``(t + 1) % k_trunc == 0`` cuts before step t; without reads the gradient reaches back to the last cut."""
    layer = nn.SABRNN(2, 4, top_k=1, every=50, truncate=5, dtype=DOUBLE)
    x = torch.randn(13, 1, 2, dtype=DOUBLE, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x)[0][-1].sum(), x)
    assert gradient[:, 0].abs().sum(dim=1).nonzero()[:, 0].tolist() == [9, 10, 11, 12]


@pytest.mark.parametrize(
    ("cut", "learnt"), [({"truncate": 10}, [9, 19, 29]), ({"cuts": nn.TruncatedBPTT(10)}, list(range(30)))]
)
def test_a_cut_just_before_a_step_that_is_stored_leaves_one_step_to_learn_from(cut, learnt) -> None:
    """With k_att a multiple of k_trunc; cut one step later, all steps since the last stored state are learnt from."""
    torch.manual_seed(0)
    layer = nn.SABLSTM(2, 4, top_k=9, every=10, start="zero", underfull="raw", dtype=DOUBLE, **cut)
    x = torch.randn(30, 1, 2, dtype=DOUBLE, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x)[0][-1].sum(), x)
    assert gradient[:, 0].abs().sum(dim=1).nonzero()[:, 0].tolist() == learnt


def test_top_one_reads_nothing() -> None:
    """With the k-th score as threshold and k = 1 no weight is positive."""
    layer = _layer(top_k=1)
    plain = nn.RNN(2, 4, dtype=DOUBLE)
    plain.load_state_dict({name: value for name, value in layer.state_dict().items() if name in plain.state_dict()})
    x = torch.randn(30, 2, 2, dtype=DOUBLE)
    assert_matches({"output": layer(x)[0]}, {"output": plain(x)[0]})


def test_weights_of_all_stored_states_in_the_output() -> None:
    layer = _layer(output="weights", max_steps=20)
    x = torch.randn(20, 2, 2, dtype=DOUBLE)
    output, _ = layer(x)
    assert layer.output_size == output.shape[2] == 4 + 10
    (trace,) = layer.trace(x)
    for slot in range(3):
        step = int(trace.steps[-1, 0, slot])
        assert_matches({"w": output[-1, 0, 4 + (step + 1) // 2 - 1]}, {"w": trace.weights[-1, 0, slot]})
    with pytest.raises(ValueError, match="max_steps"):
        layer(torch.randn(21, 2, 2, dtype=DOUBLE))


def test_summary_output() -> None:
    layer, plain = _layer(output="summary"), _layer(output="hidden")
    x = torch.randn(20, 2, 2, dtype=DOUBLE)
    s, read = layer(x)[0].chunk(2, dim=2)
    assert_matches({"h + r": plain(x)[0] + read}, {"h + r": s})


def test_a_state_carried_over_an_update_is_rescored() -> None:
    """States are stored, not scores: changing the key weights between chunks changes the scores of what is held."""
    layer, x = _layer(), torch.randn(20, 1, 2, dtype=DOUBLE)
    _, state = layer(x)
    with torch.no_grad():
        layer.weight_key_l0.neg_()
    (trace,) = layer.trace(x[:1], state)
    w = layer.weights()
    h = torch.tanh(x[0] @ w.ih.T + w.bias_ih + state.s[0] @ w.hh.T + w.bias_hh)
    expected = state.relevant[0] @ w.key + h @ w.query + w.score
    assert_matches({"scores": trace.scores[0]}, {"scores": expected})


def test_chunks_of_a_growing_memory() -> None:
    layer, x = _layer(score="mlp"), torch.randn(23, 2, 2, dtype=DOUBLE)
    assert_matches(collect(layer, x, chunks=[1, 2, 9, 11]), collect(layer, x))
    assert layer(x)[1].relevant.shape[2] == 11


@pytest.mark.parametrize("backend", ["reference", "auto"])
@pytest.mark.parametrize("score", ["affine", "tanh"])
@pytest.mark.parametrize("options", [{}, {"sparse": "backward", "normalise": True}], ids=["forward", "backward"])
def test_a_query_that_cancels_has_a_gradient_of_zeros(backend, score, options):
    layer = nn.SABLSTM(3, 4, top_k=2, score=score, backend=backend, **options)
    layer(torch.randn(9, 2, 3))[0].sum().backward()
    gradients = [layer.weight_query_l0.grad]
    if score == "affine":
        gradients.append(layer.weight_score_l0.grad)
    assert all(gradient is not None and not gradient.any() for gradient in gradients)
