"""The rules by hand, and the two ways of letting go against each other."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from remanence import nn, ops
from remanence.kv import SCREENS, Screen
from remanence.kv._screens import as_screen, collected, guarded, relevance, strongest, weakest

WEIGHTS = torch.tensor([[0.7, 0.3, 0.0], [0.5, 0.1, 0.4]])  # two queries, three slots
AGE = torch.tensor([[3, 0, -1], [4, 1, 0]])
START = torch.tensor([1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("attention", [1.7, 0.4, 0.4]), ("value", [1.7, 0.4, 0.4]), ("mean", [2.2, 0.4, 0.4]), ("h2o", [2.2, 0.4, 0.4])],
)
def test_what_is_collected(name, expected):
    """With a window of four, the first slot's last weight comes too late for beta."""
    found = collected(as_screen(name), START[None], WEIGHTS[None], AGE[None], recent=4)
    torch.testing.assert_close(found[0], torch.tensor(expected))


def test_tova_forgets_all_but_the_last_query():
    heads = torch.stack([WEIGHTS, WEIGHTS.flip(-1)])
    found = collected(as_screen("tova"), torch.ones(2, 3), heads, AGE.expand(2, 2, 3), recent=0)
    torch.testing.assert_close(found, torch.tensor([[0.45, 0.1, 0.45]]).expand(2, 3))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("attention", [3.0, 1.0]),
        ("h2o", [3.0, 1.0]),
        ("tova", [3.0, 1.0]),
        ("mean", [0.3, 0.5]),
        ("value", [6.0, 5.0]),
        ("window", [-10.0, -2.0]),  # the queries that saw them
    ],
)
def test_what_is_compared(name, expected):
    age = torch.tensor([9, 1])
    found = relevance(as_screen(name), torch.tensor([3.0, 1.0]), 9 - age, age, torch.tensor([2.0, 5.0]))
    torch.testing.assert_close(found, torch.tensor(expected))


def test_every_screen_has_a_name_and_says_what_it_is():
    assert all(issubclass(screen, Screen) for screen in SCREENS.values())
    assert repr(as_screen("h2o")) == "HeavyHitter()"
    mine = Screen()
    assert as_screen(mine) is mine


def test_a_cache_and_a_layer_take_the_same_screens():
    for name in ("attention", "mean", "value"):
        assert as_screen(name) == ops.Screened(2, 2, screen=name).screening
    assert nn.RelLSTM(2, 3, screen=as_screen("h2o")).spec.memory.screening == as_screen("h2o")
    with pytest.raises(ValueError, match="a cache trains none"):
        as_screen(ops.Learned())


def test_guards_are_absolute():
    relevance = torch.tensor([9.0, 0.0, 5.0, 0.0])
    found = guarded(relevance, torch.tensor([9, 8, 7, 0]), torch.tensor([-1, 0, 1, 8]), recent=1, sinks=1)
    assert found.tolist() == [-math.inf, math.inf, 5.0, math.inf]


@given(st.lists(st.integers(0, 3), min_size=2, max_size=12), st.data())
def test_many_at_once_are_those_that_go_one_by_one(scores, data):
    """Few different scores: ties are the rule. Slots lie in any order."""
    ages = torch.tensor(data.draw(st.permutations(range(len(scores)))))
    count = data.draw(st.integers(1, len(scores)))
    relevance = torch.tensor(scores, dtype=torch.float32)
    left = list(range(len(scores)))
    while len(left) > count:
        del left[int(weakest(relevance[left], ages[left]))]
    expected = sorted(left, key=lambda slot: -int(ages[slot]))
    assert strongest(relevance, ages, count).tolist() == expected
