import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import remanence.nn as layers
from remanence import probes
from remanence.probes.closed_forms import record as _record
from remanence.testing import assert_agrees, assert_matches
from remanence.theory import chi

LAYERS = {
    "nn.RNN": lambda: nn.RNN(2, 3),
    "nn.GRU": lambda: nn.GRU(2, 3),
    "RNN": lambda: layers.RNN(2, 3, nonlinearity="relu"),
    "MemRNN": lambda: layers.MemRNN(2, 3),
    "half": lambda: layers.MemRNN(2, 3, combine="half"),
    "RelRNN": lambda: layers.RelRNN(2, 3, recent=2, relevant=1),
    "MemGRU": lambda: layers.MemGRU(2, 3, batch_first=True),
    "RelGRU": lambda: layers.RelGRU(2, 3, recent=2, relevant=2),
}


@given(name=st.sampled_from(sorted(LAYERS)), seed=st.integers(0, 10**6), t=st.integers(0, 4), k=st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_the_parts_sum_to_autograds_answer(name, seed, t, k):
    torch.manual_seed(seed)
    paths = probes.gradient_paths(LAYERS[name](), torch.randn(10, 10, 2), t, k)
    parts, total = torch.tensor(paths.parts.sum(axis=0)), torch.tensor(paths.total)
    assert_matches({"sum": parts}, {"sum": total})


@given(name=st.sampled_from(["MemGRU", "RelGRU", "nn.GRU"]), seed=st.integers(0, 10**6), k=st.integers(0, 5))
@settings(max_examples=15, deadline=None)
def test_they_do_so_with_a_leak_that_carries_the_macro_state(name, seed, k):
    torch.manual_seed(seed)
    layer, x = LAYERS[name](), torch.randn(10, 10, 2)
    paths = probes.gradient_paths(layer, x, 2, k, leak="s")
    assert_matches({"sum": torch.tensor(paths.parts.sum(axis=0))}, {"sum": torch.tensor(paths.total)})
    same = np.array_equal(paths.total, probes.gradient_paths(layer, x, 2, k).total)
    assert same == (name == "nn.GRU")  # without a memory s is h


def leaky_gru(layer, x):
    """A GRU with full additive attention, written out, whose leak carries s: ``(T, n)`` macro-states."""
    s, states, outputs = torch.zeros(layer.hidden_size, dtype=x.dtype), [], []
    for x_t in x:
        r, z, candidate = (layer.weight_ih_l0 @ x_t + layer.bias_ih_l0).chunk(3)
        r_s, z_s, candidate_s = (layer.weight_hh_l0 @ s + layer.bias_hh_l0).chunk(3)
        z = (z + z_s).sigmoid()
        states.append((1 - z) * (candidate + (r + r_s).sigmoid() * candidate_s).tanh() + z * s)
        stacked = torch.stack(states)
        scores = (layer.weight_query_l0 @ s + stacked @ layer.weight_key_l0.T).tanh() @ layer.weight_score_l0
        s = states[-1] + scores.softmax(dim=0) @ stacked
        outputs.append(s)
    return torch.stack(outputs)


def test_a_leak_of_the_macro_state_is_what_it_says():
    layer, x = layers.MemGRU(2, 3, dtype=torch.float64), torch.randn(7, 1, 2).double()
    recording, _ = _record(layer, x, 0, 0, 6, leak="s")
    assert_matches({"s": recording.s}, {"s": leaky_gru(layer, x[:, 0]).detach()})


def test_the_leak_is_one_of_two():
    with pytest.raises(ValueError, match="`leak` must be one of 'h', 's'"):
        probes.gradient_paths(layers.MemGRU(2, 3), torch.randn(6, 1, 2), 0, 2, leak="c")  # type: ignore[arg-type]


def test_without_a_memory_there_is_one_way():
    paths = probes.gradient_paths(nn.RNN(2, 3), torch.randn(8, 1, 2), 1, 5)
    assert np.flatnonzero(paths.sizes).tolist() == [5]


def test_even_attention_has_the_coefficients_of_the_closed_form():
    layer = layers.MemRNN(1, 1, nonlinearity="identity", combine="sum", bias=False)
    with torch.no_grad():
        layer.weight_hh_l0.fill_(1.0)
        layer.weight_score_l0.zero_()
    paths = probes.gradient_paths(layer, torch.randn(9, 1, 1), 2, 6)
    assert_agrees(paths.parts[:, 0, 0], chi(3, 6, 6))


@pytest.mark.parametrize(
    ("layer", "error", "text"),
    [
        (nn.LSTM(2, 3), ValueError, "be of a kind that splits"),
        (nn.RNN(2, 3, 2), ValueError, "have one layer"),
        (nn.Linear(2, 3), TypeError, "be a recurrent layer"),
        (layers.SABRNN(2, 3), ValueError, "be of a kind that splits"),
    ],
)
def test_other_layers_are_refused(layer, error, text):
    with pytest.raises(error, match=text):
        probes.gradient_paths(layer, torch.randn(6, 1, 2), 0, 2)


def test_the_way_must_end_within_the_input():
    with pytest.raises(ValueError, match="end within the 4 steps"):
        probes.gradient_paths(nn.RNN(2, 3), torch.randn(4, 1, 2), 2, 2)
