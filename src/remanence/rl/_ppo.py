"""Proximal policy optimisation over whole sequences: rows are pieces of episodes, and resets run inside the scan."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from remanence.rl._config import PPOConfig
from remanence.rl._core import CoreState, join_rows
from remanence.rl._observations import Observation, each_field
from remanence.rl._policy import MemoryPolicy
from remanence.rl._rollout import Rollout, advantages
from remanence.train import NonFiniteError, clip_gradients_


class Losses(NamedTuple):
    """Means over steps; `total` is what is minimised.

    Example:
        >>> Losses._fields
        ('total', 'policy', 'value', 'entropy')
    """

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor


class Pieces(NamedTuple):
    """Chunks to learn from, of equal length; all tensors are ``(steps, rows)`` except the observations.

    Example:
        >>> Pieces._fields[0]
        'observations'
    """

    observations: Observation
    begins: Tensor
    actions: Tensor
    log_chances: Tensor
    values: Tensor
    advantages: Tensor
    state: CoreState
    counts: Tensor | None = None
    """True where a step is learned from; None if all are."""

    def select(self, rows: Tensor) -> Pieces:
        """Some of the rows."""
        return self._by_time(lambda tensor: tensor.index_select(1, rows), self.state.select(rows))

    def _by_time(self, change: Callable[[Tensor], Tensor], state: CoreState) -> Pieces:
        """All that is ``(steps, ...)`` changed alike, with a state that fits."""
        parts = {
            name: change(getattr(self, name)) for name in ("begins", "actions", "log_chances", "values", "advantages")
        }
        counts = self.counts
        if counts is not None:
            counts = change(counts)
        return Pieces(each_field(change, self.observations), **parts, state=state, counts=counts)

    def mean(self, measured: Tensor) -> Tensor:
        """Mean over the steps that count of what was measured at every step, ``(steps, rows)``."""
        if self.counts is not None:
            measured = measured[self.counts]
        return measured.mean()


def cut(rollout: Rollout, advantage: Tensor) -> Pieces:
    """Cuts a rollout of T steps and B copies into rows, one for every kept state and copy.

    Example:
        >>> from remanence.nn import LSTM
        >>> x = torch.arange(6.0).reshape(6, 1)
        >>> states = [LSTM(1, 1).initial_state(1)] * 2
        >>> cut(Rollout(x, x, x, x, x, x, x, x[0], states, [], []), x).advantages
        tensor([[0., 3.],
                [1., 4.],
                [2., 5.]])
    """
    count = len(rollout.states)
    whole = Pieces(
        observations=rollout.observations,
        begins=rollout.begins,
        actions=rollout.actions,
        log_chances=rollout.log_chances,
        values=rollout.values,
        advantages=advantage,
        state=rollout.states[0],
        counts=rollout.counts,
    )
    state = join_rows(rollout.states)
    return whole._by_time(lambda part: part.unflatten(0, (count, -1)).transpose(0, 1).flatten(1, 2), state)


def ppo_losses(policy: MemoryPolicy, pieces: Pieces, config: PPOConfig) -> Losses:
    """The clipped objective, the clipped value loss, and the entropy.

    Example:
        >>> policy, zero = MemoryPolicy((3,), 2), torch.zeros(4, 5)
        >>> state = policy.core.initial_state(5)
        >>> pieces = Pieces(torch.randn(4, 5, 3), zero > 0, zero.long(), zero - 0.7, zero, zero, state)
        >>> losses = ppo_losses(policy, pieces, PPOConfig(entropy=0.0, value=1.0))
        >>> torch.equal(losses.total, losses.policy + losses.value)
        True
    """
    given, values, _ = policy(pieces.observations, pieces.state, reset=pieces.begins)
    log_chances, entropies = policy.actions.judge(given, pieces.actions)
    ratio = (log_chances - pieces.log_chances).exp()
    gain = pieces.mean(_clipped_gain(ratio, pieces.advantages, config.clip))
    # The return is the old value plus the advantage: the error of the new value is its move less the advantage.
    error = pieces.mean(_clipped_error(values - pieces.values, pieces.advantages, config.clip))
    entropy = pieces.mean(entropies)
    return Losses(config.value * error - gain - config.entropy * entropy, -gain, error, entropy)


def _clipped_gain(ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """The lesser of two gains, with the ratio as it is and held near 1. What is held has no slope where it is less."""
    free = ratio * advantage
    held = ratio.detach().clamp(1 - clip, 1 + clip) * advantage
    return torch.where(held < free, held, free)  # so a NaN keeps its slope, and is found


def _clipped_error(moved: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """The greater of two squared errors of a value that has moved, as it is and held near to where it was."""
    free = (moved - advantage).square()
    held = (moved.detach().clamp(-clip, clip) - advantage).square()
    return torch.where(held > free, held, free)


def learn(
    policy: MemoryPolicy, optimiser: Optimizer, rollout: Rollout, config: PPOConfig, generator: torch.Generator
) -> dict[str, float]:
    """Learns from a rollout, in several passes of minibatches.

    Args:
        policy: who learns.
        optimiser: of its parameters.
        rollout: what it played.
        config: how.
        generator: mixes the rows.

    Returns:
        Means over all minibatches: ``policy_loss``, ``value_loss``, ``entropy``, ``gradient_norm``.

    Raises:
        NonFiniteError: If a gradient is infinite or NaN.

    Example:
        >>> policy, zero = MemoryPolicy((3,), 2), torch.zeros(4, 5)
        >>> state = policy.core.initial_state(5)
        >>> seen, never = torch.randn(4, 5, 3), zero > 0
        >>> rollout = Rollout(seen, never, zero.long(), zero - 0.7, zero, zero + 1, never, zero[0], [state], [], [])
        >>> optimiser = torch.optim.Adam(policy.parameters())
        >>> sorted(learn(policy, optimiser, rollout, PPOConfig(), torch.Generator()))
        ['entropy', 'gradient_norm', 'policy_loss', 'value_loss']
    """
    pieces = cut(rollout, advantages(rollout, config.discount, config.smoothing))
    steps, rows = pieces.begins.shape
    together = max(1, config.batch // steps)
    parameters = list(policy.parameters())
    found = []
    norms = []
    for _ in range(config.epochs):
        for chosen in torch.randperm(rows, generator=generator).split(together):
            losses = ppo_losses(policy, pieces.select(chosen), config)
            optimiser.zero_grad()
            losses.total.backward()
            norm = clip_gradients_(parameters, config.clip_norm, None)
            if not math.isfinite(norm):
                raise NonFiniteError(f"the gradient is not finite, and no step was made with it. {_cause(rollout)}")
            optimiser.step()
            found += [loss.detach() for loss in losses[1:]]
            norms.append(norm)
    means = torch.stack(found).double().unflatten(0, (-1, 3)).mean(0).tolist()
    named = dict(zip(("policy_loss", "value_loss", "entropy"), means, strict=True))
    return {**named, "gradient_norm": sum(norms) / len(norms)}


def _cause(rollout: Rollout) -> str:
    """Where infinite or NaN gradients come from, and the way out."""
    if not bool(rollout.rewards.isfinite().all()):
        return "The environment gave rewards that are not finite"
    seen = rollout.observations
    parts = [seen] if isinstance(seen, Tensor) else seen.values()
    if not all(bool(part.isfinite().all()) for part in parts):
        return "The environment gave observations that are not finite"
    return "The last checkpoint is intact; try a smaller ppo.learning_rate"
