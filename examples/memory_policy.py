"""An environment of your own that cannot be played without a memory, and a policy that learns it.

Run it: python examples/memory_policy.py
"""

import argparse
import tempfile
from pathlib import Path

import gymnasium
import numpy

from remanence.rl import PolicyConfig, PPOConfig, evaluate_policy, load_policy, train_policy
from remanence.train import ModelConfig


class Recall(gymnasium.Env):
    """Shows one of two lamps, then a few dark steps; who then presses the right button gets 1."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (3,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, wait: int = 10):
        self.wait = wait

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.lamp, self.step_number = int(self.np_random.integers(2)), 0
        return self.seen(), {}

    def step(self, action):
        self.step_number += 1
        ended = self.step_number > self.wait
        return self.seen(), float(ended and action == self.lamp), ended, False, {}

    def seen(self):
        first, last = self.step_number == 0, self.step_number == self.wait
        return numpy.array([first and self.lamp == 0, first and self.lamp == 1, last], dtype=numpy.float32)


def main(model: str = "RelLSTM", frames: int = 30_000) -> float:
    gymnasium.register("Recall-example-v0", entry_point=Recall, max_episode_steps=100)
    config = PolicyConfig(
        environment="Recall-example-v0",
        model=ModelConfig(model, {"hidden_size": 32}),
        ppo=PPOConfig(steps=22, recurrence=22, batch=176, learning_rate=3e-3),
        copies=32,
        frames=frames,
    )
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train_policy(config, run, lambda line: show(line) if line["kind"] == "train" else None)
        score = evaluate_policy(load_policy(run)[0], "Recall-example-v0", episodes=100)
    print(f"{model}: {100 * score.mean:.0f} of 100 fresh episodes won; without a memory it would be 50")
    return score.mean


def show(line):
    if line["update"] % 10 == 0 or line["update"] == line["budget"]:
        print(f"{line['frames']:6d} frames  mean return {line['mean_return'] or 0.0:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="RelLSTM", help="a recurrent layer of remanence.nn")
    parser.add_argument("--frames", type=int, default=30_000, help="steps to play")
    arguments = parser.parse_args()
    main(arguments.model, arguments.frames)
