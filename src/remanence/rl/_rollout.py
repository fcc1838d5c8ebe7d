"""What a policy experienced between two updates, and how it got there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from remanence.nn import State
from remanence.rl._environment import Episode
from remanence.rl._policy import MemoryPolicy


class Rollout(NamedTuple):
    """T steps of B copies of an environment, ``(T, B)`` unless something else is said.

    Args:
        observations: ``(T, B, ...)``, what was seen before each action.
        begins: True where an episode begins with this observation.
        actions: what was done.
        log_chances: logarithm of the chance that it had.
        values: what the critic expected.
        rewards: what came of it.
        ends: True where the episode ended with this action.
        last_values: ``(B,)``, what the critic expects after the last step.
        states: of the core, before each piece of ``T / len(states)`` steps.
        returns: of the episodes that ended, in the order of time.
        lengths: of these episodes.

    Example:
        >>> Rollout._fields[0]
        'observations'
    """

    observations: Tensor
    begins: Tensor
    actions: Tensor
    log_chances: Tensor
    values: Tensor
    rewards: Tensor
    ends: Tensor
    last_values: Tensor
    states: list[State]
    returns: list[float]
    lengths: list[int]


class Player:
    """Copies of an environment, and the state of the policy that plays in them.

    Args:
        episodes: the copies.
        policy: who plays.

    Example:
        >>> from remanence.rl._environment import make_environment
        >>> policy = MemoryPolicy((7, 7, 3), 7)
        >>> player = Player([Episode(make_environment("MiniGrid-MemoryS7-v0"), seed=0)], policy)
        >>> player.play(4, 2, torch.Generator().manual_seed(0)).observations.shape
        torch.Size([4, 1, 7, 7, 3])
    """

    def __init__(self, episodes: Sequence[Episode], policy: MemoryPolicy) -> None:
        self.episodes, self.policy = episodes, policy
        self.state = policy.core.initial_state(len(episodes))
        self.begins = torch.ones(len(episodes), dtype=torch.bool)
        self.returns, self.lengths = [0.0] * len(episodes), [0] * len(episodes)

    @torch.no_grad()
    def play(self, steps: int, recurrence: int, generator: torch.Generator) -> Rollout:
        """Plays some steps in every copy, one after the other.

        Args:
            steps: T.
            recurrence: steps between two kept states.
            generator: decides between the actions.
        """
        rows, states, returns, lengths = [], [], [], []
        for step in range(steps):
            if step % recurrence == 0:
                states.append(self.state)
            seen, begins = self.seen(), self.begins
            logits, values, self.state = self.policy(seen[None], self.state, reset=begins[None])
            log_chances = functional.log_softmax(logits[0], dim=-1)
            actions = torch.multinomial(log_chances.exp(), 1, generator=generator)
            rewards, self.begins = self._act(actions.flatten().tolist(), returns, lengths)
            chosen = log_chances.gather(1, actions).flatten()
            rows.append((seen, begins, actions.flatten(), chosen, values[0], rewards, self.begins))
        last = self.policy(self.seen()[None], self.state, reset=self.begins[None]).values[0]
        parts = (torch.stack(part) for part in zip(*rows, strict=True))
        return Rollout._make((*parts, last, states, returns, lengths))

    def seen(self) -> Tensor:
        """The present observations, ``(B, ...)``."""
        return torch.stack([episode.observation for episode in self.episodes])

    def _act(self, actions: list[int], returns: list[float], lengths: list[int]) -> tuple[Tensor, Tensor]:
        rewards, ends = zip(
            *(episode.act(action) for episode, action in zip(self.episodes, actions, strict=True)), strict=True
        )
        for copy, (reward, ended) in enumerate(zip(rewards, ends, strict=True)):
            self.returns[copy] += reward
            self.lengths[copy] += 1
            if ended:
                returns.append(self.returns[copy])
                lengths.append(self.lengths[copy])
                self.returns[copy], self.lengths[copy] = 0.0, 0
        return torch.tensor(rewards), torch.tensor(ends)


def advantages(rollout: Rollout, discount: float, smoothing: float) -> Tensor:
    """Generalised advantage estimation: how much better than expected it went, ``(T, B)``.

    ``a_t = d_t + discount * smoothing * a_{t+1}`` with ``d_t = r_t + discount * V_{t+1} - V_t``; nothing is expected
    after the end of an episode, its limit of steps included.

    Args:
        rollout: what happened.
        discount: gamma.
        smoothing: lambda. 1 is the return less the value, 0 the error of one step.

    Example:
        >>> one = torch.ones(1, 1)
        >>> rollout = Rollout(one, one, one, one, 0.5 * one, 2 * one, one == 0, 3 * one[0], [], [], [])
        >>> advantages(rollout, discount=0.9, smoothing=1.0)
        tensor([[4.2000]])
    """
    found, after, ahead = [], rollout.last_values, torch.zeros_like(rollout.last_values)
    for step in reversed(range(len(rollout.rewards))):
        goes_on = (~rollout.ends[step]).to(after)
        error = rollout.rewards[step] + discount * goes_on * after - rollout.values[step]
        ahead = error + discount * smoothing * goes_on * ahead
        after = rollout.values[step]
        found.append(ahead)
    return torch.stack(found[::-1])
