"""What a trained model says: sequences drawn from it, as symbols to measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
from torch import Tensor

from remanence._validate import message, positive_int
from remanence.data import END_OF_LINE, Vocabulary
from remanence.nn import SequenceModel
from remanence.tasks import Language, SequenceFile, Split, Task

PART = 250
"""Rows that are drawn side by side: more no longer fit into the caches."""


@dataclass(frozen=True)
class Amount:
    """How much to draw from a model.

    Args:
        rows: sequences.
        length: symbols of each: characters, words or whatever the task is made of.

    Example:
        >>> from remanence.tasks import BinaryPowerLaw
        >>> Amount.for_task(BinaryPowerLaw(length=64))
        Amount(rows=2000, length=64)
    """

    rows: int
    length: int

    def __post_init__(self) -> None:
        positive_int("rows", self.rows)
        positive_int("length", self.length, 2)

    @classmethod
    def for_task(cls, task: Task, rows: int | None = None, length: int | None = None) -> Amount:
        """The document's amounts: 2,000 sequences of the task's length, or two million characters of a text.

        Args:
            task: what the model was trained on.
            rows: sequences, if not those.
            length: symbols of each, if not that.
        """
        vocabulary = vocabulary_of(task)
        if vocabulary is None:
            return cls(rows or 2000, length or getattr(task, "length", 512))
        if vocabulary.separator:  # words, of about five characters each
            return cls(rows or 200, length or 2_000)
        return cls(rows or 200, length or 10_000)


def vocabulary_of(task: Task) -> Vocabulary | None:
    """What a task's tokens are called; None if they are mere numbers."""
    return getattr(task, "vocabulary", None)


def _has_words(task: Task) -> TypeGuard[Language]:
    """Whether its tokens have names; they are then those of one long text."""
    return vocabulary_of(task) is not None


def draw_sequences(model: SequenceModel, task: Task, amount: Amount, seed: int = 0) -> Tensor:
    """Draws sequences from a model, from an empty state.

    The first symbol is as frequent as in the training text, or even where there is none. A Transformer that only ever
    saw single chunks of a text is asked for no later positions than these have: once a chunk is full, its second half
    becomes the beginning of the next.

    Args:
        model: trained.
        task: what on.
        amount: how much.
        seed: seed for sampling.

    Returns:
        Tokens ``(rows, length)``.

    Raises:
        ValueError: the task is not made of tokens that predict each other.

    Example:
        >>> from remanence.tasks import BinaryPowerLaw
        >>> task = BinaryPowerLaw(length=20)
        >>> draw_sequences(SequenceModel.for_task(task, "RNN", hidden_size=4), task, Amount(3, 20)).shape
        torch.Size([3, 20])
    """
    if task.input_kind != "tokens" or task.input_size != task.output_size:
        expected = "ask for the next symbol, such as a text or 'binary-power-law'"
        raise ValueError(message("task", expected, task.name, "Only such models say sequences of their own"))
    generator = torch.Generator().manual_seed(seed)
    sizes = [min(PART, amount.rows - at) for at in range(0, amount.rows, PART)]
    return torch.cat([_draw(model, task, size, amount.length, generator) for size in sizes])


def _draw(model: SequenceModel, task: Task, rows: int, length: int, generator: torch.Generator) -> Tensor:
    time = 0
    if model.core.batch_first:
        time = 1
    if not _has_words(task):
        return model.generate(length, batch_size=rows, generator=generator)[0].movedim(time, 1)
    drawn = _first_symbols(task, rows, generator).unsqueeze(1)
    for part in _windows(model, task, length):
        prompt = drawn[:, -part.prompt :].movedim(1, time)
        more, _ = model.generate(part.length, prompt=prompt, generator=generator)
        drawn = torch.cat([drawn, more.movedim(time, 1)], dim=1)
    return drawn


def _first_symbols(task: Language, rows: int, generator: torch.Generator) -> Tensor:
    text = task.corpus.train
    return text[torch.randint(len(text), (rows,), generator=generator)].long()


@dataclass(frozen=True)
class _Window:
    prompt: int
    length: int


def _windows(model: SequenceModel, task: Language, length: int) -> Iterator[_Window]:
    """One piece, or chunks that overlap by half."""
    bound = length
    if hasattr(model.core, "positions") and task.drop_state == 1:
        bound = task.length
    seen = 1
    done = 1
    while done < length:
        step = max(1, min(bound - seen, length - done))
        yield _Window(seen, step)
        done += step
        seen = min(bound // 2 or 1, done)


def as_texts(tokens: Tensor, vocabulary: Vocabulary) -> list[str]:
    r"""Writes tokens ``(rows, length)`` out as characters; the sign for the end of a line becomes one.

    Example:
        >>> as_texts(torch.tensor([[0, 1]]), Vocabulary(("so", "<eos>"), " "))
        ['so \n']
    """
    rows = [vocabulary.decode(row) for row in tokens]
    if vocabulary.separator:
        return [row.replace(END_OF_LINE, "\n") for row in rows]
    return rows


def is_text(task: Task) -> TypeGuard[Language]:
    """Whether a task is made of characters or words; tokens of any other file stand for themselves.

    Example:
        >>> from remanence.tasks import BinaryPowerLaw
        >>> is_text(BinaryPowerLaw())
        False
    """
    return _has_words(task) and not isinstance(task, SequenceFile)


def symbols_of(tokens: Tensor, task: Task) -> Any:
    """What is measured: characters of a text, also where the model draws words; tokens of anything else."""
    vocabulary = vocabulary_of(task)
    if vocabulary is not None and vocabulary.separator and is_text(task):
        return as_texts(tokens, vocabulary)
    return tokens.numpy()


def data_of(task: Task, split: Split, rows: int) -> Tensor:
    """The data of a task, as they come: one long text, or sequences drawn from its law.

    Tokens are ``(rows, length)``; ``(1, length)`` of a text.
    """
    if _has_words(task):
        return getattr(task.corpus, split).unsqueeze(0)
    return task.draw(rows, task.stream(split, seed=0)).T  # type: ignore[attr-defined]
