"""Texts of any size as numbers: read block by block, numbered as symbols appear, kept in a file and mapped."""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np

BLOCK = 1 << 24
"""Bytes that are read at a time."""
_BYTE = 256
_CODE_POINTS = 0x110000


def spool_bytes(source: BinaryIO) -> np.ndarray:
    """The bytes of a stream: uint8 ``(N,)``, mapped.

    Example:
        >>> import io
        >>> spool_bytes(io.BytesIO(b"ab"))
        memmap([97, 98], dtype=uint8)
    """
    return _mapped((np.frombuffer(block, np.uint8) for block in _blocks(source)), np.uint8)


def spool_text(source: BinaryIO, words: bool, name: str) -> np.ndarray:
    """Characters or words of UTF-8 text, numbered from 0 as they appear: uint8 or int32 ``(N,)``, mapped.

    Args:
        source: of bytes.
        words: whether words are the symbols.
        name: of the source, for messages.

    Raises:
        ValueError: it is no UTF-8.

    Example:
        >>> import io
        >>> spool_text(io.BytesIO(b"to be or to"), True, "mine")
        memmap([0, 1, 2, 0], dtype=uint8)
    """
    count, number = _word_numbers() if words else _character_numbers()
    numbers = _mapped((number(text) for text in _texts(source, words, name)), np.int32)
    if count() > _BYTE:
        return numbers
    parts = range(0, len(numbers), BLOCK)
    return _mapped((numbers[at : at + BLOCK].astype(np.uint8) for at in parts), np.uint8)


def _blocks(source: BinaryIO) -> Iterator[bytes]:
    while block := source.read(BLOCK):
        yield block


def _texts(source: BinaryIO, words: bool, name: str) -> Iterator[str]:
    """Text without broken characters; and without broken words, if those count."""
    rest, offset, half = b"", 0, ""
    for block in _blocks(source):
        text, used = _decoded(rest + block, False, offset, name)
        rest, offset = (rest + block)[used:], offset + used
        if words:
            kept = len(text) - len(text.split()[-1]) if text and not text[-1].isspace() and text.split() else len(text)
            text, half = half + text[:kept] if kept else "", text[kept:] if kept else half + text
        yield text
    yield half + _decoded(rest, True, offset, name)[0]


def _decoded(raw: bytes, last: bool, offset: int, name: str) -> tuple[str, int]:
    try:
        return codecs.utf_8_decode(raw, "strict", last)
    except UnicodeDecodeError as error:
        place = offset + error.start
        raise ValueError(f"{name} is no UTF-8 text: {error.reason} at byte {place}. Read it as bytes") from error


def _character_numbers() -> tuple[Callable[[], int], Callable[[str], np.ndarray]]:
    """How many there are so far, and what turns text into numbers."""
    table, seen = np.full(_CODE_POINTS, -1, np.int32), 0

    def number(text: str) -> np.ndarray:
        nonlocal seen
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        new = np.flatnonzero(np.bincount(points, minlength=1))
        new = new[table[new] < 0]
        table[new] = np.arange(seen, seen + len(new))
        seen += len(new)
        return table[points]

    return lambda: seen, number


def _word_numbers() -> tuple[Callable[[], int], Callable[[str], np.ndarray]]:
    numbers: dict[str, int] = {}

    def number(text: str) -> np.ndarray:
        return np.array([numbers.setdefault(word, len(numbers)) for word in text.split()], np.int32)

    return lambda: len(numbers), number


def _mapped(parts: Iterator[np.ndarray], dtype: type) -> np.ndarray:
    """The parts one after the other, in a file that is gone with the last who looks at it."""
    with tempfile.TemporaryFile() as file:
        for part in parts:
            file.write(part.tobytes())
        file.flush()
        return np.memmap(file, dtype=dtype, mode="r") if file.tell() else np.zeros(0, dtype)
