"""One copy of an environment: seeded episodes that can be played again to where they stood."""

from __future__ import annotations

import re
import zlib
from typing import Any

import numpy
import torch
from torch import Tensor

from remanence._validate import message
from remanence.tasks._stream import Split, stream

MINIGRID = "MiniGrid-"
VOCABULARY = 258
"""Numbers that words are hashed to: few, and yet no two words of MiniGrid's missions meet."""


def make_environment(name: str) -> Any:
    """Makes a gymnasium environment by its id; those of MiniGrid are registered on the way.

    Args:
        name: such as ``"MiniGrid-MemoryS7-v0"``.

    Raises:
        ImportError: gymnasium or minigrid is missing.
        ValueError: there is no such environment, or a policy cannot act in it.

    Example:
        >>> make_environment("MiniGrid-MemoryS7-v0").action_space.n.item()
        7
    """
    try:
        import gymnasium

        if name.startswith(MINIGRID):
            import minigrid  # noqa: F401 - importing it registers its environments
    except ImportError as error:
        raise ImportError(f"`environment` {name!r} needs {error.name}: pip install 'remanence[rl]'") from error
    try:
        environment = gymnasium.make(name)
    except gymnasium.error.Error as error:
        raise ValueError(
            message("environment", "be the id of a gymnasium environment", repr(name), str(error))
        ) from error
    if not isinstance(environment.action_space, gymnasium.spaces.Discrete):
        got = f"{environment.action_space} in {name}"
        raise ValueError(message("environment", "have a finite number of actions (Discrete)", got))
    observation_shape(environment)
    return environment


def observation_shape(environment: Any, words: bool = False) -> tuple[int, ...]:
    """Shape of what a policy sees: one vector, or the picture in a dictionary with an ``"image"``, as MiniGrid has it.

    Args:
        environment: from :func:`make_environment`.
        words: whether the picture has one more channel with the words of the ``"mission"``, one a cell.

    Example:
        >>> environment = make_environment("MiniGrid-GoToDoor-5x5-v0")
        >>> observation_shape(environment), observation_shape(environment, words=True)
        ((7, 7, 3), (7, 7, 4))
    """
    space = environment.observation_space
    parts = getattr(space, "spaces", {})
    shape = getattr(parts.get("image", space), "shape", None)
    if shape is None or len(shape) not in (1, 3):
        expected = "show a vector or a picture (Box), or a dictionary with an 'image'"
        raise ValueError(message("environment", expected, space))
    if not words:
        return shape
    if "mission" not in parts or len(shape) != 3:
        raise ValueError(message("words", "be False where there is no 'mission' beside an 'image'", space))
    return (*shape[:2], shape[2] + 1)


def word_numbers(text: str) -> list[int]:
    """The words of a text as numbers from 1 to `VOCABULARY`, the same everywhere and for ever.

    Example:
        >>> word_numbers("go to the red door") == word_numbers("Go to the red door!")
        True
    """
    return [1 + zlib.crc32(word.encode()) % VOCABULARY for word in re.findall("[a-z]+", text.lower())]


def longest_episode(environment: Any) -> int | None:
    """Steps after which an episode is ended in any case; None if the environment does not say.

    Example:
        >>> longest_episode(make_environment("MiniGrid-MemoryS7-v0"))
        245
    """
    stated = environment.spec.max_episode_steps if environment.spec else None
    return stated or getattr(environment.unwrapped, "max_steps", None)


class Episode:
    """One copy of an environment. Its episodes follow one another; each starts from a seed of its own.

    An episode is fully told by its number and the actions so far, so that a killed run finds its way back.

    Args:
        environment: from :func:`make_environment`.
        seed: of all its episodes.
        copy: number of this copy; no two share an episode.
        split: of the seeds; those of ``"test"`` never occur in training.
        words: whether the mission is shown, as in :func:`observation_shape`.

    Example:
        >>> episode = Episode(make_environment("MiniGrid-MemoryS7-v0"), seed=0)
        >>> reward, ended = episode.act(2)
        >>> reward, ended, episode.place
        (0.0, False, {'number': 0, 'actions': [2]})
    """

    def __init__(self, environment: Any, seed: int, copy: int = 0, split: Split = "train", words: bool = False) -> None:
        self.environment, self._seed, self._copy, self._words = environment, seed, copy, words
        self._split: Split = split
        self._begin(0)

    @property
    def place(self) -> dict[str, Any]:
        """Where it stands, for a checkpoint."""
        return {"number": self._number, "actions": list(self._actions)}

    def go_to(self, place: dict[str, Any]) -> None:
        """Plays to where another one stood; the same actions have the same consequences."""
        self._begin(place["number"])
        for action in place["actions"]:
            self.act(action)

    def act(self, action: int) -> tuple[float, bool]:
        """Takes one step. An episode that ends is followed by the next, whose first observation is seen at once.

        Returns:
            The reward, and whether the episode has ended, by its own rules or by its limit of steps.
        """
        observation, reward, terminated, truncated, _ = self.environment.step(action)
        self._actions.append(action)
        ended = bool(terminated or truncated)
        if ended:
            self._begin(self._number + 1)
        else:
            self.observation = _numbers(observation, self._words)
        return float(reward), ended

    def _begin(self, number: int) -> None:
        seed = stream(self._split, self._seed, number, salt=f"episode:{self._copy}").initial_seed()
        self._number, self._actions = number, []
        self.observation = _numbers(self.environment.reset(seed=seed)[0], self._words)


def _numbers(observation: Any, words: bool) -> Tensor:
    array = observation["image"] if isinstance(observation, dict) else observation
    seen = torch.from_numpy(numpy.asarray(array, dtype=numpy.float32).copy())
    if not words:
        return seen
    numbers = word_numbers(observation["mission"])
    if len(numbers) > seen[..., 0].numel():
        raise ValueError(message("mission", f"have at most {seen[..., 0].numel()} words", repr(observation["mission"])))
    channel = torch.zeros(seen[..., 0].numel())
    channel[: len(numbers)] = torch.tensor(numbers, dtype=torch.float32)
    return torch.cat([seen, channel.view(*seen.shape[:2], 1)], dim=-1)
