"""Files of any size as numbers: read block by block, numbered as symbols appear, kept in a file and mapped."""

from __future__ import annotations

import codecs
import itertools
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np

BLOCK = 1 << 22
"""Bytes that are read at a time; as words in memory they take some twenty times as much."""
_BYTE = 256
_CODE_POINTS = 0x110000
# Codes of bytes that are no base.
_BREAK = 4
_BLANK = 5


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

    What is no UTF-8 is a ``ValueError`` that names the source.

    Example:
        >>> import io
        >>> spool_text(io.BytesIO(b"to be or to"), True, "mine")
        memmap([0, 1, 2, 0], dtype=uint8)
    """
    count, number = _word_numbers() if words else _character_numbers()
    # How many different ones there are, and so whether bytes are enough, is known at the end only.
    numbers = _mapped((number(text) for text in _texts(source, words, name)), np.int32)
    if count() > _BYTE:
        return numbers
    parts = range(0, len(numbers), BLOCK)
    return _mapped((numbers[at : at + BLOCK].astype(np.uint8) for at in parts), np.uint8)


def spool_dna(source: BinaryIO) -> tuple[np.ndarray, np.ndarray]:
    r"""Runs of A, C, G and T in FASTA records, as 0 to 3: uint8 ``(N,)``, mapped, and where they begin: int64.

    Header lines and letters that are no base break a run; white space does not.

    Example:
        >>> import io
        >>> spool_dna(io.BytesIO(b">one\nAC\nGT\nNNA"))
        (memmap([0, 1, 2, 3, 0], dtype=uint8), array([0, 4, 5]))
    """
    codes = np.full(_BYTE, _BREAK, np.uint8)
    codes[list(b" \t\n\r\x0b\x0c")] = _BLANK
    for number, letter in enumerate(b"ACGT"):
        # In ASCII a small letter is 32 more; genomes mark repeats by them.
        codes[[letter, letter + 32]] = number
    breaks = [np.zeros(1, np.int64)]
    length = 0

    def bases() -> Iterator[np.ndarray]:
        nonlocal length
        for block, header in _with_headers(source):
            kinds = codes[block]
            kinds[header] = _BREAK
            kept = kinds < _BREAK
            places = length + np.cumsum(kept)
            breaks.append(np.unique(places[kinds == _BREAK]))
            length += int(kept.sum())
            yield kinds[kept]

    values = _mapped(bases(), np.uint8)
    return values, np.unique(np.concatenate([*breaks, [length]]))


def _with_headers(source: BinaryIO) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of bytes, and which of them are of lines that begin with ``>``."""
    inside = False
    fresh = True
    for raw in _blocks(source):
        block = np.frombuffer(raw, np.uint8)
        ends = np.append(np.flatnonzero(block == ord("\n")), len(block))
        begins = np.flatnonzero(block == ord(">"))
        begins = begins[np.where(begins > 0, block[begins - 1] == ord("\n"), fresh)]
        header = np.zeros(len(block), bool)
        # The header line began in the block before.
        if inside:
            begins = np.append(0, begins)
        for begin in begins.tolist():
            header[begin : ends[np.searchsorted(ends, begin)]] = True
        inside = bool(header[-1])
        fresh = bool(block[-1] == ord("\n"))
        yield block, header


def spool_numbers(array: np.ndarray) -> np.ndarray:
    """Integers of an array ``(L,)`` or ``(S, L)``, numbered from 0 by their size: uint8 or int32 ``(N,)``, mapped.

    Example:
        >>> spool_numbers(np.array([[7, -1], [7, 7]]))
        memmap([1, 0, 1, 1], dtype=uint8)
    """
    seen = np.zeros(0, array.dtype)
    for block in _pieces(array):
        seen = np.union1d(seen, block)
    dtype = np.uint8 if len(seen) <= _BYTE else np.int32
    return _mapped((np.searchsorted(seen, block).astype(dtype) for block in _pieces(array)), dtype)


def _pieces(array: np.ndarray) -> Iterator[np.ndarray]:
    """The numbers of an array, row after row, a block at a time."""
    step = max(1, BLOCK // array.dtype.itemsize)
    for row in [array] if array.ndim == 1 else array:
        for at in range(0, len(row), step):
            yield np.asarray(row[at : at + step])


def _blocks(source: BinaryIO) -> Iterator[bytes]:
    while block := source.read(BLOCK):
        yield block


def _texts(source: BinaryIO, words: bool, name: str) -> Iterator[str]:
    """Text without broken characters; and without broken words, if those count."""
    rest = b""
    offset = 0
    half = ""
    for block in _blocks(source):
        text, used = _decoded(rest + block, False, offset, name)
        rest = (rest + block)[used:]
        offset = offset + used
        if words:
            kept = _whole_words(text)
            whole = half + text[:kept]
            half = text[kept:]
            if kept == 0:  # a word longer than a block goes on
                half = whole + half
                whole = ""
            text = whole
        yield text
    yield half + _decoded(rest, True, offset, name)[0]


def _whole_words(text: str) -> int:
    """Where the last word begins that the next block may go on with; the end if a blank stands there."""
    if not text or text[-1].isspace():
        return len(text)
    return len(text) - len(text.split()[-1])


def _decoded(raw: bytes, last: bool, offset: int, name: str) -> tuple[str, int]:
    try:
        return codecs.utf_8_decode(raw, "strict", last)
    except UnicodeDecodeError as error:
        place = offset + error.start
        raise ValueError(f"{name} is not UTF-8 text: {error.reason} at byte {place}. Read it as bytes") from error


def _character_numbers() -> tuple[Callable[[], int], Callable[[str], np.ndarray]]:
    """How many there are so far, and what turns text into numbers."""
    table = np.full(_CODE_POINTS, -1, np.int32)
    seen = 0

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
    numbers: dict[str, int] = defaultdict(itertools.count().__next__)

    def number(text: str) -> np.ndarray:
        return np.fromiter(map(numbers.__getitem__, text.split()), np.int32)

    return lambda: len(numbers), number


def _mapped(parts: Iterator[np.ndarray], dtype: type) -> np.ndarray:
    """The parts one after the other, in a file that is gone with the last who looks at it."""
    with tempfile.TemporaryFile() as file:
        for part in parts:
            file.write(part.tobytes())
        file.flush()
        return np.memmap(file, dtype=dtype, mode="r") if file.tell() else np.zeros(0, dtype)
