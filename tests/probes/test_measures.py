import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import nn

import remanence.nn
from remanence import probes, tasks
from remanence.probes._declared import declared_operations
from remanence.probes._fit import fit_decay, fit_growth
from remanence.probes._meter import peak_bytes
from remanence.testing import assert_agrees


def test_fits_find_the_law_and_the_rate():
    distance = np.arange(1, 200)
    noise = 0.05 * np.random.default_rng(0).standard_normal(199)
    exponential = fit_decay(distance, -0.1 * distance + noise)
    power = fit_decay(distance, -1.5 * np.log(distance) + noise)
    assert exponential is not None
    assert power is not None
    assert (exponential.law, power.law) == ("exponential", "power")
    assert exponential.interval[0] < -0.1 < exponential.interval[1]
    assert power.interval[0] < -1.5 < power.interval[1]
    assert fit_decay(distance[:2], distance[:2]) is None


ORDERS = {(5, 0, 0): "constant", (5, 3, 0): "linear", (5, 3, 2): "quadratic", (0, 0, 2): "quadratic"}


@pytest.mark.parametrize(("terms", "order"), list(ORDERS.items()))
def test_growth_is_split_into_its_terms(terms, order):
    lengths = [10, 20, 40, 80]
    found = fit_growth(lengths, [terms[0] + terms[1] * t + terms[2] * t * t for t in lengths])
    assert_agrees([found.constant, found.linear, found.quadratic], terms)
    assert found.order == order


def test_the_meter_counts_what_is_alive():
    def run():
        first = torch.zeros(1000)
        second = first + 1
        del first
        return second * 2

    assert peak_bytes(run) == 8000
    assert peak_bytes(lambda: torch.zeros(10).view(2, 5)) == 40


def test_operations_of_a_linear_layer_are_exact():
    found = probes.cost(nn.Linear(3, 5), [4, 8], torch.randn(1, 2, 3), repeats=1)
    assert found.operations == (2 * 4 * 2 * 3 * 5, 2 * 8 * 2 * 3 * 5)
    assert found.growth["operations"].order == "linear"


def test_attention_inside_a_fused_kernel_of_torch_is_counted(zoo):
    length, width = 32, 4
    for model in (zoo.Causal(), zoo.Causal().eval()):
        found = probes.cost(model, [16, length], torch.randn(1, 1, width), repeats=1)
        layer = length * width * (4 * width + 2 * 8) + 2 * length**2 * width
        assert found.operations[-1] == 2 * layer
        assert found.declared_operations is not None
        assert found.declared_operations[-1] == 2 * layer


DECLARED = {
    "nn.RNN": lambda: nn.RNN(3, 4),
    "two nn.LSTMs, both ways": lambda: nn.LSTM(3, 4, 2, bidirectional=True),
    "GRU": lambda: remanence.nn.GRU(3, 4),
    "GORU": lambda: remanence.nn.GORU(3, 4),
    "a head": lambda: remanence.nn.SequenceModel(3, "LSTM", 5, encoder="dense", hidden_size=4),
}


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_operations_are_exactly_those_declared(name):
    found = probes.cost(DECLARED[name](), [8, 16], torch.randn(1, 2, 3), repeats=1)
    assert found.operations == found.declared_operations
    assert found.as_declared["operations"]


ATTENTIVE = {
    "MemRNN": lambda: remanence.nn.MemRNN(3, 4),
    "RelLSTM": lambda: remanence.nn.RelLSTM(3, 4, recent=3, relevant=2),
    "SABRNN": lambda: remanence.nn.SABRNN(3, 4),
    "SABRNN, query": lambda: remanence.nn.SABRNN(3, 4, score="mlp"),
    "Transformer": lambda: remanence.nn.Transformer(16, 1, 2),
    "separable": lambda: remanence.nn.Transformer(16, 1, 2, kind="separable"),
    "random features": lambda: remanence.nn.Transformer(16, 1, 2, kind="positive-random-features"),
}


@pytest.mark.parametrize("name", sorted(ATTENTIVE))
def test_operations_of_attention_grow_as_declared(name):
    model = ATTENTIVE[name]()
    found = probes.cost(model, [48, 96, 192], torch.randn(1, 2, model.input_size), repeats=1)
    assert found.as_declared["operations"]
    assert found.declared_operations is not None
    declared = fit_growth([48, 96, 192], [float(count) for count in found.declared_operations])
    assert found.growth["operations"].order == declared.order


def told(**changes):
    """A measured cost with some numbers replaced."""
    found = probes.cost(nn.LSTM(3, 4), [8, 16, 32], repeats=1)
    growth = {name: fit_growth([8, 16, 32], list(values)) for name, values in changes.items()}
    return dataclasses.replace(found, **changes, growth={**found.growth, **growth})


def test_time_and_operations_that_are_not_as_declared_are_named():
    slow, quick = told(seconds=(1.0, 4.0, 16.0)), told(seconds=(1.0, 2.0, 4.0))
    assert (slow.as_declared["seconds"], quick.as_declared["seconds"]) == (False, True)
    assert "time not as its layers declare" in slow.verdict
    assert "time and operations as its layers declare" in quick.verdict
    bent = told(seconds=(1.0, 1.1, 3.9))
    assert "time (too noisy to say)" in bent.verdict
    assert "time and operations as" not in bent.verdict
    busy = told(operations=(10**6, 2 * 10**6, 4 * 10**6))
    assert busy.as_declared["operations"] is False


def test_nothing_is_declared_for_kinds_that_nobody_knows(zoo):
    found = probes.cost(zoo.LinearRNN(0.5 * torch.eye(3)), [4, 8], torch.randn(1, 2, 3), repeats=1)
    assert found.declared_operations is None
    assert found.as_declared == {}
    assert declared_operations(nn.LSTM(3, 4, proj_size=2), 8, 1) is None


def test_full_attention_is_quadratic_and_its_state_grows_where_the_screened_one_stays():
    options = {"backend": "reference"}
    full = probes.cost(remanence.nn.MemRNN(3, 4, **options), [24, 48, 96], repeats=1)
    screened = probes.cost(remanence.nn.RelRNN(3, 4, recent=3, relevant=3, **options), [24, 48, 96], repeats=1)
    assert full.growth["peak_bytes"].order == "quadratic"
    assert screened.growth["peak_bytes"].order == "linear"
    assert full.growth["state_bytes"].order == "linear"
    assert screened.growth["state_bytes"].order == "constant"
    assert screened.as_declared["state_bytes"] is True
    assert full.as_declared["state_bytes"] is False


def test_tradeoff_has_a_point_a_length():
    compared = {"LSTM": remanence.nn.LSTM(3, 4), "Rel": remanence.nn.RelLSTM(3, 4)}
    made = probes.tradeoff(compared, [8, 16], torch.randn(8, 2, 3))
    assert all(len(points) == 2 for points in made.points.values())
    assert made.points["LSTM"][0][0] < made.points["Rel"][0][0]
    assert "least memory: LSTM" in made.verdict


def test_tradeoff_takes_a_batch_of_every_length():
    def batch(length):
        return tasks.Denoise(length, items=2).batch(0, 3)

    def loss(output, given):
        return nn.functional.cross_entropy(output[given.mask][:, :8], given.targets[given.mask])

    model = remanence.nn.LSTM(10, 9)
    made = probes.tradeoff({"LSTM": model}, [8, 16], batch, loss)
    expected = [probes.gradient_reach(model, batch(length), loss).log_norm.mean() for length in (8, 16)]
    assert_agrees([norm for _, norm in made.points["LSTM"]], expected)


@pytest.mark.parametrize("lengths", [[8], [8, 8], [8, 4]])
def test_lengths_must_rise(lengths):
    with pytest.raises(ValueError, match="`lengths` must be two lengths or more, rising"):
        probes.cost(nn.LSTM(2, 2), lengths)


def diagonal(values):
    layer = remanence.nn.RNN(1, len(values), nonlinearity="identity", bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight_hh_l0.copy_(torch.diag(torch.tensor(values, dtype=torch.float64)))
    return layer


@pytest.mark.parametrize("value", [0.5, 0.9, 1.2])
def test_the_exponent_is_the_logarithm_of_the_greatest_eigenvalue(value):
    found = probes.stability(diagonal([value, 0.3]), torch.randn(200, 1, 1, dtype=torch.float64))
    assert found.method == "jacobians"
    assert_agrees(found.lyapunov, math.log(value))
    assert_agrees(found.memory_length, -1 / math.log(value) if value < 1 else math.inf)


def test_a_certificate_is_taken_over_and_its_window_suffices():
    layer = remanence.nn.StableRNN(2, 6, contraction=0.8)
    found = probes.stability(layer, torch.randn(120, 2, 2), epsilon=1e-2)
    assert found.contraction == layer.certificate().factor
    assert found.window_measured is not None
    assert found.window_by_lemma is not None
    assert found.window_measured <= found.window_by_lemma
    assert found.lyapunov <= math.log(0.8)


def test_no_proof_for_a_plain_lstm():
    found = probes.stability(nn.LSTM(2, 4), torch.randn(40, 1, 2))
    assert found.contraction is None
    assert "no proof" in found.verdict


def test_the_gap_of_a_linear_recurrence_is_what_was_cut_off(zoo):
    layer = zoo.LinearRNN(0.5 * torch.eye(1, dtype=torch.float64))
    x = torch.ones(12, 1, 1, dtype=torch.float64)
    gap = probes.truncation_gap(layer, x, [1, 3, 12])
    assert_agrees(gap.output, [sum(0.5**i for i in range(k, 12)) for k in (1, 3, 12)])
    assert gap.sufficient(0.3) == 3
    assert gap.sufficient(1e-9) == 12


def test_a_shift_register_needs_its_length(zoo):
    gap = probes.truncation_gap(zoo.DelayLine(4), torch.randn(10, 2, 1), [1, 4, 5])
    assert gap.output[1] > 0
    assert gap.output[2] == 0
    assert gap.sufficient(0.0) == 5


def test_loss_against_context_is_the_targets():
    x, y = torch.randn(10, 2, 1), torch.randn(10, 2, 1)
    gap = probes.truncation_gap(nn.Identity(), (x, y), [1, 5], nn.functional.mse_loss, ends=4, batch_first=False)
    expected = (x[-4:] - y[-4:]).square().mean()
    assert_agrees([gap.full_loss, *gap.loss], float(expected), torch.float32)
    assert gap.perplexity == tuple(math.exp(value) for value in gap.loss)


def test_copying_needs_memory_and_echoing_does_not():
    assert probes.memory_demand(tasks.Copy(20)).needs_memory

    class Echo:
        chance = memory_free = tasks.Copy(5).chance

        def batch(self, position, batch_size):
            tokens = torch.randint(4, (6, batch_size), generator=torch.Generator().manual_seed(position))
            return tasks.Batch(tokens, tokens, torch.ones_like(tokens, dtype=torch.bool))

        def accuracy(self, output, batch):
            return (output.argmax(dim=-1) == batch.targets).float().mean()

    found = probes.memory_demand(Echo(), lambda tokens: nn.functional.one_hot(tokens, 4).float())
    assert (found.memory_free, found.model, found.needs_memory, found.uses_memory) == (1.0, 1.0, False, False)
    assert found.measured


def test_a_task_must_give_batches():
    with pytest.raises(TypeError, match="`task` must have `batch"):
        probes.memory_demand(object())
