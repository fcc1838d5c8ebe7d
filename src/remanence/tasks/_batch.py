"""What a task hands out, and what it hands back: batches, baselines, scores."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Batch(NamedTuple):
    """Sequences to learn from, time first.

    Attributes:
        inputs: Float vectors `(T, B, input_size)`, or int64 tokens `(T, B)`, by the task's `input_kind`.
        targets: int64 classes `(T, B)`, or float values `(T, B, output_size)`.
        mask: bool `(T, B)`, True where an answer is asked for; accuracy counts these steps alone.
        reset: bool `(B,)`, the rows whose sequence begins with this batch. None: all of them do.

    Example:
        >>> classes = torch.zeros(3, 2, dtype=torch.int64)
        >>> batch = Batch(inputs=torch.zeros(3, 2, 1), targets=classes, mask=classes == 0)
        >>> batch.steps, batch.size
        (3, 2)
    """

    inputs: Tensor
    targets: Tensor
    mask: Tensor
    reset: Tensor | None = None

    @property
    def steps(self) -> int:
        """Number of time steps, T."""
        return self.mask.shape[0]

    @property
    def size(self) -> int:
        """Number of rows, B."""
        return self.mask.shape[1]

    def rows(self, start: int, stop: int) -> Batch:
        """Takes some of the rows, for instance one process's share."""
        reset = self.reset
        if reset is not None:
            reset = reset[start:stop]
        return Batch(self.inputs[:, start:stop], self.targets[:, start:stop], self.mask[:, start:stop], reset)

    def piece(self, start: int, stop: int) -> Batch:
        """Takes some of the steps, in time; `reset` still says which rows begin with the whole batch."""
        return Batch(*(part[start:stop] for part in self[:3]), reset=self.reset)

    def to(self, device: torch.device | str) -> Batch:
        """Moves every tensor to a device."""
        reset = self.reset
        if reset is not None:
            reset = reset.to(device)
        return Batch(self.inputs.to(device), self.targets.to(device), self.mask.to(device), reset)


class Baseline(NamedTuple):
    """What a stated predictor reaches.

    Attributes:
        loss: In the unit of the task's loss (nats for classes).
        accuracy: Share of right answers, 0 to 1.

    Example:
        >>> Baseline(loss=0.5, accuracy=0.125).accuracy
        0.125
    """

    loss: float
    accuracy: float


class Score(NamedTuple):
    """Sums over batches, so that batches of different size add up to the right mean.

    Attributes:
        loss_sum: Sum of the loss over the steps that it counts.
        loss_count: Number of those steps.
        correct: Number of right answers.
        asked: Number of answers asked for.
        asked_loss_sum: Sum of the loss over the steps where answers are asked for.

    Example:
        >>> total = Score(2.0, 4, 1, 2).plus(Score(1.0, 2, 2, 2))
        >>> total.loss, total.accuracy
        (0.5, 0.75)
    """

    loss_sum: float = 0.0
    loss_count: int = 0
    correct: int = 0
    asked: int = 0
    asked_loss_sum: float = 0.0

    @property
    def loss(self) -> float:
        """Mean loss per counted step, nan if there is none."""
        return _mean(self.loss_sum, self.loss_count)

    @property
    def accuracy(self) -> float:
        """Share of right answers, nan if none was asked for."""
        return _mean(self.correct, self.asked)

    @property
    def asked_loss(self) -> float:
        """Mean loss per answer asked for, nan if none was."""
        return _mean(self.asked_loss_sum, self.asked)

    def plus(self, other: Score) -> Score:
        """Adds the sums of another batch: the score of both together."""
        return Score(
            self.loss_sum + other.loss_sum,
            self.loss_count + other.loss_count,
            self.correct + other.correct,
            self.asked + other.asked,
            self.asked_loss_sum + other.asked_loss_sum,
        )


def _mean(total: float, count: int) -> float:
    if not count:
        return math.nan
    return total / count
