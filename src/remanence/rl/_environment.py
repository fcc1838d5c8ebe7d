"""One copy of an environment: seeded episodes that can be replayed up to where they were."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy
from torch import Tensor

from remanence._validate import message
from remanence.rl._actions import GivenAction, actions_of
from remanence.rl._minigrid import see_quickly
from remanence.rl._observations import Field, Observation, Shown, fields_of, read
from remanence.runs import Settings, Values
from remanence.tasks import Split, stream

if TYPE_CHECKING:  # gymnasium is an extra
    from gymnasium import Env

MINIGRID = ("MiniGrid-", "BabyAI-")
"""How the ids of the package minigrid begin."""
OWN = "For one of your own, `imports` names the module or file that registers it"


def environment_id(name: object) -> str:
    """Checks the id of an environment; an environment itself is none, because a run needs several, and later again.

    Example:
        >>> environment_id("CartPole-v1")
        'CartPole-v1'
    """
    if not isinstance(name, str):
        raise TypeError(message("environment", "be the id of a gymnasium environment", repr(name), OWN))
    return name


def make_environment(name: str, options: Settings | None = None) -> Env:
    """Makes a gymnasium environment by its id; those of MiniGrid and POPGym, and our T-maze, are registered on the way.

    Args:
        name: such as ``"MiniGrid-MemoryS7-v0"``, ``"popgym-RepeatFirstEasy-v0"`` or ``"remanence/TMaze-v0"``.
        options: options of the environment, such as the ``length`` of a T-maze.

    Raises:
        ImportError: gymnasium or minigrid is missing.
        TypeError: `name` is no id.
        ValueError: there is no such environment, or a policy cannot act in it.

    Example:
        >>> make_environment("MiniGrid-MemoryS7-v0").action_space.n.item()
        7
    """
    environment_id(name)
    try:
        import gymnasium

        if name.startswith(MINIGRID):
            import minigrid  # noqa: F401 - importing it registers its environments
        if name.startswith("popgym-"):
            import popgym  # type: ignore[import-not-found] # noqa: F401
        if name.startswith("remanence/"):
            register_tmaze()
    except ImportError as error:
        raise ImportError(f"`environment` {name!r} needs {error.name}: pip install {_package(error.name)}") from error
    try:
        environment = gymnasium.make(name, **(options or {}))
    except gymnasium.error.Error as error:
        hint = str(error)
        if isinstance(error, gymnasium.error.UnregisteredEnv):
            hint += f" {OWN}"
        raise ValueError(message("environment", "be the id of a gymnasium environment", repr(name), hint)) from error
    actions_of(environment.action_space)
    fields_of(environment.observation_space)
    if name.startswith(MINIGRID):
        see_quickly(environment)
    return environment


def register_tmaze() -> None:
    """Registers ``remanence/TMaze-v0`` with Gymnasium, for your own loops: a corridor of any ``length``.

    Example:
        >>> import gymnasium
        >>> register_tmaze()
        >>> gymnasium.make("remanence/TMaze-v0", length=50).reset(seed=0)[0].shape
        (3,)
    """
    from remanence.rl._tmaze import register  # gymnasium is an extra

    register()


def _package(missing: str | None) -> str:
    if missing == "popgym":
        return "popgym"
    return "'remanence[rl]'"


def observed(environment: Env, words: bool = False, only: Sequence[str] = ()) -> tuple[Field, ...]:
    """What a policy sees of an environment: all fields, but of MiniGrid's observations the image alone.

    Args:
        environment: from :func:`make_environment`.
        words: whether it also reads texts, such as MiniGrid's ``"mission"``.
        only: names of the fields to take; by default as above.

    Example:
        >>> environment = make_environment("MiniGrid-GoToDoor-5x5-v0")
        >>> [field.name for field in observed(environment, words=True)]
        ['image', 'mission']
    """
    if not only and environment.spec and environment.spec.id.startswith(MINIGRID):
        only = ("image", "mission")
    return fields_of(environment.observation_space, words, only)


def longest_episode(environment: Env) -> int | None:
    """The time limit of an episode in steps; None if the environment does not state one.

    Example:
        >>> longest_episode(make_environment("MiniGrid-MemoryS7-v0"))
        245
    """
    if environment.spec and environment.spec.max_episode_steps:
        return environment.spec.max_episode_steps
    return getattr(environment, "_max_episode_steps", None) or getattr(environment.unwrapped, "max_steps", None)


class Episode:
    """One copy of an environment. Its episodes follow one another; each has its own seed.

    An episode is fully determined by its number and its actions so far, so a killed run can return to it.

    Args:
        environment: from :func:`make_environment`.
        seed: seed for all its episodes.
        copy: number of this copy; no two share an episode.
        split: which seeds; those of ``"test"`` never occur in training.
        fields: what is seen of an observation; None is what :func:`observed` says.

    Example:
        >>> episode = Episode(make_environment("MiniGrid-MemoryS7-v0"), seed=0)
        >>> reward, ended = episode.act(2)
        >>> reward, ended, episode.place
        (0.0, False, {'number': 0, 'actions': [2]})
    """

    shown: Shown
    """What the environment shows now, as it gives it; valid until the next step."""
    cut_off: Observation | None
    """What was seen last, if the previous step ended the episode at its time limit; else None."""

    def __init__(
        self,
        environment: Env,
        seed: int,
        copy: int = 0,
        split: Split = "train",
        fields: Sequence[Field] | None = None,
    ) -> None:
        self.environment = environment
        if fields is None:
            fields = observed(environment)
        self.fields = fields
        self._seed = seed
        self._copy = copy
        self._split: Split = split
        self._begin(0)
        read(self.fields, self.shown)  # fails here if a policy cannot read it

    @property
    def place(self) -> Values:
        """Where it is, for a checkpoint."""
        return {"number": self._number, "actions": list(self._actions)}

    def go_to(self, place: Values) -> None:
        """Replays up to where another one was; the same actions have the same results."""
        self._begin(place["number"])
        for action in place["actions"]:
            self.act(action)

    def act(self, action: GivenAction) -> tuple[float, bool]:
        """Takes one step. An episode that ends is followed by the next, whose first observation is seen at once.

        Returns:
            The reward, and whether the episode has ended, by its own rules or at its time limit.
        """
        given = action
        if isinstance(action, list):
            given = numpy.asarray(action, dtype=self.environment.action_space.dtype)
        observation, reward, terminated, truncated, _ = self.environment.step(given)
        self._actions.append(action)
        self.cut_off = None
        if not (terminated or truncated):
            self.shown = observation
            return float(reward), False
        number = self._number + 1
        if terminated:
            self._begin(number)
            return float(reward), True
        last = read(self.fields, observation)  # the next episode may write over it
        self._begin(number)
        self.cut_off = last
        return float(reward), True

    @property
    def observation(self) -> Observation:
        """What is seen now, as a policy takes it."""
        return read(self.fields, self.shown)

    @property
    def checksum(self) -> int:
        """Of what is seen now: the same again if the environment repeats an episode by its seed and actions."""
        seen = self.observation
        if isinstance(seen, Tensor):
            return zlib.crc32(seen.numpy().tobytes())
        return zlib.crc32(b"".join(part.numpy().tobytes() for part in seen.values()))

    def _begin(self, number: int) -> None:
        seed = stream(self._split, self._seed, number, salt=f"episode:{self._copy}").initial_seed()
        self._number = number
        self._actions: list[GivenAction] = []
        self.cut_off = None
        self.shown = self.environment.reset(seed=seed)[0]
