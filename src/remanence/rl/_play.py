"""How well a policy does: whole episodes, none counted twice and none cut short by shorter ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, stdev

import torch

from remanence._validate import positive_int
from remanence.nn import evaluating
from remanence.rl._environment import Episode, make_environment, observed
from remanence.rl._observations import each_field, read_all
from remanence.rl._policy import MemoryPolicy
from remanence.runs import Settings
from remanence.tasks import stream


@dataclass(frozen=True)
class EpisodeResults:
    """Results of some episodes.

    Args:
        returns: sum of the rewards in each episode.
        lengths: steps in each episode.

    Example:
        >>> EpisodeResults([1.0, 0.0], [10, 20]).mean
        0.5
    """

    returns: list[float]
    lengths: list[int]

    @property
    def mean(self) -> float:
        """Mean return."""
        return fmean(self.returns)

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        count = len(self.returns)
        if count < 2:
            return float("nan")
        return stdev(self.returns) / count**0.5


@torch.no_grad()
def evaluate_policy(
    policy: MemoryPolicy,
    environment: str,
    episodes: int = 100,
    *,
    seed: int = 0,
    likeliest: bool = False,
    options: Settings | None = None,
    tell: Callable[[int], None] | None = None,
) -> EpisodeResults:
    """Plays each episode in its own copy, all in parallel, until the last has ended.

    Args:
        policy: who plays.
        environment: id; it may differ from the one it was trained in.
        episodes: how many; their seeds never occur in training.
        seed: seed for episodes and actions.
        likeliest: take the likeliest action instead of drawing.
        options: options of the environment, such as the ``length`` of a T-maze.
        tell: called after every step with how many have ended.

    Example:
        >>> policy = MemoryPolicy((7, 7, 3), 7)
        >>> len(evaluate_policy(policy, "MiniGrid-Fetch-5x5-N2-v0", 3).returns)
        3
    """
    count = positive_int("episodes", episodes)
    generator = stream("test", seed, salt="play")
    names = tuple(field.name for field in policy.fields if field.name)
    copies = []
    for copy in range(count):
        there = make_environment(environment, options)
        copies.append(Episode(there, seed, copy, "test", observed(there, policy.words, names)))
    returns = [0.0] * count
    lengths = [0] * count
    alive = list(range(count))
    state = policy.core.initial_state(count)
    begins = torch.ones(1, count, dtype=torch.bool)
    with evaluating(policy):
        while alive:
            seen = read_all(copies[0].fields, [copies[copy].shown for copy in alive])
            given, _, state = policy(each_field(lambda part: part[None], seen), state, reset=begins)
            actions = policy.actions.choose(given[0], likeliest, generator)
            stays = []
            for row, (copy, action) in enumerate(zip(alive, policy.actions.for_environments(actions), strict=True)):
                reward, ended = copies[copy].act(action)
                returns[copy] += reward
                lengths[copy] += 1
                if not ended:
                    stays.append(row)
            if len(stays) < len(alive):
                alive = [alive[row] for row in stays]
                state = state.select(stays)
            begins = torch.zeros(1, len(alive), dtype=torch.bool)
            if tell is not None:
                tell(count - len(alive))
    return EpisodeResults(returns, lengths)
