import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import remanence.nn
from remanence import probes
from remanence.probes._meter import peak_bytes
from remanence.testing import assert_agrees, assert_estimates
from remanence.theory import uniform_transfer

OFFSETS = 4  # the zeros added to the states, their gradient, and both in float64


def linear_layer(values):
    """Our RNN without a nonlinearity and chosen eigenvalues, in float64."""
    layer = remanence.nn.RNN(len(values), len(values), nonlinearity="identity", bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight_hh_l0.copy_(torch.diag(torch.tensor(values, dtype=torch.float64)))
        layer.weight_ih_l0.copy_(torch.eye(len(values)))
    return layer


@given(value=st.floats(0.3, 1.6), length=st.integers(5, 60))
@settings(max_examples=15, deadline=None)
def test_the_norm_of_a_linear_recurrence_is_a_power_of_its_eigenvalue(value, length):
    x = torch.zeros(length, 1, 1, dtype=torch.float64)
    reach = probes.gradient_reach(linear_layer([value]), x)
    assert_agrees(np.exp(reach.log_norm), value ** np.arange(length))
    assert reach.source == "states"


def test_rate_law_and_kind_of_a_decay():
    reach = probes.gradient_reach(linear_layer([0.8, 0.8]), torch.zeros(80, 2, 2, dtype=torch.float64))
    assert reach.decay is not None
    assert reach.decay.law == "exponential"
    assert reach.trend == "vanishing"
    assert_agrees([reach.decay.rate, *reach.decay.interval], math.log(0.8))
    assert "vanishing" in reach.verdict


@pytest.mark.parametrize(("value", "kind"), [(1.5, "exploding"), (1.0, "stable"), (0.5, "vanishing")])
def test_kinds(value, kind):
    assert probes.gradient_reach(linear_layer([value]), torch.zeros(60, 1, 1, dtype=torch.float64)).trend == kind


def test_a_captured_black_box_gives_the_same_decay_as_the_states():
    layer, x = nn.LSTM(3, 8), torch.randn(150, 2, 3)
    by_states = probes.gradient_reach(layer, x)
    by_inputs = probes.gradient_reach(lambda inputs: layer(inputs), x)
    assert (by_states.source, by_inputs.source) == ("states", "inputs")
    assert by_states.decay is not None
    assert by_inputs.decay is not None
    assert_estimates(by_inputs.decay.rate, by_states.decay.rate)


def test_a_linear_map_of_the_input_shifts_the_profile_only(zoo):
    box = zoo.LinearRNN(0.7 * torch.eye(2))
    reach = probes.gradient_reach(box, torch.randn(40, 2, 2))
    assert reach.source == "inputs"
    assert_agrees(np.diff(reach.log_norm), math.log(0.7), torch.float32)


@given(value=st.floats(0.4, 1.3), length=st.integers(3, 30), rows=st.integers(1, 3), width=st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_a_black_box_and_its_states_decay_alike_whatever_the_shape_and_the_seed(value, length, rows, width):
    layer = linear_layer([value] * width)
    x = torch.randn(length, rows, width, dtype=torch.float64)
    by_states, by_inputs = (probes.gradient_reach(layer, x, through=way) for way in ("states", "inputs"))
    assert_agrees(by_inputs.log_norm, by_states.log_norm)
    assert_agrees(np.exp(by_states.log_norm) / np.exp(by_states.log_norm[0]), value ** np.arange(length))


def test_a_delay_line_is_reached_at_its_delay_alone(zoo):
    reach = probes.gradient_reach(zoo.DelayLine(5), torch.randn(20, 1, 1))
    assert np.flatnonzero(np.isfinite(reach.log_norm)).tolist() == [5]
    assert reach.horizon == 5
    assert reach.trend == "cut off"
    assert "5 steps" in reach.verdict


def test_numbers_too_small_for_floats_have_vanished_and_were_not_cut():
    reach = probes.gradient_reach(models_with_half(), torch.zeros(400, 1, 1))
    assert reach.horizon < 399
    assert reach.trend == "vanishing"
    assert "too small for floats" in reach.verdict


def models_with_half():
    """A linear recurrence of one half in float32: it underflows after some 150 steps."""
    layer = nn.RNN(1, 1, nonlinearity="relu", bias=False)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.fill_(0.5)
    return lambda x: layer(x + 1)[0]


def test_a_model_that_explodes_out_of_floats():
    reach = probes.gradient_reach(linear_layer([2.0]).float(), torch.zeros(200, 1, 1))
    assert reach.trend == "exploding"
    assert "exploding" in reach.verdict


def test_an_identity_network_sees_the_present_alone():
    assert probes.gradient_reach(nn.Identity(), torch.randn(9, 1, 1)).horizon == 0


def test_truncation_cuts_the_gradient_off():
    layer = remanence.nn.RNN(2, 4, cuts=remanence.nn.TruncatedBPTT(5))
    assert probes.gradient_reach(layer, torch.randn(20, 1, 2)).horizon == 4


def test_uniform_attention_has_the_closed_form():
    layer = remanence.nn.MemRNN(1, 1, nonlinearity="identity", combine="sum", bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight_hh_l0.fill_(0.6)
        layer.weight_score_l0.zero_()
    length = 30
    reach = probes.gradient_reach(layer, torch.zeros(length, 1, 1, dtype=torch.float64))
    exact = [math.log(abs(uniform_transfer(0.6, t, length - t)[-1])) for t in range(length, 0, -1)]
    assert_agrees(reach.log_norm, exact)


def test_states_are_seen_inside_a_model_and_through_cells(zoo):
    tokens = torch.randint(7, (2, 12))
    assert probes.gradient_reach(zoo.Stacked(), tokens).source == "states"
    assert probes.gradient_reach(zoo.CellLoop(), torch.randn(10, 2, 4)).source == "states"


def test_a_stepped_layer_gives_the_profile_of_the_whole_run():
    layer, x = nn.RNN(4, 4).double(), torch.randn(12, 2, 4).double()
    cell = nn.RNNCell(4, 4).double()
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})

    def loop(inputs):
        h, outputs = None, []
        for x_t in inputs:
            h = cell(x_t, h)
            outputs.append(h)
        return torch.stack(outputs)

    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = cell

        def forward(self, inputs):
            return loop(inputs)

    whole, stepped = probes.gradient_reach(layer, x), probes.gradient_reach(Loop(), x)
    assert_agrees(whole.log_norm, stepped.log_norm)


def test_tokens_are_seen_through_the_embedding(zoo):
    tokens = torch.randint(7, (2, 12))
    reach = probes.gradient_reach(zoo.Stacked(), tokens, through="inputs")
    assert reach.source == "inputs"
    assert len(reach.distance) == 12


def test_a_loss_of_ones_own_is_given_the_output_and_the_batch():
    batch = (torch.randn(8, 2, 4), torch.randn(8, 2, 4))

    def loss(output, given):
        assert given is batch
        return (output - given[1]).square().mean()

    assert probes.gradient_reach(nn.LSTM(4, 4), batch, loss).horizon == 7


def test_bad_requests_name_the_way_out():
    with pytest.raises(ValueError, match="Use through='inputs'"):
        probes.gradient_reach(nn.Identity(), torch.randn(5, 1, 1), through="states")
    with pytest.raises(ValueError, match=r"nn\.Embedding"):
        probes.gradient_reach(lambda tokens: tokens.float(), torch.randint(3, (5, 1)))
    with pytest.raises(TypeError, match="`batch` must be a tensor"):
        probes.gradient_reach(nn.Identity(), 3)
    with pytest.raises(ValueError, match="`loss` must return one number"):
        probes.gradient_reach(nn.Identity(), torch.randn(5, 1, 1), lambda output, batch: output)
    with pytest.raises(TypeError, match="`model` must return a tensor"):
        probes.gradient_reach(lambda x: "text", torch.randn(5, 1, 1))


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: nn.LSTM(2, 8), lambda: remanence.nn.RelLSTM(2, 8, recent=5, relevant=5)])
def test_ten_thousand_steps_take_little_more_memory_than_training_on_them(make):
    layer, x = make(), torch.randn(10_000, 1, 2)
    training = peak_bytes(lambda: torch.autograd.grad(layer(x)[0][-1].sum(), list(layer.parameters())))
    probing = peak_bytes(lambda: probes.gradient_reach(layer, x))
    assert probing < 2 * training + OFFSETS * x.shape[0] * 8 * x.element_size()
    assert probing < 50_000_000
    assert len(probes.gradient_reach(layer, x).distance) == 10_000


def test_a_gradient_at_both_ends_only_has_no_trend():
    from remanence.probes._reach import summarise

    found = summarise(np.concatenate([0.5 ** np.arange(30.0), 0.5 ** np.arange(30.0)[::-1]]), "inputs")
    assert found.trend == "unclear"
    assert "less than 1 % from 7 to 52 back. dL/dx has no clear trend" in found.verdict


def test_a_law_is_named_only_where_the_slope_is_clear():
    from remanence.probes._reach import summarise

    even = np.exp(0.1 * np.random.default_rng(0).standard_normal(60))
    assert "dL/dx is stable, no clear law" in summarise(even, "inputs").verdict


def test_a_change_by_less_than_e_over_the_run_is_no_growth():
    facts = {"contraction": None, "method": "gradients", "epsilon": 1e-3, "interval": (0.002, 0.004)}
    windows = {"window_by_lemma": None, "window_measured": None}
    found = probes.Stability(lyapunov=0.003, steps=100, **facts, **windows)
    assert found.verdict.startswith("holds")
    assert probes.Stability(lyapunov=0.003, steps=1000, **facts, **windows).verdict.startswith("does not forget")


def test_the_window_that_is_enough_is_exact():
    window = nn.Conv1d(2, 2, 15)
    causal = nn.Sequential(nn.ConstantPad1d((14, 0), 0.0), window)
    assert (
        probes.stability(causal, torch.randn(3, 2, 64, generator=torch.Generator().manual_seed(0))).window_measured
        == 15
    )
