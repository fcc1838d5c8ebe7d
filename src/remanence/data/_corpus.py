"""Long texts as numbers: a vocabulary and three splits."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from remanence import _validate
from remanence.data._files import load_bytes
from remanence.data._readers import read_text, read_tokens

Level = Literal["char", "word"]
CorpusName = Literal["ptb-char", "ptb-word", "wikitext2-char", "wikitext2-word", "text8", "text8-prefix"]

END_OF_LINE = "<eos>"
_TEXT8_HELD_OUT = 5_000_000


@dataclass(frozen=True)
class Vocabulary:
    """The different symbols of a text; a token is a symbol's place among them.

    Args:
        symbols: Characters, words or tokens, all different.
        separator: What stands between symbols when they are written out.

    Example:
        >>> letters = Vocabulary(("a", "b"))
        >>> letters.encode("abba").tolist(), letters.decode(torch.tensor([1, 0]))
        ([0, 1, 1, 0], 'ba')
    """

    symbols: tuple[str, ...]
    separator: str = ""

    def __len__(self) -> int:
        return len(self.symbols)

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """Token of every symbol."""
        return {symbol: number for number, symbol in enumerate(self.symbols)}

    def encode(self, symbols: Iterable[str]) -> Tensor:
        """Turns symbols into tokens.

        Args:
            symbols: A string of characters, or a list of words.

        Returns:
            int64 `(N,)`.

        Raises:
            ValueError: If a symbol is not in the vocabulary.
        """
        try:
            return torch.tensor([self.numbers[symbol] for symbol in symbols], dtype=torch.int64)
        except KeyError as error:
            raise ValueError(_validate.message("symbols", "be in the vocabulary", str(error))) from None

    def decode(self, tokens: Tensor) -> str:
        """Writes tokens `(N,)` out."""
        return self.separator.join(self.symbols[token] for token in tokens.tolist())


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text in three splits.

    Args:
        train: Tokens `(N,)` in a small integer type.
        validation: Tokens `(N,)`.
        test: Tokens `(N,)`.
        vocabulary: All symbols of the three splits.

    Example:
        >>> corpus = Corpus.split_by_share(np.arange(100) % 3, Vocabulary(("a", "b", "c")), 0.1, 0.2)
        >>> len(corpus.train), len(corpus.validation), len(corpus.test)
        (70, 10, 20)
    """

    train: Tensor
    validation: Tensor
    test: Tensor
    vocabulary: Vocabulary

    @classmethod
    def split_by_share(cls, tokens: np.ndarray, vocabulary: Vocabulary, validation: float, test: float) -> Corpus:
        """Cuts one sequence into a beginning to train on, then validation, then test.

        Args:
            tokens: Integers `(N,)`.
            vocabulary: Their symbols.
            validation: Share of the validation part.
            test: Share of the test part.

        Raises:
            ValueError: If a part would have fewer than two tokens, so that there is nothing to predict.
        """
        sizes = [round(len(tokens) * share) for share in (validation, test)]
        train = len(tokens) - sum(sizes)
        if min(train, *sizes) < 2:
            parts = f"{train}, {sizes[0]} and {sizes[1]} for training, validation and test"
            raise ValueError(f"every split needs at least 2 tokens; got {parts} out of {len(tokens)}")
        return cls._of(np.split(tokens, [train, train + sizes[0]]), vocabulary)

    @classmethod
    def _of(cls, parts: Sequence[np.ndarray], vocabulary: Vocabulary) -> Corpus:
        # torch has no arithmetic for uint16 and uint32, and np.uint8 is enough for characters.
        dtype = np.int32
        if np.min_scalar_type(len(vocabulary) - 1) == np.uint8:
            dtype = np.uint8
        train, validation, test = (torch.from_numpy(part.astype(dtype)) for part in parts)
        return cls(train, validation, test, vocabulary)


def corpus_of_characters(parts: Sequence[str | bytes]) -> Corpus:
    """Numbers the characters of three texts in the order of their code points.

    Args:
        parts: Training, validation and test text.

    Example:
        >>> corpus_of_characters(["bab", "ab", "ba"]).train.tolist()
        [1, 0, 1]
    """
    points = [_code_points(part) for part in parts]
    limit = 1 + max(int(part.max(initial=0)) for part in points)
    present = np.flatnonzero(sum(np.bincount(part, minlength=limit) for part in points))
    vocabulary = Vocabulary(tuple(map(chr, present)))
    number = np.zeros(limit, dtype=np.min_scalar_type(len(present)))
    number[present] = np.arange(len(present))
    return Corpus._of([number[part] for part in points], vocabulary)


def corpus_of_words(parts: Sequence[Sequence[str]], separator: str = " ") -> Corpus:
    """Numbers the words of three texts.

    Args:
        parts: Words of the training, validation and test text.
        separator: What stands between words when they are written out.

    Returns:
        The corpus, its words in the order of their first appearance.

    Example:
        >>> corpus_of_words([["so", "be", "so"], ["be", "be"], ["so", "so"]]).train.tolist()
        [0, 1, 0]
    """
    numbers: dict[str, int] = {}
    tokens = [np.array([numbers.setdefault(word, len(numbers)) for word in part]) for part in parts]
    return Corpus._of(tokens, Vocabulary(tuple(numbers), separator))


def frequent_words(corpus: Corpus, count: int, other: str = "<unk>") -> Corpus:
    """Keeps the words that are most frequent in training and replaces all others by one token.

    Args:
        corpus: Of words.
        count: How many words are kept, the sign included.
        other: The sign; it must be one of the words.

    Returns:
        The corpus, its words in their old order.

    Example:
        >>> corpus = corpus_of_words([["so", "<unk>", "be", "so"], ["be", "be"], ["so", "so"]])
        >>> cut = frequent_words(corpus, 2)
        >>> cut.vocabulary.symbols, cut.validation.tolist()
        (('so', '<unk>'), [1, 1])
    """
    _validate.positive_int("count", count, 2)
    frequency = torch.bincount(corpus.train.long(), minlength=len(corpus.vocabulary))
    sign = corpus.vocabulary.numbers[other]
    frequency[sign] = len(corpus.train) + 1  # always among the kept
    kept = frequency.argsort(descending=True, stable=True)[:count].sort().values
    number = torch.full((len(frequency),), int((kept == sign).nonzero()))
    number[kept] = torch.arange(len(kept))
    parts = [number[part.long()].numpy() for part in (corpus.train, corpus.validation, corpus.test)]
    words = tuple(corpus.vocabulary.symbols[word] for word in kept.tolist())
    return Corpus._of(parts, Vocabulary(words, corpus.vocabulary.separator))


def words_of(text: str) -> list[str]:
    r"""Splits a text into words, with a sign for the end after every line.

    Example:
        >>> words_of("so be it\nso\n")
        ['so', 'be', 'it', '<eos>', 'so', '<eos>']
    """
    lines = text.removesuffix("\n").split("\n")
    return [word for line in lines for word in [*line.split(), END_OF_LINE]]


@functools.lru_cache(maxsize=6)
def load_corpus(name: CorpusName) -> Corpus:
    """Reads one of the known texts.

    Args:
        name: "ptb-char", "ptb-word", "wikitext2-char", "wikitext2-word", "text8", or "text8-prefix": the first
            74,081,952 characters of text8, whose results must not be compared with those on the whole.

    Returns:
        The corpus, kept in memory for the next call.

    Raises:
        DataError: If a file cannot be had or is damaged.

    Example:
        >>> load_corpus("ptb-chars")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: `name` must be one of ...; got 'ptb-chars'. Did you mean 'ptb-char'?
    """
    _validate.one_of("name", name, get_args(CorpusName))
    if name == "text8":
        return _load_text8("text8/text8")
    if name == "text8-prefix":
        return _load_text8("text8/text8.first74081952.txt")
    prefixes = {"ptb-char": "ptb/ptb.char.", "ptb-word": "ptb/ptb."}
    prefix = prefixes.get(name, "wikitext-2/")
    texts = [load_bytes(f"{prefix}{part}.txt").decode("utf-8") for part in ("train", "valid", "test")]
    if name.endswith("-word"):
        return corpus_of_words([words_of(text) for text in texts])
    if name == "ptb-char":  # in its files a blank follows every symbol
        texts = [text[::2] for text in texts]
    return corpus_of_characters(texts)


def corpus_from_text(path: str | Path, level: Level, validation: float, test: float) -> Corpus:
    """Reads a user's text file; its end is kept for validation and test.

    Args:
        path: UTF-8 text, packed with gzip or xz or not.
        level: "char" or "word"; words are separated by spaces, and a token is added for the end of every line.
        validation: Share of the validation part.
        test: Share of the test part.

    Returns:
        The corpus; its vocabulary is that of the whole file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "a.txt"
        ...     _ = path.write_text("abracadabra" * 10)
        ...     print(len(corpus_from_text(path, "char", 0.1, 0.1).vocabulary))
        5
    """
    text = read_text(path)
    if level == "char":
        whole = corpus_of_characters([text, "", ""])
    else:
        whole = corpus_of_words([words_of(text), [], []])
    return Corpus.split_by_share(whole.train.numpy(), whole.vocabulary, validation, test)


def corpus_from_tokens(path: str | Path, validation: float, test: float) -> Corpus:
    """Reads a user's token file; its end is kept for validation and test.

    Args:
        path: A one-dimensional integer array (.npy), or text with tokens between spaces and line ends.
        validation: Share of the validation part.
        test: Share of the test part.

    Returns:
        The corpus; its vocabulary is that of the whole file, in sorted order.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "a.txt"
        ...     _ = path.write_text("7 -1 7 7 " * 10)
        ...     print(corpus_from_tokens(path, 0.1, 0.1).vocabulary.symbols)
        ('-1', '7')
    """
    symbols, tokens = np.unique(read_tokens(path), return_inverse=True)
    return Corpus.split_by_share(tokens, Vocabulary(tuple(map(str, symbols)), separator=" "), validation, test)


def _load_text8(name: str) -> Corpus:
    text = load_bytes(name)
    cuts = [len(text) - 2 * _TEXT8_HELD_OUT, len(text) - _TEXT8_HELD_OUT]
    return corpus_of_characters([text[: cuts[0]], text[cuts[0] : cuts[1]], text[cuts[1] :]])


def _code_points(text: str | bytes) -> np.ndarray:
    """Gives the code points of a text; bytes must be ASCII, which spares the detour over four bytes a character."""
    if isinstance(text, bytes):
        return np.frombuffer(text, np.uint8)
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)
