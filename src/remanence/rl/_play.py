"""How well a policy does: whole episodes, none counted twice and none cut short by those that end sooner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, stdev

import torch
from torch import Tensor

from remanence._validate import positive_int
from remanence.rl._environment import Episode, make_environment
from remanence.rl._policy import MemoryPolicy
from remanence.tasks._stream import stream


@dataclass(frozen=True)
class Score:
    """What came of some episodes.

    Args:
        returns: sum of the rewards of each.
        lengths: steps of each.

    Example:
        >>> Score([1.0, 0.0], [10, 20]).mean
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
        return stdev(self.returns) / count**0.5 if count > 1 else float("nan")


@torch.no_grad()
def evaluate_policy(
    policy: MemoryPolicy,
    environment: str,
    episodes: int = 100,
    *,
    seed: int = 0,
    likeliest: bool = False,
    tell: Callable[[int], None] | None = None,
) -> Score:
    """Plays each episode in a copy of its own, all side by side, until the last has ended.

    Args:
        policy: who plays.
        environment: id, also of another one than it has learnt in.
        episodes: how many; their seeds never occur in training.
        seed: of episodes and actions.
        likeliest: take the likeliest action instead of drawing.
        tell: is told how many have ended, after every step.

    Example:
        >>> policy = MemoryPolicy((7, 7, 3), 7)
        >>> len(evaluate_policy(policy, "MiniGrid-Fetch-5x5-N2-v0", 3).returns)
        3
    """
    count, generator = positive_int("episodes", episodes), stream("test", seed, salt="play")
    copies = [Episode(make_environment(environment), seed, copy, "test", policy.words) for copy in range(count)]
    returns, lengths, alive = [0.0] * count, [0] * count, list(range(count))
    state, begins = policy.core.initial_state(count), torch.ones(1, count, dtype=torch.bool)
    while alive:
        seen = torch.stack([copies[copy].observation for copy in alive])
        logits, _, state = policy(seen[None], state, reset=begins)
        actions = _actions(logits[0], likeliest, generator)
        stays = []
        for row, (copy, action) in enumerate(zip(alive, actions, strict=True)):
            reward, ended = copies[copy].act(action)
            returns[copy] += reward
            lengths[copy] += 1
            if not ended:
                stays.append(row)
        if len(stays) < len(alive):
            alive, state = [alive[row] for row in stays], state.select(stays)
        begins = torch.zeros(1, len(alive), dtype=torch.bool)
        if tell is not None:
            tell(count - len(alive))
    return Score(returns, lengths)


def _actions(logits: Tensor, likeliest: bool, generator: torch.Generator) -> list[int]:
    if likeliest:
        return logits.argmax(-1).tolist()
    return torch.multinomial(logits.softmax(-1), 1, generator=generator).flatten().tolist()
