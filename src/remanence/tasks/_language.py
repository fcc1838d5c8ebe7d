"""Texts to be foretold symbol by symbol."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from remanence import _validate
from remanence.data import Corpus, Vocabulary
from remanence.tasks._batch import Baseline, Batch, Score
from remanence.tasks._ngram import bigram, unigram
from remanence.tasks._stream import Split, stream
from remanence.tasks._task import Task


@dataclass(frozen=True)
class Language(Task):
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

    length: int = 100
    drop_state: float = 0.0

    input_kind = "tokens"
    stateful = True
    unit: ClassVar[str] = "perplexity"

    def __post_init__(self) -> None:
        _validate.positive_int("length", self.length)
        _validate.probability("drop_state", self.drop_state)

    @property
    @abstractmethod
    def corpus(self) -> Corpus:
        """The text; read from its file at the first call."""

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

    def sample(self, batch_size: int, generator: torch.Generator, split: Split = "train") -> Batch:
        """Draws chunks from anywhere in a split.

        Args:
            batch_size: Number of rows, B.
            generator: Source of all randomness.
            split: The part of the text to draw from.

        Returns:
            The batch; every row starts afresh.
        """
        _validate.positive_int("batch_size", batch_size)
        tokens = self._tokens(split)
        starts = len(tokens) - self.length
        if starts < 1:
            expected = f"be below the {len(tokens)} tokens of the {split} split"
            raise ValueError(_validate.message("length", expected, self.length))
        first = torch.randint(starts, (batch_size,), generator=generator)
        steps = first + torch.arange(self.length).unsqueeze(1)
        return _next_symbol(tokens[steps], tokens[steps + 1])

    def batch(self, position: int, batch_size: int, *, split: Split = "train", seed: int = 0) -> Batch:
        """Gives batch number `position` of the passes over a split.

        Args:
            position: Number of the batch, from 0 on, through all passes.
            batch_size: Number of lanes, B.
            split: "train", "validation" or "test".
            seed: The experiment's seed; it decides where the carried state is dropped, nothing else.

        Returns:
            The batch; the last one of a pass may have fewer steps.
        """
        number = position % self.batches_per_epoch(batch_size, split)
        tokens, lane = self._tokens(split), self._lane(batch_size, split)
        start, stop = number * self.length, min((number + 1) * self.length, lane)
        inputs = tokens[: lane * batch_size].view(batch_size, lane)[:, start:stop].T
        targets = tokens[1 : lane * batch_size + 1].view(batch_size, lane)[:, start:stop].T
        fresh = number == 0 or (split == "train" and self._drops(seed, position))
        return _next_symbol(inputs, targets, torch.full((batch_size,), fresh))

    def batches_per_epoch(self, batch_size: int, split: Split = "train") -> int:
        """Number of chunks in one pass over a split.

        Args:
            batch_size: Number of lanes, B.
            split: "train", "validation" or "test".

        Returns:
            The number.
        """
        return math.ceil(self._lane(batch_size, split) / self.length)

    def report(self, score: Score) -> dict[str, float]:
        """Words a score as texts are usually reported.

        Args:
            score: Sums over an evaluation.

        Returns:
            "loss" (nats), "accuracy", and "bits_per_character" or "perplexity".
        """
        return self._report_in(self.unit, score)

    def _report_in(self, unit: str, score: Score) -> dict[str, float]:
        value = math.exp(score.loss) if unit == "perplexity" else score.loss / math.log(2)
        return {**super().report(score), unit: value}

    def _tokens(self, split: Split) -> Tensor:
        return {"train": self.corpus.train, "validation": self.corpus.validation, "test": self.corpus.test}[split]

    def _lane(self, batch_size: int, split: Split) -> int:
        tokens = len(self._tokens(split))
        lane = (tokens - 1) // _validate.positive_int("batch_size", batch_size)
        if lane < 1:
            expected = f"be below the {tokens} tokens of the {split} split"
            raise ValueError(_validate.message("batch_size", expected, batch_size))
        return lane

    def _drops(self, seed: int, position: int) -> bool:
        draw = torch.rand((), generator=stream("train", seed, position, salt="drop"), dtype=torch.float64)
        return bool(draw < self.drop_state)


def _next_symbol(inputs: Tensor, targets: Tensor, reset: Tensor | None = None) -> Batch:
    return Batch(inputs.long(), targets.long(), torch.ones(inputs.shape, dtype=torch.bool), reset)
