"""Copies in other processes: the same numbers, and no silence when one of them fails."""

from __future__ import annotations

import dataclasses
import os
import signal

import pytest
import torch

from remanence.rl import PolicyConfig, PPOConfig, train_policy
from remanence.rl._copies import Elsewhere, Recipe
from remanence.train import ModelConfig, RunError
from remanence.train._checkpoint import load_checkpoint
from remanence.train._states import bits_equal

RECIPE = Recipe("MiniGrid-Fetch-5x5-N2-v0", seed=3)
COUNT = 5


@pytest.fixture
def elsewhere():
    copies = Elsewhere(RECIPE, COUNT, workers=2)
    yield copies
    copies.close()


def actions(step):
    return [(step + number) % 4 for number in range(COUNT)]


def test_copies_elsewhere_do_what_copies_here_do(elsewhere):
    here = RECIPE.make(range(COUNT))
    assert len(here) == len(elsewhere) == COUNT
    assert torch.equal(here.seen(), elsewhere.seen())
    for step in range(130):  # past the end of episodes
        mine, theirs = here.act(actions(step)), elsewhere.act(actions(step))
        assert torch.equal(mine.seen, theirs.seen)
        assert mine[1:] == theirs[1:]
    assert here.places() == elsewhere.places()
    start = RECIPE.make(range(COUNT)).places()
    elsewhere.go_to(start)
    assert elsewhere.places() == start


def test_what_goes_wrong_elsewhere_is_raised_here():
    copies = Elsewhere(dataclasses.replace(RECIPE, environment="MiniGrid-Fetsh-v0"), 2, workers=1)
    with pytest.raises(ValueError, match="`environment` must be the id"):
        copies.seen()
    copies.close()


def test_a_worker_that_was_killed_is_not_waited_for(elsewhere):
    elsewhere.seen()
    os.kill(elsewhere._processes[0].pid, signal.SIGKILL)
    with pytest.raises(RunError, match="a process that plays has ended"):
        _ = [elsewhere.act(actions(step)) for step in range(3)]


def test_closing_ends_the_processes(elsewhere):
    elsewhere.seen()
    elsewhere.close()
    assert not any(process.is_alive() for process in elsewhere._processes)


def test_a_run_is_the_same_whoever_plays_and_may_change_hands(tmp_path):
    ppo = PPOConfig(steps=16, recurrence=8, batch=32)
    config = PolicyConfig(RECIPE.environment, ModelConfig("LSTM", {"hidden_size": 8}), ppo, frames=128, copies=4)
    train_policy(config, tmp_path / "here")
    train_policy(dataclasses.replace(config, workers=3, frames=64), tmp_path / "elsewhere")
    train_policy(dataclasses.replace(config, workers=0), tmp_path / "elsewhere")
    one, other = (load_checkpoint(tmp_path / name / "checkpoint") for name in ("here", "elsewhere"))
    assert one is not None
    assert other is not None
    assert bits_equal(one.weights, other.weights)
