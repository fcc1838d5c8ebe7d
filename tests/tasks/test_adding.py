"""The adding problem."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remanence.tasks import Adding


@given(st.integers(2, 40))
@settings(max_examples=20, deadline=None)
def test_one_mark_in_each_half_and_their_sum_at_the_end(length):
    task = Adding(length=length)
    batch = task.batch(0, 50)
    numbers, marks = batch.inputs.unbind(-1)
    half = length // 2
    assert (marks[:half].sum(0) == 1).all()
    assert (marks[half:].sum(0) == 1).all()
    torch.testing.assert_close((numbers * marks).sum(0), batch.targets[-1, :, 0])
    assert (batch.targets[:-1] == 0).all()
    assert batch.mask[-1].all()
    assert not batch.mask[:-1].any()
    assert ((numbers >= 0) & (numbers < 1)).all()


def test_marks_reach_every_step():
    task = Adding(length=5)
    assert (task.batch(0, 500).inputs[..., 1].sum(1) > 0).all()


def answers(batch, last):
    output = torch.zeros(*batch.mask.shape, 1, dtype=torch.float64)
    output[-1, :, 0] = last
    return output


def test_the_constant_one_reaches_the_chance_level():
    task, rows = Adding(length=10, tolerance=0.1), 40_000
    batch = task.batch(0, rows)
    output = answers(batch, 1.0)
    # The squared error of a triangular law has variance 7/180.
    assert abs(task.loss(output, batch).item() - 1 / 6) < 5 * math.sqrt(7 / 180 / rows)
    assert task.chance.accuracy == 1 - 0.9**2
    assert abs(task.accuracy(output, batch).item() - task.chance_level) < 5 * math.sqrt(0.25 / rows)


def test_looking_at_the_last_step_reaches_the_memory_free_baseline():
    task, rows = Adding(length=4, tolerance=0.1), 40_000
    batch = task.batch(0, rows)
    number, mark = batch.inputs[-1].double().unbind(-1)
    output = answers(batch, torch.where(mark > 0, number + 0.5, 1.0))
    assert task.memory_free.loss == 1 / 24 + 1 / 12
    assert abs(task.loss(output, batch).item() - task.memory_free.loss) < 5 * math.sqrt(7 / 180 / rows)
    assert abs(task.accuracy(output, batch).item() - task.memory_free.accuracy) < 5 * math.sqrt(0.25 / rows)


def test_the_right_sum_is_perfect():
    task = Adding(length=9)
    batch = task.batch(0, 7)
    assert task.loss(batch.targets, batch) == 0
    assert task.accuracy(batch.targets, batch) == 1
    assert task.with_length(30).batch(0, 2).steps == 30


@pytest.mark.parametrize("options", [{"length": 1}, {"tolerance": 0.0}, {"tolerance": 0.6}])
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Adding(**options)
