"""A policy as a sequence model, with episodes that it played: what ``remanence probe`` measures of a policy's run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from remanence.rl import MemoryPolicy, evaluate_policy, load_policy
from remanence.runs import Values

EPISODES = 16
"""Episodes that are played; the longest of them are measured."""
ROWS = 4
LONGEST = 256


class Acting(nn.Module):
    """The actor of a policy, from the observations of an episode to what it says about the actions.

    Example:
        >>> Acting(MemoryPolicy((3,), 2))(torch.zeros(9, 1, 3)).shape
        torch.Size([9, 1, 2])
    """

    batch_first = False

    def __init__(self, policy: MemoryPolicy) -> None:
        super().__init__()
        self.policy = policy
        self.sizes = [torch.Size(field.shape).numel() for field in policy.fields]

    def forward(self, seen: Tensor) -> Tensor:
        """Logits or means ``(T, B, outputs)`` for observations ``(T, B, features)``, all fields side by side."""
        parts = {}
        for field, part in zip(self.policy.fields, seen.split(self.sizes, dim=-1), strict=True):
            parts[field.name] = part.unflatten(-1, field.shape)
            if field.kind == "text":
                parts[field.name] = parts[field.name].to(torch.int64)
        if len(parts) == 1:
            (parts,) = parts.values()
        return self.policy(parts).logits


def policy_and_episodes(folder: Path) -> tuple[Acting, Tensor]:
    """The policy of a run, and the observations ``(T, B, features)`` of its longest episodes, cut to equal length."""
    policy, config = load_policy(folder)
    seen: list[Tensor] = []

    def keep(_: nn.Module, given: tuple[Any, ...], __: Values) -> None:
        parts = [given[0]]
        if not isinstance(given[0], Tensor):
            parts = [given[0][field.name] for field in policy.fields]
        seen.append(torch.cat([part[0].flatten(1).float() for part in parts], dim=-1))

    handle = policy.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        options = config.environment_options
        lengths = evaluate_policy(policy, config.environment, EPISODES, options=options).lengths
    finally:
        handle.remove()
    longest = sorted(range(EPISODES), key=lambda episode: -lengths[episode])[:ROWS]
    steps = min(LONGEST, min(lengths[episode] for episode in longest))
    rows = [torch.stack([_of(seen[t], lengths, t, episode) for t in range(steps)]) for episode in longest]
    return Acting(policy), torch.stack(rows, dim=1)


def _of(seen: Tensor, lengths: list[int], step: int, episode: int) -> Tensor:
    """What one episode saw at a step; those that have ended have no row any more."""
    return seen[sum(length > step for length in lengths[:episode])]
