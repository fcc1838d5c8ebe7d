"""Environment steps a second of recurrent PPO, end to end, beside sb3-contrib's RecurrentPPO.

``python -m benchmarks.recurrent_ppo`` prints steps per second, of processor time and of the clock, and ratios. Both
have the same task (MiniGrid-MemoryS7, the picture as a vector of 147 numbers), the same sizes (one linear map to 64,
a core of 64, heads of 64), 16 copies, 128 steps, four passes of minibatches of 256, and one thread; medians of
alternating runs. Both play in the same environments, once as MiniGrid makes them and once with our quick view; the
third part is what users get, ours with the quick view and theirs without. The last column is the share of processor
time that the environment takes, from one more run: to ask for the time at every step takes time too. A learner that
costs nothing would be faster by the inverse of that share. Needs ``pip install sb3-contrib``.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeAlias

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
UPDATES = 5
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


class Watched(Flat):
    """It counts the processor time that all its copies take."""

    spent = 0.0

    def step(self, action: Any) -> Any:
        return self._counted(super().step, action)

    def reset(self, **options: Any) -> Any:
        return self._counted(super().reset, **options)

    def _counted(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        began = time.process_time()
        result = call(*args, **options)
        Watched.spent += time.process_time() - began
        return result


PLAIN = "Flat-v0"
QUICK = "FlatQuick-v0"
WATCHED = {PLAIN: "FlatWatched-v0", QUICK: "FlatQuickWatched-v0"}


def register(name: str, kind: Callable[..., Flat], quick: bool) -> None:
    gymnasium.register(name, entry_point=kind, kwargs={"quick": quick}, max_episode_steps=245, disable_env_checker=True)


for name, quick in ((PLAIN, False), (QUICK, True)):
    register(name, Flat, quick)
    register(WATCHED[name], Watched, quick)


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
LEARNERS: dict[str, Callable[[str], None]] = {
    THEIRS: theirs,
    "remanence LSTM": partial(ours, "LSTM"),
    "remanence RelLSTM": partial(ours, "RelLSTM"),
}


class Taken(NamedTuple):
    """Seconds of a run."""

    processor: float
    clock: float


def timed(run: Callable[[], None]) -> Taken:
    """How long a run takes."""
    clock = time.perf_counter()
    processor = time.process_time()
    run()
    return Taken(time.process_time() - processor, time.perf_counter() - clock)


def environment_share(learner: Callable[[str], None], environment: str) -> float:
    """The share of a run's processor time that its environments take."""
    Watched.spent = 0.0
    taken = timed(partial(learner, WATCHED[environment]))
    return Watched.spent / taken.processor


Place: TypeAlias = tuple[str, str]
"""An environment, and who learns there."""


def measure() -> dict[Place, Taken]:
    """Medians over alternating runs, by environment and learner."""
    places = [(environment, name) for environment in (PLAIN, QUICK) for name in LEARNERS]
    taken: dict[Place, list[Taken]] = {place: [] for place in places}
    for _ in range(REPEATS):
        for environment, name in places:
            taken[environment, name].append(timed(partial(LEARNERS[name], environment)))
    return {place: Taken(*map(median, zip(*found, strict=True))) for place, found in taken.items()}


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    taken = measure()
    shares = {(environment, name): environment_share(LEARNERS[name], environment) for environment, name in taken}
    steps = UPDATES * COPIES * STEPS
    table = Table(title="environment steps per second, one thread; times sb3-contrib in brackets", box=None)
    for column in ("observations", "learner", "processor time", "clock", "in the environment"):
        table.add_column(column)
    parts = (("MiniGrid's own", PLAIN, PLAIN), ("quick view", QUICK, QUICK), ("as users get them", PLAIN, QUICK))
    for words, their_place, our_place in parts:
        base = taken[their_place, THEIRS]
        for name in LEARNERS:
            place = (their_place if name == THEIRS else our_place, name)
            own = taken[place]
            processor = f"{steps / own.processor:,.0f} ({base.processor / own.processor:.2f})"
            clock = f"{steps / own.clock:,.0f} ({base.clock / own.clock:.2f})"
            table.add_row(words, name, processor, clock, f"{shares[place]:.0%}")
    Console().print(table)


if __name__ == "__main__":
    main()
