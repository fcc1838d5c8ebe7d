"""An environment whose answer is known: what was shown first must be done last."""

from __future__ import annotations

import gymnasium
import numpy
import pytest

NAME = "Recall-v0"
STEPS = 6


class Recall(gymnasium.Env):
    """Shows a cue of two at the first step, then nothing; pays 1 for doing it at the last. Blind play earns 1/2."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (3,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cue, self.step_number = int(self.np_random.integers(2)), 0
        return self._seen(), {}

    def step(self, action):
        self.step_number += 1
        last = self.step_number == STEPS
        return self._seen(), float(last and action == self.cue), last, False, {}

    def _seen(self):
        seen = numpy.zeros(3, dtype=numpy.float32)
        if self.step_number == 0:
            seen[self.cue] = 1
        seen[2] = self.step_number == STEPS - 1
        return seen


@pytest.fixture(scope="session")
def recall() -> str:
    """The id of the environment."""
    if NAME not in gymnasium.registry:
        gymnasium.register(NAME, entry_point=Recall, max_episode_steps=STEPS)
    return NAME
