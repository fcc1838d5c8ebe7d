"""Environment steps a second of recurrent PPO, end to end, beside sb3-contrib's RecurrentPPO.

``python -m benchmarks.recurrent_ppo`` prints steps per second of processor time and ratios. Both have the same task
(MiniGrid-MemoryS7, the picture as a vector of 147 numbers), the same sizes (one linear map to 64, a core of 64, heads
of 64), 16 copies, 128 steps, four passes of minibatches of 256, and one thread; medians of alternating runs. Both play
in the same environments, once as MiniGrid makes them and once with our quick view. Needs ``pip install sb3-contrib``.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from statistics import median

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


def measure(environment: str) -> dict[str, float]:
    runs = {
        "sb3-contrib RecurrentPPO (LSTM)": lambda: theirs(environment),
        "remanence LSTM": lambda: ours("LSTM", environment),
        "remanence RelLSTM": lambda: ours("RelLSTM", environment),
    }
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(REPEATS):
        for name, run in runs.items():
            began = time.process_time()
            run()
            taken[name].append(time.process_time() - began)
    return {name: UPDATES * COPIES * STEPS / median(seconds) for name, seconds in taken.items()}


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    table = Table(title="environment steps per second of processor time, one thread", box=None)
    for name in ("environment", "learner", "steps a second", "times sb3-contrib"):
        table.add_column(name)
    for environment in ("Flat-v0", "FlatQuick-v0"):
        rates = measure(environment)
        base = rates["sb3-contrib RecurrentPPO (LSTM)"]
        for name, rate in rates.items():
            seen = "quick view" if environment == "FlatQuick-v0" else "MiniGrid's own"
            table.add_row(seen, name, f"{rate:,.0f}", f"{rate / base:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
