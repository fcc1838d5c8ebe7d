"""The parts of a layer as values: how options become a read, and parameters that a part declares itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from remanence import nn, ops
from remanence.ops import Full, OwnParameter, ScanSpec, Screened, SoftmaxRead, Strided, ThresholdRead
from remanence.ops._kernel_config import unsupported
from remanence.testing import assert_matches


def test_a_specification_puts_score_and_combine_into_the_read():
    assert ScanSpec("rnn", Full(score="dot"), combine="half").read == SoftmaxRead("dot", combine="half")
    read = ScanSpec("lstm", Strided(3, 2, keep="k", normalise=True)).read
    assert isinstance(read, ThresholdRead)
    assert (read.rank, read.top_k, read.normalise, read.combine) == (4, 3, True, "sum")
    assert ScanSpec("rnn", combine="half").read is None
    assert ScanSpec("rnn", Screened(0, 0), combine="half").read is None


def test_replacing_one_part_leaves_the_others():
    spec = ScanSpec("rnn", Screened(3, 2, score="dot"), "relu", combine="half", output="hidden")
    cut = replace(spec, cut_reads=True)
    assert (cut.cell, cut.memory, cut.read, cut.output) == (spec.cell, spec.memory, spec.read, spec.output)
    assert replace(spec, combine="concat").read == SoftmaxRead("dot", combine="concat")
    assert replace(spec, nonlinearity="tanh").read == spec.read
    assert replace(spec, memory=None).read is None


def test_a_strided_memory_takes_no_other_read():
    with pytest.raises(ValueError, match="`read` must be one that goes with Strided"):
        ScanSpec("rnn", Strided(3, 2), read=SoftmaxRead())
    with pytest.raises(ValueError, match="`read` must be one that goes with Strided"):
        ScanSpec("rnn", Strided(3, 2), read=Strided(4, 2).read)


@dataclass(frozen=True)
class NewestRead(ops.Read):
    """The newest state alone, times a trained number: its result is known in closed form."""

    def own_parameters(self, hidden_size: int, macro_size: int) -> dict[str, OwnParameter]:
        return {"strength": OwnParameter((1,), init=lambda tensor: tensor.fill_(0.5))}

    def keys(self, weights: ops.Weights, values: Tensor) -> Tensor:
        return values[..., :0]

    def read(self, weights, state, held, log_gates=None) -> ops.Reading:
        ages = held.empty.logical_not().cumsum(dim=1)
        newest = (ages == ages[:, -1:]) & ~held.empty
        shares = newest * weights.own("strength")
        return ops.Reading(torch.bmm(shares[:, None], held.values)[:, 0], shares, shares)


def test_an_own_read_with_a_parameter_runs_on_the_reference():
    layer = nn.RNN(2, 3, memory=Full(score=NewestRead()), nonlinearity="identity", combine="sum", dtype=torch.float64)
    assert layer.strength_l0.tolist() == [0.5]
    x = torch.randn(4, 2, 2, dtype=torch.float64)
    output, _ = layer(x)
    bias = layer.bias_ih_l0 + layer.bias_hh_l0
    s = torch.zeros(2, 3, dtype=torch.float64)
    expected = []
    for x_t in x:
        s = 1.5 * (x_t @ layer.weight_ih_l0.T + bias + s @ layer.weight_hh_l0.T)  # the newest state is h itself
        expected.append(s)
    assert_matches({"output": output}, {"output": torch.stack(expected)})
    output.sum().backward()
    assert layer.strength_l0.grad.abs() > 0
    with pytest.raises(ValueError, match=r"the read NewestRead.* is not in the fused kernel"):
        ops.scan(x, layer.weights(), spec=layer.spec, backend="fused")


class TwiceNamed(ops.Cell):
    name = "twice"

    def step(self, weights, projected, s, c, h):
        return projected + weights.own("absent"), c

    def own_parameters(self, hidden_size: int) -> dict[str, OwnParameter]:
        return {"weight_query": OwnParameter((hidden_size,))}


def test_what_is_declared_twice_or_not_at_all_is_named():
    class Layer(nn.RecurrentLayer):
        cell = TwiceNamed()

    with pytest.raises(ValueError, match="two parts of one layer declare a parameter 'weight_query'"):
        Layer(2, 3, memory=Full())
    with pytest.raises(KeyError, match="there is no parameter 'absent'"):
        Layer(2, 3)(torch.randn(2, 1, 2))


def test_a_threshold_may_read_a_buffer_and_hears_its_gates():
    read = Strided(2, 1).read
    spec = ScanSpec("rnn", Screened(3, 2), read=read)
    assert "is not in the fused kernel" in str(unsupported(spec, torch.float32, torch.device("cpu")))
    weights = ops.Weights(*(torch.randn(4, n) for n in (2, 4)), query=torch.zeros(4), key=torch.ones(4))
    empty = torch.zeros(1, 3, dtype=torch.bool)
    held = ops.Held(torch.tensor([[3.0, 2.0, 1.0]]), torch.eye(3, 4)[None], empty, torch.tensor([3]))
    plain = read.read(weights, torch.zeros(1, 4), held)
    gated = read.read(weights, torch.zeros(1, 4), held, torch.tensor([[-5.0, 0.0, 0.0]]))
    assert plain.weights.tolist() == [[1.0, 0.0, 0.0]]
    assert gated.weights.tolist() == [[0.0, 1.0, 0.0]]
