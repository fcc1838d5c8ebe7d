"""Whether an environment needs memory: the same policy with and without it."""

from __future__ import annotations

import math

import pytest

from remanence.probes import memory_demand as demand_of_a_task
from remanence.report import write_report
from remanence.rl import COMPARISON, PolicyComparison, PolicyConfig, PPOConfig, memory_demand
from remanence.rl._comparison import gain
from remanence.runs import read_result
from remanence.train import ModelConfig


def compared(**returns: list[float]) -> PolicyComparison:
    return PolicyComparison("Maze", 20_000, 100, returns)


def test_the_interval_is_students():
    found = gain([0.9, 1.0, 1.1], [0.4, 0.5, 0.6])
    reach = 4.302653 * math.sqrt(2 * 0.01 / 3)
    assert (found.mean, found.high - found.mean) == (pytest.approx(0.5), pytest.approx(reach))
    assert found.mean - found.low == pytest.approx(reach)


def test_memory_is_needed_where_an_interval_lies_above_zero():
    found = compared(LSTM=[0.9, 0.95, 0.92], GRU=[0.5, 0.52, 0.49], none=[0.5, 0.51, 0.52])
    assert found.needs_memory is True
    assert found.verdict.startswith("Maze needs memory; ")
    assert "LSTM +0.41 (+0.35 to +0.48), GRU -0.01 (-0.05 to +0.04)" in found.sentences[0]


def test_an_interval_that_holds_zero_shows_nothing():
    found = compared(LSTM=[0.9, 0.5, 0.5], none=[0.5, 0.5, 0.5])
    assert found.needs_memory is None
    assert found.verdict.startswith("Maze is not shown to need memory within 20,000 frames")


def test_one_seed_shows_nothing():
    found = compared(LSTM=[1.0], none=[0.0])
    assert found.needs_memory is None
    assert "LSTM +1.00 (one seed, no interval)" in found.verdict


def test_both_are_trained_kept_and_reported(recall, tmp_path):
    ppo = PPOConfig(steps=8, recurrence=8, batch=16)
    config = PolicyConfig(recall, ModelConfig("GRU", {"hidden_size": 8}), ppo, frames=32, copies=2)
    told = []
    found = memory_demand(config, tmp_path / "demand", seeds=2, episodes=2, observer=told.append)
    assert {model: len(each) for model, each in found.returns.items()} == {"GRU": 2, "none": 2}
    assert read_result(tmp_path / "demand" / COMPARISON) == found
    learnt = [line for line in told if line["kind"] == "train"]
    told.clear()
    assert memory_demand(config, tmp_path / "demand", seeds=2, episodes=2, observer=told.append) == found
    assert learnt
    assert not [line for line in told if line["kind"] == "train"]
    write_report([tmp_path / "demand"], tmp_path / "page.html")
    assert found.verdict in (tmp_path / "page.html").read_text()


def test_a_policy_without_memory_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`config.forgets` must be False"):
        memory_demand(PolicyConfig(forgets=True), tmp_path)


def test_the_probe_of_tasks_names_this_one():
    with pytest.raises(TypeError, match=r"take remanence\.rl\.memory_demand"):
        demand_of_a_task(object())
