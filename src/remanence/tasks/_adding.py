"""The adding problem: two marked numbers, far apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from remanence import _validate
from remanence.tasks._batch import Baseline, Batch
from remanence.tasks._registry import register_task
from remanence.tasks._task import Task


@register_task("adding")
@dataclass(frozen=True)
class Adding(Task):
    """Add the two marked numbers of a long list.

    Description:
        At every step comes a number drawn uniformly from 0 to 1, and a mark that is 1 at one random step of the first
        half and at one of the second. At the last step their sum is due. T = 6::

            number   .31 .82 .47 .09 .55 .70
            mark      0   1   0   0   1   0
            target                       1.37
            mask      .   .   .   .   .   #

    Input:
        `(T, B, 2)`: number and mark.

    Target:
        `(T, B, 1)`: the sum at the last step, 0 before.

    Metric:
        Mean squared error at the last step; accuracy is the share of answers less than `tolerance` off.

    Chance level:
        Mean squared error 1/6, the variance of the sum, by always answering 1. A predictor that sees the last step
        alone gains a little, when the second mark happens to be there: 1/6 - 1/(12 n) with n steps in the second
        half.

    Reference:
        Hochreiter & Schmidhuber 1997, "Long short-term memory"; marks in two halves as in Le, Jaitly & Hinton 2015, "A
        simple way to initialize recurrent networks of rectified linear units".

    Args:
        length: Number of steps T.
        tolerance: How far a right answer may be off.

    Example:
        >>> task = Adding(length=50)
        >>> batch = task.sample(4, task.stream("train", seed=0))
        >>> numbers, marks = batch.inputs.unbind(-1)
        >>> torch.allclose((numbers * marks).sum(0), batch.targets[-1, :, 0])
        True
        >>> round(task.chance.loss, 4)
        0.1667
    """

    length: int = 200
    tolerance: float = 0.04

    input_size = 2  # pyright: ignore[reportAssignmentType]
    output_size = 1  # pyright: ignore[reportAssignmentType]

    def __post_init__(self) -> None:
        _validate.positive_int("length", self.length, minimum=2)
        _validate.real("tolerance", self.tolerance, above=0.0, most=0.5)

    @property
    def chance(self) -> Baseline:
        """The constant answer 1: the variance of the sum of two uniform numbers, and its mass within the tolerance."""
        return Baseline(loss=1 / 6, accuracy=1 - (1 - self.tolerance) ** 2)

    @property
    def memory_free(self) -> Baseline:
        """The constant answer 1, or the last number + 1/2 when that one is marked."""
        marked = 1 / (self.length - self.length // 2)
        unmarked = self.chance
        return Baseline(
            loss=marked / 12 + (1 - marked) * unmarked.loss,
            accuracy=marked * 2 * self.tolerance + (1 - marked) * unmarked.accuracy,
        )

    def sample(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Draws one batch."""
        _validate.dimension("batch_size", batch_size)
        device = generator.device
        half = self.length // 2
        size = (1, batch_size)
        numbers = torch.rand(self.length, batch_size, generator=generator, device=device)
        first = torch.randint(0, half, size, generator=generator, device=device)
        second = torch.randint(half, self.length, size, generator=generator, device=device)
        marked = torch.cat([first, second])
        marks = torch.zeros_like(numbers).scatter_(0, marked, 1.0)
        targets = torch.zeros_like(numbers)
        targets[-1] = numbers.gather(0, marked).sum(0)
        mask = torch.zeros_like(numbers, dtype=torch.bool)
        mask[-1] = True
        return Batch(torch.stack([numbers, marks], dim=-1), targets.unsqueeze(-1), mask)

    def step_loss(self, output: Tensor, targets: Tensor) -> Tensor:
        """Gives squared errors `(N,)`."""
        return (output - targets).square().squeeze(-1)

    def step_correct(self, output: Tensor, targets: Tensor) -> Tensor:
        """Says which answers are less than `tolerance` off."""
        return ((output - targets).abs() < self.tolerance).squeeze(-1)
