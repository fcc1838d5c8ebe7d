import heapq

import numpy as np
import pytest
import torch
from torch import nn

import remanence.nn
from remanence import probes
from remanence.testing import assert_agrees

PUSH = heapq.heappush


def test_even_attention_is_one_over_t():
    layer = remanence.nn.MemRNN(2, 3)
    with torch.no_grad():
        layer.weight_score_l0.zero_()
    found = probes.attention_map(layer, torch.randn(6, 2, 2)).maps[0]
    assert_agrees(found, np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None], torch.float32)


def test_a_map_is_the_layers_own_trace():
    layer, x = remanence.nn.RelLSTM(2, 4, recent=2, relevant=1), torch.randn(9, 1, 2)
    found, trace = probes.attention_map(layer, x), layer.trace(x)[0]
    for t, (steps, weights) in enumerate(zip(trace.steps[:, 0], trace.weights[:, 0], strict=True)):
        row = np.zeros(9)
        for step, weight in zip(steps.tolist(), weights.tolist(), strict=True):
            row[step] += weight if step >= 0 else 0
        assert np.array_equal(found.maps[0][t], row)


def test_occupancy_fills_and_kappa_is_the_size_of_the_memory():
    found = probes.attention_map(remanence.nn.RelRNN(2, 4, recent=3, relevant=2), torch.randn(20, 2, 2))
    assert found.kappa == 5
    assert found.occupancy[0][[0, 19]].tolist() == [0, 1]
    assert "at most 5 states" in found.verdict


def test_relevant_zero_is_a_band():
    found = probes.attention_map(remanence.nn.RelRNN(2, 4, recent=3, relevant=0), torch.randn(9, 1, 2)).maps[0]
    band = np.tri(9) - np.tri(9, k=-3)
    assert np.array_equal(found > 0, band > 0)


def test_causal_attention_of_torch_and_of_ours_is_lower_triangular(zoo):
    for model in (zoo.MODELS["our Transformer"](), zoo.Causal()):
        found = probes.attention_map(model, torch.randn(7, 2, 4)).maps[0]
        assert_agrees(found.sum(axis=1), 1, torch.float32)
        assert np.array_equal(found, np.tril(found))


def test_torchs_module_still_gives_what_was_asked_for():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2)
            self.given = []

        def forward(self, x):
            for options in ({}, {"need_weights": False}, {"average_attn_weights": False}):
                self.given.append(self.attention(x, x, x, **options)[1])
            return x

    model = Model()
    assert len(probes.attention_map(model, torch.randn(5, 3, 4)).maps) == 3
    shapes = [None if weights is None else tuple(weights.shape) for weights in model.given]
    assert shapes == [(3, 5, 5), None, (3, 2, 5, 5)]


def test_models_without_attention_say_so():
    assert probes.attention_map(nn.LSTM(2, 2), torch.randn(4, 1, 2)).verdict == "no attention found"


def brute_depth(weights, start, threshold):
    """Every way from h_start to the last macro-state, one by one."""
    end, best = len(weights) - 1, -1

    def walk(state, jacobians, product):
        nonlocal best
        for macro in range(state, end + 1):
            share = max(weights[macro, state], float(macro == state))
            if product * share < threshold or not share:
                continue
            if macro == end:
                best = jacobians if best < 0 else min(best, jacobians)
            else:
                walk(macro + 1, jacobians + 1, product * share)

    walk(start, 0, 1.0)
    return best


@pytest.mark.parametrize("seed", range(6))
def test_depth_is_the_shortest_of_all_ways(seed):
    generator = np.random.default_rng(seed)
    weights = np.tril(generator.random((7, 7)) * (generator.random((7, 7)) < 0.4))
    found = probes.dependency_depth(weights, threshold=0.2)
    assert found.depth.tolist() == [brute_depth(weights, t, 0.2) for t in range(7)]


def test_depth_without_reads_is_the_distance_and_with_all_reads_zero():
    assert probes.dependency_depth(np.zeros((5, 5))).depth.tolist() == [4, 3, 2, 1, 0]
    assert probes.dependency_depth(np.tri(5) / np.arange(1, 6)[:, None]).depth.tolist() == [0] * 5


def test_the_bound_is_reported_beside_the_gradient():
    plotly = pytest.importorskip("plotly.graph_objects")
    layer, x = remanence.nn.RelRNN(2, 3), torch.randn(60, 1, 2)
    found = probes.dependency_depth(probes.attention_map(layer, x), 1e-4)
    assert found.bound(0.5).shape == (60,)
    assert found.bound(0.5)[-1] == 1 / found.kappa
    assert isinstance(found.plot_beside(probes.gradient_reach(layer, x), 0.5), plotly.Figure)
    with pytest.raises(ValueError, match="`reach` must have 60 steps; got 5"):
        found.plot_beside(probes.gradient_reach(layer, x[:5]), 0.5)


def test_lists_of_steps_say_the_same_as_the_matrix():
    layer, x = remanence.nn.RelRNN(2, 3, recent=3, relevant=3), torch.randn(80, 1, 2)
    trace = layer.trace(x)[0]
    listed = probes.dependency_depth((trace.steps[:, 0], trace.weights[:, 0]), 1e-4)
    dense = probes.dependency_depth(probes.attention_map(layer, x), 1e-4)
    assert np.array_equal(listed.depth, dense.depth)
    assert listed.kappa == dense.kappa
    with pytest.raises(ValueError, match=r"be two arrays \(T, K\)"):
        probes.dependency_depth((trace.steps[:, 0], trace.weights[:5, 0]))


@pytest.mark.parametrize("batch_first", [False, True])
def test_a_survey_follows_the_ways_of_one_row(batch_first):
    layer = remanence.nn.RelRNN(2, 6, recent=3, relevant=3, batch_first=batch_first)
    with torch.no_grad():
        layer.get_parameter("weight_score_l0").mul_(40)  # sharp: every row keeps other states
    x = torch.randn(60, 4, 2)
    survey = probes.probe_model(layer, x.transpose(0, 1) if batch_first else x)
    layer.batch_first = False
    trace = layer.trace(x[:, -1:])[0]
    alone = probes.dependency_depth((trace.steps[:, 0], trace.weights[:, 0]))
    found = survey["dependency_depth"]
    assert found.kappa == alone.kappa == survey["attention_map"].kappa
    assert np.array_equal(found.depth, alone.depth)


def test_sparse_attention_takes_near_linear_time(monkeypatch):
    """Counted, not timed: pushes to the queue grow with the number of reads."""
    counts = []
    for length in (2000, 8000):
        pushed = []
        monkeypatch.setattr(heapq, "heappush", lambda queue, item, pushed=pushed: pushed.append(1) or PUSH(queue, item))
        generator = np.random.default_rng(0)
        steps = generator.integers(0, np.arange(1, length + 1)[:, None], (length, 5))
        found = probes.dependency_depth((steps, np.full((length, 5), 0.2)), 1e-3)
        assert (found.depth >= 0).mean() > 0.5
        counts.append(len(pushed))
    assert counts[1] < 5 * counts[0]


def test_bad_attention_is_refused():
    with pytest.raises(ValueError, match=r"have shape \(T, T\)"):
        probes.dependency_depth(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="threshold"):
        probes.dependency_depth(np.zeros((3, 3)), threshold=0)
