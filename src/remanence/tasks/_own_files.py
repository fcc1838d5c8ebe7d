"""The user's own files as tasks."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from remanence import _validate
from remanence.data import Corpus, Level, corpus_from_text, corpus_from_tokens
from remanence.tasks._batch import Score
from remanence.tasks._language import Lanes, Language
from remanence.tasks._registry import register_task


@dataclass(frozen=True)
class OwnFile(Lanes):
    """A file of the user's whose end is kept for validation and test."""

    path: str = ""
    validation: float = 0.05
    test: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.real("validation", self.validation, above=0.0)
        _validate.real("test", self.test, above=0.0)
        if self.validation + self.test >= 1:
            raise ValueError(_validate.message("validation + test", "be below 1", self.validation + self.test))

    def stamp(self) -> tuple[int, int]:
        """Size and time of change, so that a changed file is read again."""
        file = Path(self.path).expanduser()
        if not self.path:
            hint = "Name your file, as in `remanence train text book.txt`"
            raise ValueError(_validate.message("path", "name an existing file", "nothing", hint))
        if not file.is_file():
            raise ValueError(_validate.message("path", "name an existing file", repr(self.path)))
        return file.stat().st_size, file.stat().st_mtime_ns


@register_task("text")
@dataclass(frozen=True)
class Text(OwnFile, Language):
    r"""Predict the next symbol of a text file.

    Description:
        A UTF-8 file, plain or packed with gzip or xz, by characters or by words (between spaces, with `<eos>` after
        every line). Its beginning is for training, its end for validation and test::

            file     |-------------- training --------------|-- validation --|-- test --|

    Input:
        Tokens `(length, B)` below the number of different symbols in the file.

    Target:
        Tokens `(length, B)`: the next symbol.

    Metric:
        Bits per character, or perplexity for words, and accuracy over all steps.

    Chance level:
        By symbol frequencies, and by a bigram model, both fitted on training and measured on validation: `chance` and
        `memory_free`.

    Reference:
        None: it is your text.

    Args:
        length: Steps of a chunk.
        drop_state: Probability that the carried state is dropped before a chunk of training.
        path: The file.
        validation: Share of the file for validation.
        test: Share of the file for the test.
        level: "char" or "word".

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "mine.txt"
        ...     _ = path.write_text("to be or not to be\n" * 50)
        ...     task = Text(path=str(path), length=5)
        ...     batch = task.batch(0, batch_size=2)
        ...     print(task.input_size, repr(task.vocabulary.decode(batch.inputs[:, 0])))
        8 'to be'
    """

    level: Level = "char"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.one_of("level", self.level, ["char", "word"])

    @property
    def corpus(self) -> Corpus:
        """The text; read from its file at the first call."""
        return _read_text(self.path, self.level, self.validation, self.test, self.stamp())

    def report(self, score: Score) -> dict[str, float]:
        """Words a score in the unit of the level."""
        units = {"char": "bits_per_character", "word": "perplexity"}
        return self._report_in(units[self.level], score)


@register_task("sequence")
@dataclass(frozen=True)
class SequenceFile(OwnFile, Language):
    """Predict the next token of any sequence.

    Description:
        A one-dimensional integer array (`.npy`), or a text file with tokens of any spelling between spaces and line
        ends. Its beginning is for training, its end for validation and test::

            file     |-------------- training --------------|-- validation --|-- test --|

    Input:
        Tokens `(length, B)` below the number of different tokens in the file.

    Target:
        Tokens `(length, B)`: the next token.

    Metric:
        Perplexity and accuracy over all steps.

    Chance level:
        By token frequencies, and by a bigram model, both fitted on training and measured on validation: `chance` and
        `memory_free`.

    Reference:
        None: it is your sequence.

    Args:
        length: Steps of a chunk.
        drop_state: Probability that the carried state is dropped before a chunk of training.
        path: The file.
        validation: Share of the file for validation.
        test: Share of the file for the test.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "mine.txt"
        ...     _ = path.write_text("10 20 30 " * 100)
        ...     task = SequenceFile(path=str(path), length=4)
        ...     batch = task.batch(0, batch_size=2)
        ...     print(task.vocabulary.decode(batch.inputs[:, 0]), "->", task.vocabulary.decode(batch.targets[:, 0]))
        10 20 30 10 -> 20 30 10 20
    """

    @property
    def corpus(self) -> Corpus:
        """The sequence; read from its file at the first call."""
        return _read_tokens(self.path, self.validation, self.test, self.stamp())


@functools.lru_cache(maxsize=2)
def _read_text(path: str, level: Level, validation: float, test: float, stamp: tuple[int, int]) -> Corpus:
    return corpus_from_text(path, level, validation, test)


@functools.lru_cache(maxsize=2)
def _read_tokens(path: str, validation: float, test: float, stamp: tuple[int, int]) -> Corpus:
    return corpus_from_tokens(path, validation, test)
