"""Probes work on every model and leave nothing behind, whether it runs or throws."""

import copy
import json

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import remanence.nn
from remanence import ops, probes, tasks
from remanence.ops._scan_hooks import wrappers
from remanence.testing import assert_matches

X = torch.randn(12, 3, 4)


class Echo:
    """Name the largest of four numbers: a task that asks for no memory."""

    chance = memory_free = tasks.Copy(5).chance

    def batch(self, position, batch_size):
        return tasks.Batch(X, X.argmax(dim=-1), torch.ones(X.shape[:2], dtype=torch.bool))

    def accuracy(self, output, batch):
        return (output.argmax(dim=-1) == batch.targets).float().mean()


PROBES = {
    "gradient_reach": lambda model: probes.gradient_reach(model, X),
    "gradient_reach, inputs": lambda model: probes.gradient_reach(model, X, through="inputs"),
    "attention_map": lambda model: probes.attention_map(model, X),
    "dependency_depth": lambda model: probes.dependency_depth(probes.attention_map(model, X)),
    "gradient_paths": lambda model: probes.gradient_paths(model, X, t=1, k=3),
    "cost": lambda model: probes.cost(model, [4, 8], X, repeats=1),
    "tradeoff": lambda model: probes.tradeoff({"it": model}, [4, 8], X),
    "truncation_gap": lambda model: probes.truncation_gap(model, X, [2, 6]),
    "stability": lambda model: probes.stability(model, X),
    "memory_demand": lambda model: probes.memory_demand(Echo(), model, batches=1),
}
# What a probe says of models that it is not for: nothing to attend to, or a recurrence whose paths it cannot split.
REFUSED = {"dependency_depth": (ValueError, "`attention` must"), "gradient_paths": (Exception, "`layer` must")}
ATTENTIVE = {"RelLSTM", "MemRNN", "SABLSTM", "our Transformer", "torch's Transformer"}
FOR = {"dependency_depth": ATTENTIVE, "gradient_paths": {"MemRNN"}}


def footprint(model):
    """Everything a probe might leave behind."""
    parts = list(model.modules()) if isinstance(model, nn.Module) else []
    hooks = [(len(p._forward_hooks), len(p._forward_pre_hooks), "forward" in vars(p)) for p in parts]
    values = {name: value.clone() for name, value in (model.state_dict().items() if parts else ())}
    gradients = [None if p.grad is None else p.grad.clone() for p in (model.parameters() if parts else ())]
    modes = [p.training for p in parts]
    world = (ops.scan, wrappers(), torch.backends.mha.get_fastpath_enabled(), torch.is_grad_enabled())
    return hooks, values, gradients, modes, world, torch.get_rng_state()


def assert_same(before, after):
    hooks, values, gradients, modes, world, generator = before
    assert hooks == after[0]
    assert all(torch.equal(values[name], after[1][name]) for name in values)
    for old, new in zip(gradients, after[2], strict=True):
        assert (old is None and new is None) or torch.equal(old, new)
    assert modes == after[3]
    assert world == after[4]
    assert torch.equal(generator, after[5])


@pytest.mark.parametrize("probe", sorted(PROBES))
def test_a_probe_works_and_leaves_nothing_behind(probe, model, request):
    if isinstance(model, nn.Module) and list(model.parameters()):
        model(X)[0].sum().backward()
    before = footprint(model)
    if request.node.callspec.params["model"] in FOR.get(probe, request.node.callspec.params["model"]):
        result = PROBES[probe](model)
        assert result.verdict
        json.dumps(result.to_dict())
    else:
        error, words = REFUSED[probe]
        with pytest.raises(error, match=words):
            PROBES[probe](model)
    assert_same(before, footprint(model))


@pytest.mark.parametrize("probe", sorted(PROBES))
def test_a_probe_leaves_nothing_behind_when_the_model_throws(probe, zoo):
    model = zoo.Broken(4, 4) if probe == "gradient_paths" else zoo.Throwing()
    before = footprint(model)
    with pytest.raises(RuntimeError, match="no"):
        PROBES[probe](model)
    assert_same(before, footprint(model))


@pytest.mark.parametrize("probe", sorted(PROBES))
def test_results_have_pictures(probe):
    plotly = pytest.importorskip("plotly.graph_objects")
    assert isinstance(PROBES[probe](remanence.nn.MemRNN(4, 4)).plot(), plotly.Figure)


def test_results_are_frozen():
    reach = probes.gradient_reach(nn.LSTM(4, 4), X)
    with pytest.raises(AttributeError):
        reach.horizon = 3  # type: ignore[misc]
    copy.copy(reach)


def test_torch_layers_run_the_same_while_watched():
    from remanence.probes._observe import watched_states

    both_ways = nn.LSTM(4, 5, 2, bidirectional=True)
    for layer in (nn.LSTM(4, 5, 2, batch_first=True), nn.GRU(4, 5), nn.RNN(4, 5, nonlinearity="relu"), both_ways):
        layer.double()
        x = X.double()
        shape = (layer.num_layers * (1 + layer.bidirectional), x.shape[0] if layer.batch_first else x.shape[1], 5)
        h = torch.randn(shape).double()
        hx = (h, torch.randn(shape).double()) if isinstance(layer, nn.LSTM) else h
        plain = layer(x, hx)
        with watched_states(layer):
            watched = layer(x, hx)
        assert_matches(dict(enumerate_tensors(watched)), dict(enumerate_tensors(plain)))
        unbatched = layer(x[:, 0])[0]
        with watched_states(layer):
            assert_matches({"output": layer(x[:, 0])[0]}, {"output": unbatched})


def enumerate_tensors(result):
    return ((str(number), tensor) for number, tensor in enumerate(tree_leaves(result)))
