"""The share of needed states held, counted by hand."""

from __future__ import annotations

import pytest
import torch

from remanence.nn import RelRNN
from remanence.ops import Trace
from remanence.probes import share_held


def _trace(*held: list[int]) -> Trace:
    """One step, one row per list."""
    steps = torch.tensor([held])
    nothing = torch.full((1, len(held)), -1)
    return Trace(torch.zeros(steps.shape), steps, torch.zeros(steps.shape), nothing, nothing)


def _at_step(trace: Trace, at: int) -> Trace:
    """The same memory at a later step, after others that held nothing."""
    empty = torch.full((at, *trace.steps.shape[1:]), -1)
    steps = torch.cat([empty, trace.steps])
    return trace._replace(steps=steps)


def test_two_rows_by_hand():
    """Row 0 needs steps 1 and 3 and holds 3; row 1 needs 0 and 4 and holds both; what comes after does not count."""
    trace = _at_step(_trace([3, 2, -1], [4, 0, 3]), 4)
    trace = trace._replace(steps=torch.cat([trace.steps, trace.steps[-1:]]))
    needed = torch.zeros(6, 2, dtype=torch.bool)
    needed[[1, 3, 5], 0] = True
    needed[[0, 4, 5], 1] = True
    assert share_held(trace, needed, at=4) == 3 / 4


def test_an_empty_slot_is_not_step_zero():
    needed = torch.ones(1, 1, dtype=torch.bool)
    assert share_held(_trace([-1, -1]), needed, at=0) == 0
    assert share_held(_trace([-1, 0]), needed, at=0) == 1


def test_a_buffer_holds_all_and_the_newest_hold_the_newest():
    x = torch.randn(20, 3, 2)
    needed = torch.zeros(20, 3, dtype=torch.bool)
    needed[[2, 18]] = True
    for relevant, recent, share in ((0, 20, 1.0), (3, 4, 0.5)):
        layer = RelRNN(2, 4, recent=recent, relevant=relevant, screen="newest", backend="reference")
        assert share_held(layer.trace(x)[0], needed, at=19) == share


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="mark at least one step"):
        share_held(_trace([0]), torch.zeros(1, 1, dtype=torch.bool), at=0)
    with pytest.raises(ValueError, match="`at` must be a step from 0 to 0; got 1"):
        share_held(_trace([0]), torch.ones(1, 1, dtype=torch.bool), at=1)
    with pytest.raises(ValueError, match="`needed`"):
        share_held(_trace([0]), torch.ones(2, 1, dtype=torch.bool), at=0)
