"""The calibration: short, in proportion, and what threads would gain."""

import pytest
import torch

from remanence.experiments import _calibration, find_experiment, gain_of_threads, plan_cells
from remanence.rl import PolicyConfig, PPOConfig

LINE = {"kind": "train"}


@pytest.fixture
def tried(monkeypatch):
    """The configurations that are tried; every update seems to take a second, the first one, which warms up, ten."""
    configs = []
    clock = iter((10.0, 11.0))
    monkeypatch.setattr(_calibration.time, "process_time", lambda: next(clock))

    def train(config, folder, observer):
        configs.append(config)
        for _ in range(config.updates):
            observer(LINE)

    monkeypatch.setattr(_calibration, "train_policy", train)
    return configs


def test_a_policy_is_tried_on_one_minibatch_and_the_time_is_in_proportion(tried):
    ppo = PPOConfig(steps=128, recurrence=16, batch=256)
    assert _calibration._playing(PolicyConfig(ppo=ppo, copies=16, frames=500_000)) == 8.0
    (config,) = tried
    assert (config.ppo.steps, config.updates) == (16, 2)


@pytest.mark.parametrize(("recurrence", "batch", "steps"), [(128, 256, 128), (16, 1024, 64), (32, 128, 32)])
def test_no_chunk_is_cut_and_every_minibatch_is_full(tried, recurrence, batch, steps):
    ppo = PPOConfig(steps=128, recurrence=recurrence, batch=batch)
    _calibration._playing(PolicyConfig(ppo=ppo, copies=16))
    assert tried[0].ppo.steps == steps


def test_threads_gain_what_the_clock_says(tmp_path, monkeypatch):
    cells = plan_cells(find_experiment("kerg2020/table-5"), "smoke", tmp_path)
    threads = []

    def learning(config, clock):
        threads.append(torch.get_num_threads())
        return 1.5 / threads[-1]

    before = torch.get_num_threads()
    monkeypatch.setattr(_calibration, "_learning", learning)
    assert gain_of_threads(cells, 2) == 2.0
    assert threads == [1, 2] * 3
    assert torch.get_num_threads() == before


def test_where_nothing_is_trained_threads_gain_nothing(tmp_path):
    assert gain_of_threads(plan_cells(find_experiment("miller2018/figure-1"), "smoke", tmp_path), 2) is None
