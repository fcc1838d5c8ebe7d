"""Models that return steps and rows in one dimension, as many language models of tutorials do."""

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
