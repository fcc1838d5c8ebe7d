"""Random symbol sequences whose mutual information is known: what the binary ones share."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from remanence import _validate
from remanence.tasks._batch import Baseline, Batch
from remanence.tasks._information import checked_lags, pair_information
from remanence.tasks._stream import Split, stream
from remanence.tasks._task import Task


@dataclass(frozen=True)
class SymbolSequences(Task):
    """Sequences of symbols drawn from a known law, each symbol to be predicted from those before it.

    Args:
        length: Symbols of a sequence; a batch has one step less, since the target is the next symbol.
        train_sequences: If given, training goes over this many sequences, drawn once per seed and reshuffled for
            every epoch, instead of fresh ones for every batch.

    Example:
        >>> from remanence.tasks import Repetitive
        >>> isinstance(Repetitive(), SymbolSequences), Repetitive(length=8).batch(0, 2).inputs.shape
        (True, torch.Size([7, 2]))
    """

    length: int = 512
    train_sequences: int | None = None

    input_kind = "tokens"

    def __post_init__(self) -> None:
        _validate.positive_int("length", self.length, minimum=2)
        if self.train_sequences is not None:
            _validate.dimension("train_sequences", self.train_sequences)

    @property
    def output_size(self) -> int:
        """Number of different symbols."""
        return self.input_size

    @abstractmethod
    def draw(self, batch_size: int, generator: torch.Generator) -> Tensor:
        """Draws B whole sequences: symbols, int64 `(length, B)`."""

    @abstractmethod
    def mutual_information(self, lags: Sequence[int] | Tensor) -> Tensor:
        """Gives the exact mutual information of two symbols at each distance: nats, float64 `(number of lags,)`."""

    def sample(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Draws one batch."""
        return _next_symbol(self.draw(_validate.dimension("batch_size", batch_size), generator))

    def batch(self, position: int, batch_size: int, *, split: Split = "train", seed: int = 0) -> Batch:
        """Gives batch number `position`: fresh sequences, or the next ones of the fixed training set."""
        per_epoch = self.batches_per_epoch(batch_size, split)
        if per_epoch is None:
            return super().batch(position, batch_size, split=split, seed=seed)
        epoch, number = divmod(position, per_epoch)
        sequences = _training_set(self, seed)
        order = torch.randperm(sequences.shape[1], generator=stream("train", seed, epoch, salt="shuffle"))
        return _next_symbol(sequences[:, order[number * batch_size : (number + 1) * batch_size]].long())

    def batches_per_epoch(self, batch_size: int, split: Split = "train") -> int | None:
        """Number of batches in one pass over the fixed training set, None if sequences are always fresh."""
        if self.train_sequences is None or split != "train":
            return None
        if _validate.dimension("batch_size", batch_size) > self.train_sequences:
            expected = f"be at most `train_sequences` = {self.train_sequences}"
            raise ValueError(_validate.message("batch_size", expected, batch_size))
        return self.train_sequences // batch_size


@dataclass(frozen=True)
class BinarySequences(SymbolSequences):
    """Sequences of equally likely bits: the correlation of two bits gives their joint distribution.

    Args:
        length: Symbols of a sequence.
        train_sequences: Size of a fixed training set, None for fresh sequences.

    Example:
        >>> from remanence.tasks import Repetitive
        >>> Repetitive().chance
        Baseline(loss=0.6931471805599453, accuracy=0.5)
    """

    input_size = 2  # pyright: ignore[reportAssignmentType]

    @abstractmethod
    def correlation(self, lags: Tensor) -> Tensor:
        """Gives the correlation of two symbols, written as -1 and +1, at each distance: float64 `(number of lags,)`."""

    def mutual_information(self, lags: Sequence[int] | Tensor) -> Tensor:
        """Gives the exact mutual information of two symbols at a distance."""
        return pair_information(self.correlation(checked_lags(lags)))

    @property
    def memory_free(self) -> Baseline:
        """Predicts a symbol from the one before: loss ln 2 - I(1), accuracy (1 + |correlation|) / 2."""
        neighbours = self.correlation(torch.tensor([1]))
        loss = math.log(2) - pair_information(neighbours)
        return Baseline(loss.item(), (0.5 + 0.5 * neighbours.abs()).item())


@functools.lru_cache(maxsize=2)
def _training_set(task: SymbolSequences, seed: int) -> Tensor:
    assert task.train_sequences is not None
    return task.draw(task.train_sequences, stream("train", seed, salt="training set")).to(torch.uint8)


def _next_symbol(symbols: Tensor) -> Batch:
    inputs = symbols[:-1]
    targets = symbols[1:]
    return Batch(inputs, targets, torch.ones(inputs.shape, dtype=torch.bool, device=inputs.device))
