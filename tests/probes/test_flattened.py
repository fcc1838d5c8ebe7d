"""Models that return steps and rows in one dimension, a list of steps, or classes instead of numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from remanence import probes

VOCABULARY = 12


class Flattening(nn.Module):
    """A GRU language model; ``(T, B)`` or ``(B, T)`` tokens in, ``(T * B, classes)`` out, in one order or the other."""

    def __init__(self, *, batch_first: bool, flatten: str | None):
        super().__init__()
        torch.manual_seed(0)
        self.turned = batch_first
        self.flatten = flatten
        self.embedding = nn.Embedding(VOCABULARY, 8)
        self.core = nn.GRU(8, 16)
        self.head = nn.Linear(16, VOCABULARY)

    def forward(self, tokens):
        if self.turned:
            tokens = tokens.T
        output = self.head(self.core(self.embedding(tokens))[0])
        if self.flatten == "time":
            return output.reshape(-1, VOCABULARY)
        if self.turned or self.flatten == "rows":
            output = output.transpose(0, 1)
        if self.flatten == "rows":
            return output.reshape(-1, VOCABULARY)
        return output


def sequences(batch_first: bool) -> torch.Tensor:
    tokens = torch.randint(4, (30, 3), generator=torch.Generator().manual_seed(1))
    if batch_first:
        return tokens.T
    return tokens


@pytest.mark.parametrize("flatten", ["time", "rows"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_flattened_outputs_are_read_as_steps_and_rows(batch_first, flatten, given):
    said = batch_first if given else None
    whole = Flattening(batch_first=batch_first, flatten=None)
    flat = Flattening(batch_first=batch_first, flatten=flatten)
    tokens = sequences(batch_first)
    expected = probes.probe_model(whole, tokens, batch_first=said, skip={"cost": "slow"})
    found = probes.probe_model(flat, tokens, batch_first=said, skip={"cost": "slow"})
    assert found["layout"].verdict == expected["layout"].verdict
    assert (found["layout"].steps, found["layout"].rows) == (30, 3)
    np.testing.assert_allclose(found["gradient_reach"].log_norm, expected["gradient_reach"].log_norm, rtol=1e-4)
    np.testing.assert_allclose(found["perturbation_reach"].change, expected["perturbation_reach"].change, rtol=1e-4)
    np.testing.assert_allclose(found["context_use"].nats, expected["context_use"].nats, rtol=1e-6)
    assert found["stability"].window_measured == expected["stability"].window_measured
    assert found["truncation_gap"].verdict == expected["truncation_gap"].verdict


def test_as_many_outputs_as_steps_of_all_rows_may_be_something_else():
    mixing = nn.Sequential(nn.Flatten(0), nn.Linear(12, 12))
    with pytest.raises(ValueError, match="T = 4 steps of B = 3 rows, or batch first: T = 3 of B = 4"):
        probes.gradient_reach(mixing, torch.randn(4, 3, 1))


class Listing(nn.Module):
    """A loop over steps that returns the list of its outputs, or the same as one tensor."""

    def __init__(self, *, as_list: bool):
        super().__init__()
        torch.manual_seed(0)
        self.as_list = as_list
        self.cell = nn.GRUCell(3, 8)

    def forward(self, x):
        h = None
        outputs = []
        for x_t in x:
            h = self.cell(x_t, h)
            outputs.append(h)
        if self.as_list:
            return outputs
        return torch.stack(outputs)


def test_a_list_with_a_tensor_for_each_step_is_read_as_one():
    x = torch.randn(24, 3, 3, generator=torch.Generator().manual_seed(0))
    expected = probes.probe_model(Listing(as_list=False), x, skip={"cost": "slow"})
    found = probes.probe_model(Listing(as_list=True), x, skip={"cost": "slow"})
    assert {name: result.verdict for name, result in found.items()} == {
        name: result.verdict for name, result in expected.items()
    }


def test_a_state_of_two_tensors_is_no_list_of_steps():
    layer = nn.LSTM(3, 5)
    found = probes.gradient_reach(lambda x: layer(x)[1], torch.randn(2, 4, 3), batch_first=False)
    assert found.horizon == 1


def test_answers_without_a_gradient_are_probed_by_changes():
    model = Flattening(batch_first=False, flatten=None)
    found = probes.probe_model(lambda tokens: model(tokens).argmax(-1), sequences(False), skip={"cost": "slow"})
    assert found["gradient_reach"].verdict.startswith("does not apply: nothing of the output has a gradient")
    assert found["perturbation_reach"].horizon >= 1
    assert not [name for name, result in found.items() if result.verdict.startswith("failed")]


class Answering(nn.Module):
    """Reads a source and answers with a sequence of its own length."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 8)
        self.core = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
        self.head = nn.Linear(8, VOCABULARY)

    def forward(self, source, target):
        return self.head(self.core(self.embedding(source), self.embedding(target)))


def test_context_use_is_not_for_answers_of_another_length():
    batch = (sequences(True), sequences(True)[:, :7])
    with pytest.raises(ValueError, match="not logits of the tokens that follow the inputs"):
        probes.context_use(Answering(), batch, batch_first=True)
