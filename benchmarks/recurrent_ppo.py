"""Environment steps a second of recurrent PPO, end to end, beside sb3-contrib's RecurrentPPO.

``python -m benchmarks.recurrent_ppo`` prints steps per second, of processor time and of the clock, and ratios. Both
have the same task (MiniGrid-MemoryS7, the picture as a vector of 147 numbers), the same sizes (one linear map to 64,
a core of 64, heads of 64), 16 copies, 128 steps, four passes of minibatches of 256, and one thread; medians of
alternating runs. Both play in the same environments, once as MiniGrid makes them and once with our quick view; the
third part is what users get, ours with the quick view and theirs without. Needs ``pip install sb3-contrib``.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import gymnasium
import minigrid  # noqa: F401 - importing it registers its environments
import numpy
import torch
from rich.console import Console
from rich.table import Table

from remanence.rl import PolicyConfig, PPOConfig, train_policy
from remanence.rl._minigrid import see_quickly
from remanence.train import ModelConfig

COPIES = 16
STEPS = 128
UPDATES = 3
REPEATS = 3


class Flat(gymnasium.ObservationWrapper):
    """MiniGrid's picture as one vector."""

    def __init__(self, quick: bool) -> None:
        environment = gymnasium.make("MiniGrid-MemoryS7-v0")
        if quick:
            see_quickly(environment)
        super().__init__(environment)
        self.observation_space = gymnasium.spaces.Box(0.0, 255.0, (147,), numpy.float32)

    def observation(self, observation: dict[str, numpy.ndarray]) -> numpy.ndarray:
        return observation["image"].astype(numpy.float32).flatten()


for name, quick in (("Flat-v0", False), ("FlatQuick-v0", True)):
    gymnasium.register(name, entry_point=Flat, kwargs={"quick": quick}, max_episode_steps=245, disable_env_checker=True)


def ours(core: str, environment: str) -> None:
    options = {"recent": 5, "relevant": 5} if core == "RelLSTM" else {}
    ppo = PPOConfig(steps=STEPS, recurrence=STEPS, epochs=4, batch=256)
    config = PolicyConfig(environment, ModelConfig(core, options), ppo, frames=UPDATES * COPIES * STEPS, copies=COPIES)
    with tempfile.TemporaryDirectory() as folder:
        train_policy(config, Path(folder) / "run")


def theirs(environment: str) -> None:
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    copies = DummyVecEnv([lambda: gymnasium.make(environment) for _ in range(COPIES)])
    net = {
        "net_arch": {"pi": [64], "vf": [64]},
        "lstm_hidden_size": 64,
        "shared_lstm": True,
        "enable_critic_lstm": False,
    }
    model = RecurrentPPO(
        "MlpLstmPolicy", copies, n_steps=STEPS, batch_size=256, n_epochs=4, policy_kwargs=net, device="cpu"
    )
    model.learn(UPDATES * COPIES * STEPS)


THEIRS = "sb3-contrib RecurrentPPO (LSTM)"
PLAIN = "Flat-v0"
QUICK = "FlatQuick-v0"


class Rate(NamedTuple):
    """Environment steps per second."""

    processor: float
    clock: float


def timed(run: Callable[[], None]) -> tuple[float, float]:
    """Seconds of processor time, and of the clock."""
    clock, processor = time.perf_counter(), time.process_time()
    run()
    return time.process_time() - processor, time.perf_counter() - clock


def measure() -> dict[tuple[str, str], Rate]:
    """Medians over alternating runs, by environment and learner."""
    runs: dict[tuple[str, str], Callable[[], None]] = {}
    for environment in (PLAIN, QUICK):
        runs[environment, THEIRS] = partial(theirs, environment)
        for core in ("LSTM", "RelLSTM"):
            runs[environment, f"remanence {core}"] = partial(ours, core, environment)
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {key: [] for key in runs}
    for _ in range(REPEATS):
        for key, run in runs.items():
            taken[key].append(timed(run))
    steps = UPDATES * COPIES * STEPS
    return {key: Rate(*(steps / median(times) for times in zip(*found, strict=True))) for key, found in taken.items()}


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rates = measure()
    table = Table(title="environment steps per second, one thread; times sb3-contrib in brackets", box=None)
    for name in ("observations", "learner", "processor time", "clock"):
        table.add_column(name)
    parts = (("MiniGrid's own", PLAIN, PLAIN), ("quick view", QUICK, QUICK), ("as users get them", PLAIN, QUICK))
    for words, their_place, our_place in parts:
        base = rates[their_place, THEIRS]
        learners = {(their_place, THEIRS): THEIRS} | {key: key[1] for key in rates if key[0] == our_place}
        for key, learner in learners.items():
            if learner == THEIRS and key[0] != their_place:
                continue
            shown = [f"{rate:,.0f} ({rate / first:.2f})" for rate, first in zip(rates[key], base, strict=True)]
            table.add_row(words, learner, *shown)
    Console().print(table)


if __name__ == "__main__":
    main()
