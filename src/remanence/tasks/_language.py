"""Texts to be predicted symbol by symbol."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from remanence.data import Corpus, Vocabulary
from remanence.tasks._batch import Baseline, Score
from remanence.tasks._lanes import Lanes
from remanence.tasks._ngram import bigram, unigram
from remanence.tasks._stream import Split


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
