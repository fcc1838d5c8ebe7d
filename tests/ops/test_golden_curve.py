"""Fifty training steps of a tiny copy task: the same losses on both backends, by the one tolerance rule."""

from __future__ import annotations

import copy

import pytest
import torch

from remanence import nn, tasks
from remanence.testing import assert_matches

TASK = tasks.Copy(length=12, symbols=3, items=2)
STEPS = 50


def losses(model: nn.SequenceModel, backend: str, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """The loss before each step."""
    model = copy.deepcopy(model).to(dtype)
    model.core.backend = backend  # type: ignore[assignment]
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)  # at twice that, rounding alone grows thirtyfold
    curve = []
    for step in range(STEPS):
        batch = TASK.batch(step, 8)
        loss = TASK.loss(model(batch.inputs.to(dtype))[0], batch)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # and so it would in a leap
        optimiser.step()
        curve.append(loss.detach())
    return {"losses": torch.stack(curve)}


@pytest.mark.parametrize("core", ["RelLSTM", "RelRNN", "LSTM", "MemGRU", "SABLSTM"])
def test_both_backends_learn_alike(core):
    options = {"recent": 3, "relevant": 3} if core.startswith("Rel") else {}
    model = nn.SequenceModel.for_task(TASK, core, hidden_size=8, **options)
    exact = losses(model, "reference", torch.float64)
    assert exact["losses"][-10:].mean() < exact["losses"][:10].mean()  # it learns
    assert_matches(losses(model, "fused", torch.float64), exact)
    plain = losses(model, "reference", torch.float32)
    assert_matches(losses(model, "fused", torch.float32), exact, plain)
