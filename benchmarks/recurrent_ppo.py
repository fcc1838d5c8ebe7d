"""Environment steps a second of recurrent PPO, end to end, beside sb3-contrib's RecurrentPPO.

``python -m benchmarks.recurrent_ppo`` prints steps per second, of processor time and of the clock, and ratios. Both
have the same task (MiniGrid-MemoryS7, the picture as a vector of 147 numbers), the same sizes (one linear map to 64,
a core of 64, heads of 64), 16 copies, 128 steps, four passes of minibatches of 256, and one thread; medians of
alternating runs. Both play in the same environments, once as MiniGrid makes them and once with our quick view; the
third part is what users get, ours with the quick view and theirs without. The last column is the share of processor
time that the environment takes: a learner that costs nothing would be faster by its inverse. Needs ``pip install
sb3-contrib``.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

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
    """MiniGrid's picture as one vector; it counts the processor time that all its copies take."""

    spent = 0.0

    def __init__(self, quick: bool) -> None:
        environment = gymnasium.make("MiniGrid-MemoryS7-v0")
        if quick:
            see_quickly(environment)
        super().__init__(environment)
        self.observation_space = gymnasium.spaces.Box(0.0, 255.0, (147,), numpy.float32)

    def observation(self, observation: dict[str, numpy.ndarray]) -> numpy.ndarray:
        return observation["image"].astype(numpy.float32).flatten()

    def step(self, action: Any) -> Any:
        with counted():
            return super().step(action)

    def reset(self, **options: Any) -> Any:
        with counted():
            return super().reset(**options)


@contextmanager
def counted() -> Iterator[None]:
    """Adds processor time to what environments took."""
    began = time.process_time()
    yield
    Flat.spent += time.process_time() - began


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


class Taken(NamedTuple):
    """Seconds of a run."""

    processor: float
    clock: float
    environment: float
    """Processor time in the environments."""


def timed(run: Callable[[], None]) -> Taken:
    """How long a run takes."""
    Flat.spent = 0.0
    clock, processor = time.perf_counter(), time.process_time()
    run()
    return Taken(time.process_time() - processor, time.perf_counter() - clock, Flat.spent)


def measure() -> dict[tuple[str, str], Taken]:
    """Medians over alternating runs, by environment and learner."""
    runs: dict[tuple[str, str], Callable[[], None]] = {}
    for environment in (PLAIN, QUICK):
        runs[environment, THEIRS] = partial(theirs, environment)
        for core in ("LSTM", "RelLSTM"):
            runs[environment, f"remanence {core}"] = partial(ours, core, environment)
    taken: dict[tuple[str, str], list[Taken]] = {key: [] for key in runs}
    for _ in range(REPEATS):
        for key, run in runs.items():
            taken[key].append(timed(run))
    return {key: Taken(*map(median, zip(*found, strict=True))) for key, found in taken.items()}


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    taken = measure()
    steps = UPDATES * COPIES * STEPS
    table = Table(title="environment steps per second, one thread; times sb3-contrib in brackets", box=None)
    for name in ("observations", "learner", "processor time", "clock", "in the environment"):
        table.add_column(name)
    parts = (("MiniGrid's own", PLAIN, PLAIN), ("quick view", QUICK, QUICK), ("as users get them", PLAIN, QUICK))
    for words, their_place, our_place in parts:
        base = taken[their_place, THEIRS]
        learners = {(their_place, THEIRS): THEIRS} | {key: key[1] for key in taken if key[0] == our_place}
        for key, learner in learners.items():
            if learner == THEIRS and key[0] != their_place:
                continue
            own = taken[key]
            processor = f"{steps / own.processor:,.0f} ({base.processor / own.processor:.2f})"
            clock = f"{steps / own.clock:,.0f} ({base.clock / own.clock:.2f})"
            table.add_row(words, learner, processor, clock, f"{own.environment / own.processor:.0%}")
    Console().print(table)


if __name__ == "__main__":
    main()
