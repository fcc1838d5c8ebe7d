"""Copies of an environment side by side: our own seeded episodes, or anybody's vector environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy
import torch
from torch import Tensor

from remanence._validate import message, one_of
from remanence.rl._actions import Actions, actions_of
from remanence.rl._environment import Episode
from remanence.rl._observations import Field, Observation, Shown, each_field, fields_of, read, read_all, stack
from remanence.runs import Values

if TYPE_CHECKING:  # gymnasium is an extra
    from gymnasium.vector import VectorEnv


class Happened(NamedTuple):
    """What one step in all copies led to, ``(B,)`` each.

    Args:
        rewards: rewards for the actions.
        ends: True where the episode ended.
        cut_off: True where only the time limit ended it.
        last_seen: ``(B, ...)``, the last observation where an episode was cut off; None if none was.
        counts: False where the step only began the next episode, and the action was ignored; None if all count.

    Example:
        >>> Happened._fields[:2]
        ('rewards', 'ends')
    """

    rewards: Tensor
    ends: Tensor
    cut_off: Tensor
    last_seen: Observation | None
    counts: Tensor | None = None


class Copies(Protocol):
    """What a :class:`Player` asks of the copies that it plays in."""

    def __len__(self) -> int:
        """How many there are, B."""
        ...

    def seen(self) -> Observation:
        """The present observations, ``(B, ...)``."""
        ...

    def act(self, actions: Tensor, meaning: Actions) -> Happened:
        """Takes one step in every copy; the next observation of an ended one is the first of its next episode."""
        ...


class EpisodeCopies:
    """Seeded episodes, one copy each, stepped one after another.

    Example:
        >>> from remanence.rl._environment import make_environment
        >>> copies = EpisodeCopies([Episode(make_environment("MiniGrid-MemoryS7-v0"), seed=0)])
        >>> copies.seen().shape
        torch.Size([1, 7, 7, 3])
    """

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self.episodes = episodes

    def __len__(self) -> int:
        return len(self.episodes)

    def seen(self) -> Observation:
        """The present observations, ``(B, ...)``."""
        return read_all(self.episodes[0].fields, [episode.shown for episode in self.episodes])

    def act(self, actions: Tensor, meaning: Actions) -> Happened:
        """Takes one step in every copy."""
        given = meaning.for_environments(actions)
        made = [episode.act(action) for episode, action in zip(self.episodes, given, strict=True)]
        rewards, ends = (torch.tensor(facts) for facts in zip(*made, strict=True))
        left = [episode.cut_off for episode in self.episodes]
        if all(seen is None for seen in left):
            return Happened(rewards, ends, torch.zeros_like(ends), None)
        cut_off = torch.tensor([seen is not None for seen in left])
        return Happened(rewards, ends, cut_off, stack([_last_seen(episode) for episode in self.episodes]))


def _last_seen(episode: Episode) -> Observation:
    """What a policy saw last of an episode that was cut off; where none was, what it sees."""
    if episode.cut_off is None:
        return episode.observation
    return episode.cut_off


class VectorCopies:
    """A Gymnasium vector environment in any of its reset modes.

    In the mode ``NEXT_STEP`` the step after the end only begins the next episode; such steps do not count, and
    :func:`ppo_losses` leaves them out. In ``SAME_STEP`` and ``DISABLED`` every step counts.

    Args:
        environment: from ``gymnasium.make_vec``.
        words: whether texts are read.
        only: names of the fields to take; empty takes all.
        seed: seed for the first episodes; None draws one.

    Example:
        >>> import gymnasium
        >>> copies = VectorCopies(gymnasium.make_vec("CartPole-v1", 3), seed=0)
        >>> len(copies), copies.seen().shape
        (3, torch.Size([3, 4]))
    """

    def __init__(
        self, environment: VectorEnv, words: bool = False, only: Sequence[str] = (), seed: int | None = None
    ) -> None:
        mode = environment.metadata.get("autoreset_mode", "NextStep")
        name = str(getattr(mode, "value", mode))
        self.mode = one_of("autoreset_mode", name, ("NextStep", "SameStep", "Disabled"))
        self.environment = environment
        self.fields: tuple[Field, ...] = fields_of(environment.single_observation_space, words, only)
        actions_of(environment.single_action_space)
        self.beginning = torch.zeros(len(self), dtype=torch.bool)
        self._seen = self._read(environment.reset(seed=seed)[0])

    def __len__(self) -> int:
        return int(self.environment.num_envs)

    def seen(self) -> Observation:
        """The present observations, ``(B, ...)``."""
        return self._seen

    def act(self, actions: Tensor, meaning: Actions) -> Happened:
        """Takes one step in every copy."""
        space = self.environment.action_space
        given = numpy.array(meaning.for_environments(actions), dtype=space.dtype)
        observations, rewards, terminated, truncated, facts = self.environment.step(given.reshape(space.shape))
        ends = torch.as_tensor(terminated | truncated)
        cut_off = torch.as_tensor(truncated & ~terminated)
        seen = self._read(observations)
        rewards = torch.as_tensor(rewards, dtype=torch.float32)
        if self.mode == "NextStep":
            # Such an environment begins anew in the step after an end: its action and reward there mean nothing.
            began = self.beginning
            self.beginning = ends
            self._seen = seen
            return Happened(rewards, ends | began, cut_off & ~began, seen, ~began)
        last = self._last(seen, facts, ends)
        if self.mode == "Disabled" and bool(ends.any()):
            seen = self._read(self.environment.reset(options={"reset_mask": ends.numpy()})[0])
        self._seen = seen
        return Happened(rewards, ends, cut_off, last)

    def _last(self, seen: Observation, facts: Values, ends: Tensor) -> Observation:
        if self.mode == "Disabled" or not bool(ends.any()):
            return seen
        if "final_obs" not in facts:
            raise ValueError(message("environment", "say `final_obs` where it resets in the same step", sorted(facts)))
        rows = [each_field(lambda part, row=row: part[row], seen) for row in range(len(self))]
        for row in ends.nonzero().flatten().tolist():
            rows[row] = read(self.fields, facts["final_obs"][row])
        return stack(rows)

    def _read(self, observations: Shown) -> Observation:
        from gymnasium.vector.utils import iterate

        return read_all(self.fields, list(iterate(self.environment.observation_space, observations)))
