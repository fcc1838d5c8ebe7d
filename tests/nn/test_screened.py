"""Relevancy screening worked by hand: who enters, who is replaced, with what relevance."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remanence import nn
from remanence.ops._slots import choose_slot
from remanence.testing import assert_matches, sharpen_

DOUBLE = torch.float64


def _weighted_layer(recent: int, relevant: int) -> nn.RelRNN:
    """A layer whose state is its input and whose attention weights are known: exp(4 tanh(x)), whatever the query."""
    layer = nn.RelRNN(1, 1, nonlinearity="identity", recent=recent, relevant=relevant, combine="sum", dtype=DOUBLE)
    values = {"weight_ih": 1.0, "weight_hh": 0.0, "bias_ih": 0.0, "bias_hh": 0.0}
    values |= {"weight_query": 0.0, "weight_key": 1.0, "weight_score": 4.0}
    with torch.no_grad():
        for name, value in values.items():
            getattr(layer, f"{name}_l0").fill_(value)
    return layer


def _with_weights(*weights: float) -> torch.Tensor:
    """Inputs that get these unnormalised attention weights, as one row."""
    return torch.tensor([math.atanh(math.log(weight) / 4) for weight in weights], dtype=DOUBLE)[:, None, None]


def test_seven_steps_by_hand() -> None:
    """recent = 2, relevant = 1, weights 1 1 8 1 8 1 1.

    step 0: buffer 0          beta(0) = 1
    step 1: buffer 0 1        beta(0) = 3/2,   beta(1) = 1/2
    step 2: 0 leaves with 3/2, a slot is free: enters.      buffer 1 2 | 0:  beta(1) = 1/2 + 1/10, beta(2) = 8/10
    step 3: 1 leaves with 3/5 < 3/2: dropped.               buffer 2 3 | 0:  beta(2) = 16/10,      beta(3) = 1/10
    step 4: 2 leaves with 8/5 > 3/2: replaces 0.            buffer 3 4 | 2:  beta(3) = 1/10 + 1/17, beta(4) = 8/17
    step 5: 3 leaves: dropped.                              buffer 4 5 | 2:  beta(4) = 16/17,      beta(5) = 1/17
    step 6: 4 leaves with 16/17 < 8/5: dropped.             buffer 5 6 | 2:  beta(5) = 1/17 + 1/10, beta(6) = 1/10
    """
    layer, x = _weighted_layer(2, 1), _with_weights(1, 1, 8, 1, 8, 1, 1)
    (trace,) = layer.trace(x)
    assert trace.entered[:, 0].tolist() == [-1, -1, 0, -1, 2, -1, -1]
    assert trace.displaced[:, 0].tolist() == [-1, -1, -1, -1, 0, -1, -1]
    assert trace.steps[:, 0].tolist() == [
        [-1, 0, -1],
        [0, 1, -1],
        [1, 2, 0],
        [2, 3, 0],
        [3, 4, 2],
        [4, 5, 2],
        [5, 6, 2],
    ]
    _, state = layer(x)
    # Step 5 stands in slot 5 mod 2 = 1, step 6 in slot 0.
    relevance = {"recent": state.recent_score[0, 0], "relevant": state.relevant_score[0, 0]}
    expected = {
        "recent": torch.tensor([1 / 10, 1 / 17 + 1 / 10], dtype=DOUBLE),
        "relevant": torch.tensor([8 / 5], dtype=DOUBLE),
    }
    assert_matches(relevance, expected)
    assert state.relevant_step.tolist() == [[[2]]]
    weights = {"last": trace.weights[-1, 0]}
    assert_matches(weights, {"last": torch.tensor([0.1, 0.1, 0.8], dtype=DOUBLE)})


def test_read_and_macro_state_by_hand() -> None:
    layer, x = _weighted_layer(2, 1), _with_weights(1, 1, 8)
    low, high = 0.0, float(x[2])
    output, _ = layer(x)
    expected = [low + low, low + low, high + 0.8 * high]
    assert_matches({"s": output[:, 0, 0]}, {"s": torch.tensor(expected, dtype=DOUBLE)})


def test_the_first_states_collect_more_because_the_buffer_is_not_full_yet() -> None:
    """With uniform attention step 0 collects 1 + 1/2 + ... + 1/nu, a later one nu/nu: nothing is ever replaced."""
    layer = _weighted_layer(4, 2)
    with torch.no_grad():
        layer.weight_score_l0.zero_()
    (trace,) = layer.trace(_with_weights(*[1.0] * 40))
    assert trace.displaced.max() == -1
    _, state = layer(_with_weights(*[1.0] * 40))
    harmonic = [sum(1 / k for k in range(first, 5)) for first in (1, 2)]
    # The second state is read once among 2, 3 and 4, and once more beside the first one in the relevant set.
    assert state.relevant_step.tolist() == [[[0, 1]]]
    assert_matches({"beta": state.relevant_score[0, 0, :1]}, {"beta": torch.tensor(harmonic[:1], dtype=DOUBLE)})


def test_ties_keep_the_older_state() -> None:
    scores, steps = torch.tensor([[0.5, 0.2, 0.2, 0.9]]), torch.tensor([[3, 8, 5, 1]])
    due = torch.tensor([True])
    assert choose_slot(torch.tensor([0.3]), scores, steps, due).item() == 1  # of the two least, step 8 is younger
    assert choose_slot(torch.tensor([0.2]), scores, steps, due).item() == -1  # equal is not greater
    assert choose_slot(torch.tensor([9.0]), scores, steps, ~due).item() == -1
    steps[0, 2] = steps[0, 3] = -1
    assert choose_slot(torch.tensor([0.0]), scores, steps, due).item() == 2  # the first free slot, however small


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), recent=st.integers(1, 5), relevant=st.integers(1, 5))
def test_the_relevant_set_is_the_running_best(seed: int, recent: int, relevant: int) -> None:
    """Whatever happens, the set holds the best relevances of all states that have left the buffer."""
    torch.manual_seed(seed)
    layer = sharpen_(nn.RelLSTM(2, 3, recent=recent, relevant=relevant, dtype=DOUBLE), seed)
    x = torch.randn(30, 2, 2, dtype=DOUBLE)
    (trace,) = layer.trace(x)
    relevance = torch.zeros(30, 2, dtype=DOUBLE)
    for t in range(30):
        for row in range(2):
            for slot in range(trace.steps.shape[2] - relevant):
                if trace.steps[t, row, slot] >= 0:
                    relevance[trace.steps[t, row, slot], row] += trace.weights[t, row, slot]
    left = relevance[: 30 - recent]
    best = left.topk(min(relevant, len(left)), dim=0).values
    _, state = layer(x)
    held = state.relevant_score[0].sort(dim=1, descending=True).values.T[: len(best)]
    assert_matches({"best": held}, {"best": best})


def test_weights_are_a_distribution_over_what_is_held() -> None:
    layer = sharpen_(nn.RelGRU(2, 3, recent=4, relevant=3, dtype=DOUBLE))
    (trace,) = layer.trace(torch.randn(30, 2, 2, dtype=DOUBLE))
    assert_matches({"sum": trace.weights.sum(dim=2)}, {"sum": torch.ones(30, 2, dtype=DOUBLE)})
    assert torch.equal(trace.steps >= 0, trace.weights > 0)
    held = (trace.steps >= 0).sum(dim=2)
    expected = [min(t + 1, 4) + min(max(t - 3, 0), 3) for t in range(30)]
    assert held[:, 0].tolist() == expected


def test_stored_states_keep_their_gradient() -> None:
    """A state read from the relevant set passes gradient to its input, however old."""
    layer, x = _weighted_layer(2, 1), _with_weights(1, 1, 8, 1, 8, 1, 1).requires_grad_()
    (gradient,) = torch.autograd.grad(layer(x)[0][-1].sum(), x)
    assert gradient[2].item() != 0  # step 2 is in the relevant set
    assert gradient[:2].abs().max() == 0  # steps 0 and 1 are forgotten
    assert gradient[3:5].abs().max() == 0


@pytest.mark.parametrize("nonlinearity", ["modrelu", "identity"])
def test_the_sum_overflows_where_the_cell_is_unbounded_and_the_half_does_not(nonlinearity: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(600, 2, 4)
    options = {"nonlinearity": nonlinearity, "recurrent_init": "random"}
    default = nn.RelRNN(4, 32, **options)
    assert default.spec.combine == "half"
    assert default(x)[0].isfinite().all()
    summed = nn.RelRNN(4, 32, combine="sum", **options)
    assert not summed(x)[0].isfinite().all()


def test_bounded_cells_combine_by_the_sum() -> None:
    assert {cls(2, 3).spec.combine for cls in (nn.RelRNN, nn.RelLSTM, nn.RelGRU)} == {"sum"}
    assert nn.RelRNN(2, 3, nonlinearity="relu").spec.combine == "half"


def test_hidden_output_is_the_state_before_the_read() -> None:
    macro = sharpen_(nn.RelLSTM(2, 3, recent=4, relevant=2, dtype=DOUBLE))
    hidden = nn.RelLSTM(2, 3, recent=4, relevant=2, output="hidden", dtype=DOUBLE)
    hidden.load_state_dict(macro.state_dict())
    x = torch.randn(9, 2, 2, dtype=DOUBLE)
    output, state = hidden(x)
    assert_matches({"newest": output[-1]}, {"newest": state.recent[0, :, 8 % 4]})
    assert_matches({"s": state.s}, {"s": macro(x)[1].s})


def test_the_leak_of_a_gru_carries_h_and_stays_bounded() -> None:
    layer = nn.RelGRU(3, 16)
    with torch.no_grad():
        layer.bias_ih_l0[16:32] = 20.0  # update gate at 1: the leak alone
    output, _ = layer(torch.randn(2000, 1, 3))
    assert output.isfinite().all()
    assert output.abs().max() <= 2  # h stays in [-1, 1], s = h + r in [-2, 2]
