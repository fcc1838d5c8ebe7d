import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import remanence.nn as layers
from remanence import probes
from remanence.testing import assert_matches
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


def test_without_a_memory_there_is_one_way():
    paths = probes.gradient_paths(nn.RNN(2, 3), torch.randn(8, 1, 2), 1, 5)
    assert np.flatnonzero(paths.sizes).tolist() == [5]


def test_even_attention_has_the_coefficients_of_the_closed_form():
    layer = layers.MemRNN(1, 1, nonlinearity="identity", combine="sum", bias=False)
    with torch.no_grad():
        layer.weight_hh_l0.fill_(1.0)
        layer.weight_score_l0.zero_()
    paths = probes.gradient_paths(layer, torch.randn(9, 1, 1), 2, 6)
    np.testing.assert_allclose(paths.parts[:, 0, 0], chi(3, 6, 6))


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
