"""What every task offers: batches, loss, accuracy, and what a predictor without memory would reach."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor
from torch.nn import functional

from remanence import _validate
from remanence.tasks._batch import Baseline, Batch, Score
from remanence.tasks._stream import Split, stream


class Task(ABC):
    """A seeded recipe for sequences and for scoring a model's answers; it does not depend on any model.

    A model maps `inputs` to an output `(T, B, output_size)`: class scores (logits), or values. Subclasses are frozen
    dataclasses that give `sample`, `input_size` and `output_size`; register one with `register_task` and it can be made
    by name. Everything random comes from the generator that is passed in.

    Attributes:
        name: The registered name.
        input_kind: "vectors" for float inputs `(T, B, input_size)`, "tokens" for int64 `(T, B)` below `input_size`.
        stateful: True if a batch goes on where the one before ended, so that a model carries its state over
            (but see `Batch.reset`).
        loss_on_all_steps: True if the loss counts every step, and not only those of the mask.
        chance_name: What the predictor of `chance` does, in words.

    Example:
        A user's own task: say at every step what came `lag` steps ago.

        >>> from dataclasses import dataclass
        >>> from remanence.tasks import make_task, register_task
        >>> @register_task("echo")
        ... @dataclass(frozen=True)
        ... class Echo(Task):
        ...     length: int = 20
        ...     lag: int = 3
        ...     input_kind = "tokens"
        ...     input_size = output_size = 2
        ...     def sample(self, batch_size, generator):
        ...         inputs = torch.randint(2, (self.length, batch_size), generator=generator)
        ...         targets = inputs.roll(self.lag, dims=0)
        ...         mask = (torch.arange(self.length) >= self.lag).unsqueeze(1).expand_as(inputs)
        ...         return Batch(inputs, targets, mask)
        >>> echo = make_task("echo", lag=2)
        >>> batch = echo.sample(4, echo.stream("train", seed=0))
        >>> perfect = torch.nn.functional.one_hot(batch.targets, 2).float()
        >>> echo.accuracy(perfect, batch).item(), echo.chance.accuracy
        (1.0, 0.5)
    """

    name: ClassVar[str] = ""
    input_kind: ClassVar[Literal["vectors", "tokens"]] = "vectors"
    stateful: ClassVar[bool] = False
    loss_on_all_steps: ClassVar[bool] = False
    chance_name: ClassVar[str] = "a guess"

    @property
    @abstractmethod
    def input_size(self) -> int:
        """Features of an input vector, or number of different tokens."""

    @property
    @abstractmethod
    def output_size(self) -> int:
        """Numbers that a model gives at every step: class scores or values."""

    @abstractmethod
    def sample(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Draws one batch.

        Args:
            batch_size: Number of rows, B.
            generator: Source of all randomness.

        Returns:
            The batch, on the generator's device.
        """

    @property
    def chance(self) -> Baseline:
        """Best that a predictor reaches that knows the recipe and the clock but sees no input.

        Here: the uniform guess among `output_size` classes. Tasks with another answer override it.
        """
        return Baseline(loss=math.log(self.output_size), accuracy=1 / self.output_size)

    @property
    def chance_level(self) -> float:
        """Accuracy of `chance`."""
        return self.chance.accuracy

    @property
    def memory_free(self) -> Baseline:
        """Best that a predictor reaches that also sees the present input, but nothing of the past. Here: `chance`."""
        return self.chance

    def stream(self, split: Split = "train", seed: int = 0, position: int = 0) -> torch.Generator:
        """Makes the generator of batch number `position`; splits never share one."""
        return stream(split, seed, position)

    def batch(self, position: int, batch_size: int, *, split: Split = "train", seed: int = 0) -> Batch:
        """Gives batch number `position`: a pure function of its arguments, so resuming needs the number alone.

        Args:
            position: Number of the batch, from 0.
            batch_size: Number of rows, B.
            split: "train", "validation" or "test".
            seed: The experiment's seed.
        """
        return self.sample(batch_size, self.stream(split, seed, position))

    def stream_batch(
        self, position: int, batch_size: int, *, chunk: int, split: Split = "train", seed: int = 0
    ) -> Iterator[Batch]:
        """Gives batch number `position` in pieces of time, with the numbers of the whole.

        Here the whole batch is drawn and cut; tasks that can draw a piece at a time override it, so that sequences of
        any length fit into memory.

        Args:
            position: Number of the batch, from 0.
            batch_size: Number of rows, B.
            chunk: Steps of a piece; the last may be shorter.
            split: "train", "validation" or "test".
            seed: The experiment's seed.
        """
        _validate.positive_int("chunk", chunk)
        whole = self.batch(position, batch_size, split=split, seed=seed)
        for start in range(0, whole.steps, chunk):
            yield whole.piece(start, start + chunk)

    def batches_per_epoch(self, batch_size: int, split: Split = "train") -> int | None:
        """Number of batches in one pass over a split, None if fresh ones never end."""
        return None

    def batches(self, batch_size: int, *, split: Split = "train", seed: int = 0, position: int = 0) -> Iterator[Batch]:
        """Gives batches without end, from number `position` on; the other arguments as in :meth:`batch`."""
        while True:
            yield self.batch(position, batch_size, split=split, seed=seed)
            position += 1

    def with_length(self, length: int) -> Self:
        """Makes the same task at another length, to train at one and evaluate at others.

        Args:
            length: The new length, in the unit of the task's own `length`.

        Raises:
            ValueError: If the length of this task is fixed by its data.
        """
        if "length" not in {field.name for field in dataclasses.fields(self)}:  # pyright: ignore[reportArgumentType]
            raise ValueError(f"the length of task {self.name!r} is fixed by its data and cannot be set to {length}")
        return dataclasses.replace(self, length=length)  # pyright: ignore[reportArgumentType]

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """Gives the training loss: the mean over the steps that count.

        Args:
            output: Class scores or values `(T, B, output_size)`.
            batch: The batch that was answered.
        """
        return self.step_loss(*self._counted(output, batch)).mean()

    def accuracy(self, output: Tensor, batch: Batch) -> Tensor:
        """Gives the share of right answers where answers are asked for, a scalar without gradient."""
        self._check(output, batch)
        return self.step_correct(*_asked(output.detach(), batch)).to(output.dtype).mean()

    @torch.no_grad()
    def score(self, output: Tensor, batch: Batch) -> Score:
        """Gives the sums behind `loss` and `accuracy`, to be added up over an evaluation."""
        losses = self.step_loss(*self._counted(output, batch))
        right = self.step_correct(*_asked(output, batch))
        asked = total = losses.double().sum().item()
        if self.loss_on_all_steps:
            asked = losses.view(batch.mask.shape)[batch.mask].double().sum().item()
        return Score(total, losses.numel(), int(right.sum()), right.numel(), asked)

    def report(self, score: Score) -> dict[str, float]:
        """Words a score in the units in which the task is usually reported, among them "loss" and "accuracy"."""
        return {"loss": score.loss, "accuracy": score.accuracy}

    def step_loss(self, output: Tensor, targets: Tensor) -> Tensor:
        """Gives the loss of single answers; here cross entropy in nats.

        Args:
            output: Class scores `(N, output_size)`.
            targets: Classes `(N,)`.

        Returns:
            Losses `(N,)`.
        """
        return functional.cross_entropy(output, targets, reduction="none")

    def step_correct(self, output: Tensor, targets: Tensor) -> Tensor:
        """Says which single answers are right; here those whose highest class score is the target's.

        Args:
            output: Class scores `(N, output_size)`.
            targets: Classes `(N,)`.

        Returns:
            bool `(N,)`.
        """
        return output.argmax(dim=-1) == targets

    def _counted(self, output: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Selects the answers and targets that the loss counts, with time and rows in one dimension."""
        self._check(output, batch)
        if self.loss_on_all_steps:
            return _flat(output, batch)
        return _asked(output, batch)

    def _check(self, output: Tensor, batch: Batch) -> None:
        _validate.shape("output", output, (batch.steps, batch.size, self.output_size))


def _flat(output: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    return output.flatten(0, 1), batch.targets.flatten(0, 1)


def _asked(output: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Answers that are asked for. Where all are, nothing is copied: the scores of many words are large."""
    if batch.mask.all():
        return _flat(output, batch)
    return output[batch.mask], batch.targets[batch.mask]
