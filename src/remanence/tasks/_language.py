"""Finite sequences read in order, lane beside lane, and texts among them, predicted symbol by symbol."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from remanence import _validate
from remanence.data import Corpus, CorpusName, Vocabulary, load_corpus
from remanence.tasks._batch import Baseline, Batch, Score
from remanence.tasks._ngram import bigram, unigram
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


@dataclass(frozen=True)
class Language(Lanes):
    """What all texts share: B lanes through a split, cut into chunks, the state carried from chunk to chunk.

    A split of N tokens becomes B lanes of (N - 1) // B tokens that are read side by side, unshuffled::

        lane 0   t h e _ c a|t _ s a t _|o n _        | chunks of `length` = 6 steps
        lane 1   t h e _ m a|t _ a n d _|p u r        the target is always the next symbol

    `Batch.reset` is True for all rows at the start of a pass, and in training for the whole batch with probability
    `drop_state` before any other chunk. `sample` draws chunks from anywhere instead.

    Args:
        length: Steps of a chunk.
        drop_state: Probability that the carried state is dropped before a chunk of training.

    Example:
        >>> from remanence.tasks import list_tasks
        >>> [name for name in list_tasks() if name.startswith("ptb")]
        ['ptb-char', 'ptb-word']
    """

    input_kind = "tokens"
    chance_name = "guessing by symbol frequency"
    unit: ClassVar[str] = "perplexity"
    corpus_name: ClassVar[CorpusName]
    """Of a known text; who reads another one overrides `corpus`."""

    @property
    def corpus(self) -> Corpus:
        """The text; read from its files at the first call."""
        return load_corpus(self.corpus_name)

    @property
    def vocabulary(self) -> Vocabulary:
        """The symbols, to write tokens out."""
        return self.corpus.vocabulary

    @property
    def input_size(self) -> int:
        """Number of different symbols."""
        return len(self.vocabulary)

    @property
    def output_size(self) -> int:
        """Number of different symbols."""
        return len(self.vocabulary)

    @property
    def chance(self) -> Baseline:
        """The training split's symbol frequencies, held against the validation split."""
        return unigram(self.corpus)

    @property
    def memory_free(self) -> Baseline:
        """A smoothed bigram model of the training split, held against the validation split."""
        return bigram(self.corpus)

    def pairs(self, split: Split) -> tuple[Tensor, Tensor]:
        """The symbols of a split and, for each, the next."""
        tokens = {"train": self.corpus.train, "validation": self.corpus.validation, "test": self.corpus.test}[split]
        return tokens[:-1], tokens[1:]

    def report(self, score: Score) -> dict[str, float]:
        """Words a score as texts are usually reported: nats, accuracy, and bits per character or perplexity."""
        return self._report_in(self.unit, score)

    def _report_in(self, unit: str, score: Score) -> dict[str, float]:
        if unit == "perplexity":
            value = math.exp(score.loss)
        else:
            value = score.loss / math.log(2)
        return {**super().report(score), unit: value}
