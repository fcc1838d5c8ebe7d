"""Finite sequences read in order: B lanes side by side, cut into chunks, the state carried from chunk to chunk."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from remanence import _validate
from remanence.tasks._batch import Batch
from remanence.tasks._stream import Split, stream
from remanence.tasks._task import Task


@dataclass(frozen=True)
class Lanes(Task):
    """A task over one long sequence per split; subclasses give the inputs and targets of a split.

    Args:
        length: Steps of a chunk.
        drop_state: Probability that the carried state is dropped before a chunk of training.
    """

    length: int = 100
    drop_state: float = 0.0

    stateful = True
    item: ClassVar[str] = "tokens"
    """What one step is called in messages."""

    def __post_init__(self) -> None:
        _validate.positive_int("length", self.length)
        _validate.probability("drop_state", self.drop_state)

    @abstractmethod
    def pairs(self, split: Split) -> tuple[Tensor, Tensor]:
        """Inputs and targets of a whole split, `(N, ...)` each, in their order in time."""

    def sample(self, batch_size: int, generator: torch.Generator, split: Split = "train") -> Batch:
        """Draws chunks from anywhere in a split; every row starts afresh."""
        _validate.dimension("batch_size", batch_size)
        inputs, targets = self.pairs(split)
        starts = len(inputs) - self.length + 1
        if starts < 1:
            expected = f"be below the {len(inputs) + 1} {self.item} of the {split} split"
            raise ValueError(_validate.message("length", expected, self.length))
        first = torch.randint(starts, (batch_size,), generator=generator)
        steps = first + torch.arange(self.length).unsqueeze(1)
        return _all_steps(inputs[steps], targets[steps])

    def batch(self, position: int, batch_size: int, *, split: Split = "train", seed: int = 0) -> Batch:
        """Gives batch number `position` of the passes over a split; the last one of a pass may have fewer steps.

        The seed decides where the carried state is dropped, nothing else.
        """
        number = position % self.batches_per_epoch(batch_size, split)
        lane = self._lane(batch_size, split)
        start = number * self.length
        stop = min((number + 1) * self.length, lane)
        inputs, targets = (
            whole[: lane * batch_size].unflatten(0, (batch_size, lane))[:, start:stop].transpose(0, 1)
            for whole in self.pairs(split)
        )
        fresh = number == 0 or (split == "train" and self._drops(seed, position))
        return _all_steps(inputs, targets, torch.full((batch_size,), fresh))

    def batches_per_epoch(self, batch_size: int, split: Split = "train") -> int:
        """Number of chunks in one pass over a split."""
        return math.ceil(self._lane(batch_size, split) / self.length)

    def _lane(self, batch_size: int, split: Split) -> int:
        steps = len(self.pairs(split)[0])
        lane = steps // _validate.dimension("batch_size", batch_size)
        if lane < 1:
            expected = f"be below the {steps + 1} {self.item} of the {split} split"
            raise ValueError(_validate.message("batch_size", expected, batch_size))
        return lane

    def _drops(self, seed: int, position: int) -> bool:
        draw = torch.rand((), generator=stream("train", seed, position, salt="drop"), dtype=torch.float64)
        return bool(draw < self.drop_state)


def _all_steps(inputs: Tensor, targets: Tensor, reset: Tensor | None = None) -> Batch:
    """A batch in which every step counts; tokens are stored in a small type and handed out as int64."""
    if not inputs.is_floating_point():
        inputs = inputs.long()
        targets = targets.long()
    return Batch(inputs, targets, torch.ones(inputs.shape[:2], dtype=torch.bool), reset)
