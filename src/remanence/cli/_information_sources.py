"""Where the symbols of ``remanence mi`` come from: files, runs and language models."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remanence import probes
from remanence._validate import message
from remanence.experiments import Amount, as_texts, data_of, draw_sequences, is_text, symbols_of, vocabulary_of
from remanence.probes import SymbolKind, Symbols, as_symbols
from remanence.runs import Values
from remanence.train import Run

_OPENERS: Values = {".gz": gzip.open, ".xz": lzma.open}
REFUSED = (".zip", ".bz2", ".zst", ".7z", ".tar", ".tgz", ".lz4")
"""Endings of packed files: their bytes would be measured instead of what is in them."""

SAID_EVERY = 1 << 29
"""Bytes of a packed file or a pipe after which it is said how many there were: a small file may hold very many."""

_TRAINING_ROWS = 8
"""Sequences drawn for training to each one for validation, which is compared with as many stretches."""


@dataclass(frozen=True)
class Sampling:
    """How much is drawn from a model; None for the paper's amounts."""

    rows: int | None = None
    length: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class Source:
    """Symbols and what they are called."""

    name: str
    symbols: Symbols
    longest: int
    """Default of the largest lag."""
    quality: probes.TextQuality | None = None
    uniformity: probes.Uniformity | None = None


def file_sources(target: str, kind: SymbolKind, sampling: Sampling) -> Iterator[Source]:
    """One source for a file; three for the folder of a run: samples, training and validation data."""
    if Path(target).is_dir():
        yield from run_sources(Path(target), sampling)
        return
    with readable(target) as path:
        symbols = probes.read_symbols(path, kind)
    yield Source(target, symbols, _tenth(symbols))


@contextlib.contextmanager
def readable(target: str) -> Iterator[str]:
    """A file that can be mapped, with the symbols of any file: packed ones are unpacked, pipes are read to their end.

    Raises:
        ValueError: If it is packed in a way that is not read here, or the standard input is closed.

    Example:
        >>> with readable("mine.txt") as path:
        ...     path
        'mine.txt'
    """
    place = Path(target)
    if target == "-" and (sys.stdin is None or sys.stdin.closed):
        raise ValueError("the standard input is closed; name a file, or send something")
    if place.suffix.lower() in REFUSED:
        raise ValueError(message("files", "be plain, .gz or .xz", repr(target), "Unpack it first"))
    packed = _OPENERS.get(place.suffix.lower())
    if target == "-" or (packed is None and not place.is_fifo()):
        yield target
        return
    name = place.name
    if packed:
        name = place.stem  # a.fasta.gz holds a.fasta
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / (name or "symbols")
        _copy(place, packed or open, copy)
        yield str(copy)


def _copy(place: Path, opener: Any, copy: Path) -> None:
    try:
        with opener(place, "rb") as source, copy.open("wb") as target:
            said = 0
            while block := source.read(1 << 20):
                target.write(block)
                if target.tell() // SAID_EVERY > said:
                    said = target.tell() // SAID_EVERY
                    print(f"{place}: {said * SAID_EVERY >> 20:,} MB read", file=sys.stderr, flush=True)
            if target.tell() == 0:
                raise ValueError(f"{place} is empty")
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{place} cannot be unpacked: {error}") from error


def _tenth(symbols: Symbols) -> int:
    return max(symbols.longest // 10, 1)


def run_sources(folder: Path, sampling: Sampling) -> Iterator[Source]:
    """What a run's best weights say, and what they learnt from."""
    model, task = Run.open(folder).load()
    amount = Amount.for_task(task, sampling.rows, sampling.length)
    drawn = draw_sequences(model, task, amount, sampling.seed)
    training = data_of(task, "train", _TRAINING_ROWS * amount.rows)
    validation = data_of(task, "validation", amount.rows)
    quality: list[probes.TextQuality | None] = [None, None]
    if is_text(task):
        reference = as_texts(training, task.vocabulary)
        quality = [probes.text_quality(as_texts(part, task.vocabulary), reference) for part in (drawn, validation)]
    whole, held_out = (as_symbols(symbols_of(part, task)) for part in (training, validation))
    samples = as_symbols(symbols_of(drawn, task))
    lags = max(amount.length // 2, 1)
    if vocabulary_of(task) is not None:
        lags = _tenth(samples)
    lags = min(lags, whole.longest - 1, held_out.longest - 1)
    yield Source(f"{folder}: samples", samples, lags, quality[0])
    yield Source(f"{folder}: training", whole, lags)
    yield Source(f"{folder}: validation", held_out, lags, quality[1], _compared(whole, held_out))


def _compared(whole: Symbols, held_out: Symbols) -> probes.Uniformity | None:
    """None where the sets are too small to be cut."""
    try:
        return probes.uniformity(whole, held_out)
    except ValueError:
        return None


def language_model_source(name: str, sampling: Sampling, download: bool) -> Source:
    """Texts that a Hugging Face model draws."""
    model, tokenizer = probes.load_language_model(name, download=download)
    rows = sampling.rows or 500
    length = sampling.length or 1024
    texts = probes.sample_texts(model, tokenizer, rows, length, seed=sampling.seed)
    symbols = as_symbols([text for text in texts if text])
    return Source(f"{name}: samples", symbols, max(symbols.longest // 2, 1))
