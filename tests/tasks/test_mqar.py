"""Multi-query associative recall: who is asked when, and for what."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remanence.tasks import MultiQueryRecall


def sample(task, rows=3, seed=0):
    return task.sample(rows, task.stream("train", seed))


@st.composite
def recipes(draw):
    pairs = draw(st.integers(1, 6))
    sizes = {"keys": draw(st.integers(pairs, 9)), "values": draw(st.integers(1, 9))}
    length = 3 * pairs + draw(st.integers(0, 20))
    return MultiQueryRecall(length, pairs, gaps=draw(st.sampled_from(["uniform", "power-law"])), **sizes)


@given(recipes())
@settings(max_examples=40, deadline=None)
def test_every_key_is_asked_once_for_its_value(task):
    batch = sample(task)
    for row in range(3):
        tokens = batch.inputs[:, row].tolist()
        pairs = dict(zip(tokens[0 : 2 * task.pairs : 2], tokens[1 : 2 * task.pairs : 2], strict=True))
        assert len(pairs) == task.pairs  # no key twice
        assert all(1 <= key <= task.keys < value <= task.keys + task.values for key, value in pairs.items())
        asked = batch.mask[:, row].nonzero()[:, 0].tolist()
        assert sorted(tokens[step] for step in asked) == sorted(pairs)
        assert min(asked) >= 2 * task.pairs
        for step in asked:
            assert batch.targets[step, row] == pairs[tokens[step]] - task.keys - 1
        blank = set(range(2 * task.pairs, task.length)) - set(asked)
        assert all(tokens[step] == 0 == batch.targets[step, row] for step in blank)


def test_uniform_gaps_ask_at_every_step_alike_and_in_every_order():
    task = MultiQueryRecall(length=14, pairs=2)
    batch = sample(task, rows=20_000)
    share = batch.mask[4:].double().mean(dim=1)
    assert ((share - 0.2).abs() < 5 * math.sqrt(0.2 * 0.8 / 20_000)).all()
    first_asked = batch.inputs.gather(0, batch.mask.int().argmax(dim=0)[None])[0]
    in_order = (first_asked == batch.inputs[0]).double().mean()
    assert abs(in_order - 0.5) < 5 * math.sqrt(0.25 / 20_000)


def test_a_power_law_asks_by_weight():
    """One pair: the n-th step after it is asked with the probability n^-1.5 over their sum."""
    task = MultiQueryRecall(length=12, pairs=1, gaps="power-law", exponent=-0.5)
    share = sample(task, rows=20_000).mask[2:].double().mean(dim=1)
    weights = torch.arange(1, 11).double() ** -1.5
    expected = weights / weights.sum()
    assert ((share - expected).abs() < 5 * (expected * (1 - expected) / 20_000).sqrt()).all()


def test_chance_is_that_of_the_values():
    task = MultiQueryRecall(values=16)
    assert task.chance_level == 1 / 16
    assert task.chance.loss == math.log(16)
    batch = sample(task)
    uniform = torch.zeros(*batch.targets.shape, 16, dtype=torch.float64)
    torch.testing.assert_close(task.loss(uniform, batch).item(), math.log(16))


def test_too_short_or_too_few_keys_are_refused():
    with pytest.raises(ValueError, match=r"`length`.*24"):
        MultiQueryRecall(length=23, pairs=8)
    with pytest.raises(ValueError, match=r"`keys`.*8"):
        MultiQueryRecall(keys=7, pairs=8)
