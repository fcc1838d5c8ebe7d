"""What a policy experienced between two updates, and how it got there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from remanence._validate import message, positive_int
from remanence.nn import evaluating
from remanence.rl._copies import Copies, EpisodeCopies, Happened
from remanence.rl._core import CoreState
from remanence.rl._environment import Episode
from remanence.rl._observations import Observation, stack
from remanence.rl._policy import MemoryPolicy


class Rollout(NamedTuple):
    """T steps of B copies of an environment, ``(T, B)`` unless stated otherwise.

    Args:
        observations: ``(T, B, ...)``, what was seen before each action; such a tensor for each of several fields.
        begins: True where an episode begins with this observation.
        actions: what was done.
        log_chances: logarithms of the actions' probabilities.
        values: returns that the critic expected.
        rewards: what the actions earned.
        ends: True where the episode ended with this action.
        last_values: ``(B,)``, what the critic expects after the last step.
        states: states of the core before each chunk of ``T / len(states)`` steps.
        returns: returns of the episodes that ended, in order of time.
        lengths: lengths of these episodes.
        limit_values: what the critic expected where an episode was cut off by its time limit, 0 elsewhere; None if
            limits count as ends.
        counts: False where a step only began an episode and must not be learned from; None if all count.

    Example:
        >>> Rollout._fields[0]
        'observations'
    """

    observations: Observation
    begins: Tensor
    actions: Tensor
    log_chances: Tensor
    values: Tensor
    rewards: Tensor
    ends: Tensor
    last_values: Tensor
    states: list[CoreState]
    returns: list[float]
    lengths: list[int]
    limit_values: Tensor | None = None
    counts: Tensor | None = None


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

    def __init__(self, episodes: Sequence[Episode] | Copies, policy: MemoryPolicy) -> None:
        if isinstance(episodes, Sequence):
            episodes = EpisodeCopies(episodes)
        self.copies: Copies = episodes
        self.policy = policy
        count = len(self.copies)
        self.state = policy.core.initial_state(count)
        self.begins = torch.ones(count, dtype=torch.bool)
        self.returns = [0.0] * count
        self.lengths = [0] * count

    @torch.no_grad()
    def play(self, steps: int, recurrence: int, generator: torch.Generator, bootstrap: bool = False) -> Rollout:
        """Plays some steps in every copy, in evaluation mode: nothing is dropped while it acts.

        Args:
            steps: T.
            recurrence: steps between two kept states.
            generator: decides between the actions.
            bootstrap: whether the critic is asked what would have come after a time limit.
        """
        if steps % positive_int("recurrence", recurrence):
            raise ValueError(message("recurrence", f"divide steps ({steps})", recurrence))
        actions = self.policy.actions
        noise = actions.noise((steps, len(self.copies), actions.outputs), generator)
        states = []
        made = []
        with evaluating(self.policy):
            for step, luck in enumerate(noise.unbind()):
                if step % recurrence == 0:
                    states.append(self.state)
                made.append(self._step(luck, bootstrap))
            # Asked for the bootstrap alone: the state stays, since the next rollout begins with these observations.
            last_values = self._expect(self.seen(), self.begins)
        return self._rollout(made, states, last_values)

    def _step(self, luck: Tensor, bootstrap: bool) -> _PlayedStep:
        """Acts once in every copy."""
        policy = self.policy
        seen = self.seen()
        begins = self.begins
        output, self.state = policy.step(seen, self.state, begins)
        given = policy.actor(output)
        actions = policy.actions.pick(given, luck)
        happened = self.copies.act(actions, policy.actions)
        limit_values = None
        if bootstrap:
            limit_values = self._after_limit(happened)
        # A step that only begins an episode shows its first observation next, as an end does.
        self.begins = _begin_next(happened)
        return _PlayedStep(seen, begins, output, given, actions, happened, limit_values)

    def _rollout(self, made: list[_PlayedStep], states: list[CoreState], last_values: Tensor) -> Rollout:
        """All steps together. No action waits for chances and values, so they are computed at once."""
        ended = _Ended([], [])
        for step in made:
            self._count(step.happened, ended)
        actions = torch.stack([step.actions for step in made])
        given = torch.stack([step.given for step in made])
        return Rollout(
            observations=stack([step.seen for step in made]),
            begins=torch.stack([step.begins for step in made]),
            actions=actions,
            log_chances=self.policy.actions.log_chance(given, actions),
            values=self.policy.expect(torch.stack([step.output for step in made])),
            rewards=torch.stack([step.happened.rewards for step in made]),
            ends=torch.stack([step.happened.ends for step in made]),
            last_values=last_values,
            states=states,
            returns=ended.returns,
            lengths=ended.lengths,
            limit_values=_stacked([step.limit_values for step in made]),
            counts=_stacked([step.happened.counts for step in made]),
        )

    def seen(self) -> Observation:
        """The present observations, ``(B, ...)``."""
        return self.copies.seen()

    def _expect(self, seen: Observation, begins: Tensor | None) -> Tensor:
        return self.policy.expect(self.policy.step(seen, self.state, begins)[0])

    def _after_limit(self, happened: Happened) -> Tensor:
        if happened.last_seen is None or not bool(happened.cut_off.any()):
            return torch.zeros_like(happened.rewards)
        # What was seen last belongs to the episode that was cut off: nothing is reset before it.
        values = self._expect(happened.last_seen, None)
        return torch.where(happened.cut_off, values, 0.0)

    def _count(self, happened: Happened, ended: _Ended) -> None:
        counts = [True] * len(self.copies)
        if happened.counts is not None:
            counts = happened.counts.tolist()
        facts = zip(happened.rewards.tolist(), happened.ends.tolist(), counts, strict=True)
        for copy, (reward, ends, real) in enumerate(facts):
            if not real:
                continue
            self.returns[copy] += reward
            self.lengths[copy] += 1
            if ends:
                ended.returns.append(self.returns[copy])
                ended.lengths.append(self.lengths[copy])
                self.returns[copy] = 0.0
                self.lengths[copy] = 0


class _PlayedStep(NamedTuple):
    """One step in all copies: what was seen, said and done, and what it led to."""

    seen: Observation
    begins: Tensor
    output: Tensor
    given: Tensor
    actions: Tensor
    happened: Happened
    limit_values: Tensor | None


class _Ended(NamedTuple):
    """Episodes that have ended."""

    returns: list[float]
    lengths: list[int]


def _stacked(parts: Sequence[Tensor | None]) -> Tensor | None:
    """Parts of all steps in one tensor, or None: either every step has one, or none has."""
    present = [part for part in parts if part is not None]
    if not present:
        return None
    return torch.stack(present)


def _begin_next(happened: Happened) -> Tensor:
    """Which copies show the first observation of an episode next."""
    if happened.counts is None:
        return happened.ends
    return ~happened.counts


def advantages(rollout: Rollout, discount: float, smoothing: float) -> Tensor:
    """Generalised advantage estimation: how much better than expected each step went, ``(T, B)``.

    ``a_t = d_t + discount * smoothing * a_{t+1}`` with ``d_t = r_t + discount * V_{t+1} - V_t``; nothing is expected
    after the end of an episode, its time limit included, unless the rollout has `limit_values`.

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
    after = torch.cat([rollout.values[1:], rollout.last_values.unsqueeze(0)])
    goes_on = (~rollout.ends).to(after)
    expected = goes_on * after
    if rollout.limit_values is not None:
        expected = expected + rollout.limit_values
    errors = rollout.rewards + discount * expected - rollout.values
    fades = discount * smoothing * goes_on
    ahead = torch.zeros_like(rollout.last_values)
    found = []
    for error, fade in zip(reversed(errors.unbind()), reversed(fades.unbind()), strict=True):
        ahead = error + fade * ahead
        found.append(ahead)
    return torch.stack(found[::-1])
