"""Sequences of symbols from whatever the user has: bytes, text, integers, files, the standard input."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import BinaryIO, Literal, TypeAlias, get_args

import numpy as np
import torch

from remanence._validate import message, one_of

from ._spool import spool_bytes, spool_dna, spool_numbers, spool_text

Unit: TypeAlias = Literal["characters", "words"]
SymbolKind: TypeAlias = Literal["auto", "bytes", "characters", "words", "dna", "npy"]
_SUFFIXES: dict[str, SymbolKind] = {".npy": "npy", ".fa": "dna", ".fasta": "dna", ".fna": "dna"}
_BYTE = 256


@dataclasses.dataclass(frozen=True)
class Symbols:
    """Sequences of symbols, one after the other.

    Example:
        >>> as_symbols(["abc", "de"]).starts
        array([0, 3, 5])
    """

    values: np.ndarray
    """``(N,)``, numbers from 0: uint8 if all are below 256, else int64, or int32 of a long text."""
    starts: np.ndarray
    """int64 ``(S + 1,)``: where each sequence begins, and N."""
    alphabet: int
    """One more than the greatest symbol."""

    @property
    def longest(self) -> int:
        """Length of the longest sequence."""
        return int(np.diff(self.starts).max())


def as_symbols(sequence: object, unit: Unit = "characters") -> Symbols:
    """Turns a sequence, or several, into numbers.

    Args:
        sequence: bytes; a text; integers, ``(L,)`` for one sequence or ``(S, L)`` for several; a list of any of these;
            a path, read as by :func:`read_symbols`; or :class:`Symbols`.
        unit: what a text is made of.

    Example:
        >>> as_symbols("to be or not to be", unit="words").alphabet
        4
    """
    one_of("unit", unit, ("characters", "words"))
    if isinstance(sequence, Symbols):
        return sequence
    if isinstance(sequence, Path):
        return read_symbols(sequence)
    return _pool(_parts(sequence, unit))


def read_symbols(path: Path | str, kind: SymbolKind = "auto") -> Symbols:
    r"""Reads symbols from a file, or from the standard input if the path is ``-``.

    Args:
        path: where.
        kind: ``"bytes"``; ``"characters"`` or ``"words"`` of UTF-8 text; ``"dna"``, the letters A, C, G and T of
            FASTA records, sequences broken at any other letter; ``"npy"``, an array of integers. ``"auto"`` goes by
            the name: ``.npy``, ``.fa``, ``.fasta``, ``.fna``, and bytes for all else. A file of bytes, or an array of
            uint8, is mapped; all else goes block by block into a temporary file of numbers. So any of them may be
            larger than the memory: different words are kept in memory, plus some 100 MB.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile(suffix=".fasta") as file:
        ...     _ = file.write(b">one\nACGT\nNNA"), file.flush()
        ...     read_symbols(file.name).starts
        array([0, 4, 5])
    """
    one_of("kind", kind, get_args(SymbolKind))
    place = Path(path)
    piped = str(path) == "-"
    if kind == "auto":
        kind = _SUFFIXES.get(place.suffix.lower(), "bytes")
    source = "standard input" if piped else str(path)
    if not piped:
        _require_contents(place)
    with contextlib.nullcontext(sys.stdin.buffer) if piped else place.open("rb") as stream:
        if kind == "npy":
            return _mapped_array(stream, source)
        if kind == "dna":
            return _dna(stream, source)
        numbers = spool_bytes(stream) if kind == "bytes" else spool_text(stream, kind == "words", source)
    if piped and kind != "words" and len(numbers) == 0:
        raise ValueError(f"{source} is empty")
    return _pool([numbers])


def _require_contents(place: Path) -> None:
    """Refuses what holds nothing, and what may have no end, as devices."""
    if place.exists() and not place.is_file():
        raise ValueError(message("path", "be a regular file", repr(str(place))))
    with place.open("rb") as file:
        if not file.read(1):
            raise ValueError(f"{place} is empty")


def _dna(stream: BinaryIO, source: str) -> Symbols:
    values, starts = spool_dna(stream)
    if len(values) == 0:
        raise ValueError(f"{source} holds no A, C, G or T")
    return Symbols(values, starts, int(values.max()) + 1)


def _mapped_array(stream: BinaryIO, source: str) -> Symbols:
    """An array in a file, mapped; of other numbers than bytes, numbered block by block."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            array = np.lib.format.open_memmap(_copied(stream, Path(folder)), mode="r")
    except (ValueError, TokenError) as error:  # of a header whose brackets do not close
        raise ValueError(f"{source} is not an .npy file: {error}") from error
    rows = len(_rows(array))
    if array.size == 0:
        raise ValueError(message("sequence", "hold at least two symbols", "an empty one"))
    starts = np.arange(rows + 1) * (array.size // rows)
    as_it_is = array.dtype == np.uint8 and array.flags.c_contiguous
    values = array.reshape(-1) if as_it_is else spool_numbers(array)
    return Symbols(values, starts, int(values.max()) + 1)


def _copied(stream: BinaryIO, folder: Path) -> Path:
    """A copy that can be mapped: a file of somebody else's may become shorter, and then to read it ends the process."""
    with (folder / "copy.npy").open("wb") as copy:
        shutil.copyfileobj(stream, copy)
    return folder / "copy.npy"


def _parts(sequence: object, unit: Unit) -> list[np.ndarray]:
    """One array of integers for each sequence; numbers in them may be any."""
    if isinstance(sequence, str):
        return [_text(sequence)] if unit == "characters" else _words([sequence])
    if isinstance(sequence, bytes | bytearray | memoryview):
        return [np.frombuffer(sequence, dtype=np.uint8)]
    if isinstance(sequence, torch.Tensor):
        sequence = sequence.detach().cpu().numpy()
    if isinstance(sequence, np.ndarray):
        return _rows(sequence)
    if not isinstance(sequence, Iterable):
        raise TypeError(message("sequence", "be bytes, text, integers or a list of them", type(sequence).__name__))
    items = list(sequence)
    if items and all(isinstance(item, str) for item in items):
        return [_text(item) for item in items] if unit == "characters" else _words(items)
    if items and all(np.ndim(item) > 0 or isinstance(item, bytes | bytearray) for item in items):
        return [part for item in items for part in _parts(item, unit)]
    return _rows(np.array(items))


def _text(text: str) -> np.ndarray:
    # Four bytes a character are its number, without a loop; half of a pair, which other encodings refuse, is one too.
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _words(texts: Sequence[str]) -> list[np.ndarray]:
    numbers: dict[str, int] = {}
    return [np.array([numbers.setdefault(word, len(numbers)) for word in text.split()], np.int64) for text in texts]


def _rows(array: np.ndarray) -> list[np.ndarray]:
    if array.dtype.kind == "f" and np.isnan(array.max(initial=0.0)):  # without a copy as large as the array
        raise ValueError(message("sequence", "hold whole numbers", "NaN", "Drop or encode the missing values"))
    if array.dtype.kind not in "iub" and array.size:
        hint = "Turn measurements into classes first, as with numpy.digitize"
        raise ValueError(message("sequence", "hold whole numbers", str(array.dtype), hint))
    if array.ndim not in (1, 2):
        raise ValueError(message("sequence", "have shape (L,) or (S, L)", str(array.shape)))
    return [array] if array.ndim == 1 else list(array)


def _pool(parts: list[np.ndarray]) -> Symbols:
    """Joins the sequences and numbers their symbols from 0."""
    lengths = [len(part) for part in parts]
    if sum(lengths) == 0:
        raise ValueError(message("sequence", "hold at least two symbols", "an empty one"))
    values = parts[0] if len(parts) == 1 else np.concatenate(parts)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    low = int(values.min())
    high = int(values.max())
    # What is mapped went through the spool, which has numbered its symbols.
    if low < 0 or (high >= _BYTE and not isinstance(values, np.memmap)):
        seen, values = np.unique(values, return_inverse=True)
        low = 0
        high = len(seen) - 1
    numbered = values.dtype == np.uint8 or (isinstance(values, np.memmap) and high >= _BYTE)
    if not numbered:
        values = values.astype(np.uint8 if high < _BYTE else np.int64)
    return Symbols(values, starts, high + 1)
