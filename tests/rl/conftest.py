"""Environments whose answers are known."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy
import pytest

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


class Drift(gymnasium.Env):
    """Shows random numbers, always in the same array, for 2 to 7 steps; each action is paid differently."""

    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (3,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left, self.seen = int(self.np_random.integers(2, 8)), numpy.zeros(3, dtype=numpy.float32)
        return self._next(), {}

    def step(self, action):
        self.left -= 1
        return self._next(), float(action * self.seen[0]), self.left == 0, False, {}

    def _next(self):
        self.seen[:] = self.np_random.normal(size=3)
        return self.seen


class Told(gymnasium.Env):
    """Says which of two buttons to press, and pays 1 for it; the picture is always empty. One step."""

    observation_space = gymnasium.spaces.Dict(
        image=gymnasium.spaces.Box(0, 255, (7, 7, 3), numpy.uint8), mission=gymnasium.spaces.Text(40)
    )
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.button = int(self.np_random.integers(2))
        return self._seen(), {}

    def step(self, action):
        return self._seen(), float(action == self.button), True, False, {}

    def _seen(self):
        words = ("press the red button", "press the blue one")[self.button]
        return {"image": numpy.zeros((7, 7, 3), dtype=numpy.uint8), "mission": words}


@pytest.fixture(scope="session")
def recall() -> str:
    """The id of the first environment."""
    return _registered("Recall-v0", entry_point=Recall, max_episode_steps=STEPS)


@pytest.fixture(scope="session")
def drift() -> str:
    """The id of the second one; gymnasium would warn of the array."""
    return _registered("Drift-v0", entry_point=Drift, disable_env_checker=True)


@pytest.fixture(scope="session")
def told() -> str:
    """The id of the third one."""
    return _registered("Told-v0", entry_point=Told, disable_env_checker=True)


def _registered(name: str, **options: Any) -> str:
    if name not in gymnasium.registry:
        gymnasium.register(name, **options)
    return name
