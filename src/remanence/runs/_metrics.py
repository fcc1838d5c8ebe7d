"""One line of JSON per measurement, and TensorBoard events if it is installed."""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from remanence.runs._files import read_file, replace_file, require_no_link, require_regular, storage_error
from remanence.runs._history import is_line
from remanence.runs._plain import Values
from remanence.runs._result import KIND, VERSION, NewerVersionError, ResultError, check_version, tag

LINE_VERSION = 1
"""Of every line of the file; lines without one are of version 1."""

Value = TypeVar("Value")

Observer = Callable[[Values], None]
"""Whoever watches a run: called with every line that it writes down, and with its messages."""


class MetricsFile:
    """The measurements of a run, ``metrics.jsonl``, in the order in which they were made.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = MetricsFile(Path(folder) / "metrics.jsonl")
        ...     file.append({"kind": "train", "update": 5, "loss": 0.5})
        ...     file.cut_after(4)
        ...     file.read()
        []
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, line: Values) -> None:
        """Adds one measurement; numbers that are not finite become null, which JSON has a word for."""
        require_regular(self.path)
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_text(line))
        except OSError as error:
            raise storage_error(self.path, error) from error

    def sync(self) -> None:
        """Waits until the disk has every line: called before a checkpoint, which must not be newer than they are."""
        if not self.path.exists():
            return
        try:
            with self.path.open("rb") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise storage_error(self.path, error) from error

    def read(self) -> list[Values]:
        """All whole lines; a last one that a kill has torn is left out.

        Raises:
            NewerVersionError: If a newer version of the package wrote a line.
        """
        return read_lines(self.path)

    def read_and_check(self) -> tuple[list[Values], list[int]]:
        """All measurements, and the numbers of lines that are none, from 1; not of a last one that a kill has torn."""
        text = _text_of(self.path)
        lines = _parsed_lines(self.path, text)
        damaged = [number for number, line in enumerate(lines, start=1) if not is_line(line)]
        if damaged and damaged[-1] == len(lines) and not text.endswith("\n"):
            damaged.pop()
        return [line for line in lines if is_line(line)], damaged

    def cut_after(self, update: int) -> None:
        """Drops what was measured after an update: a resumed run will measure it again."""
        if self.path.exists():
            kept = [line for line in self.read() if is_line(line) and line["update"] <= update]
            replace_file(self.path, "".join(map(_text, kept)).encode())


def read_lines(path: Path) -> list[Values]:
    """Reads a metrics file, whole lines only.

    Example:
        >>> read_lines(Path("no such file"))
        []
    """
    return [line for line in _parsed_lines(path, _text_of(path)) if line is not None]


def _text_of(path: Path) -> str:
    if not os.path.lexists(path):
        return ""
    return read_file(path).decode("utf-8", errors="replace")


def _text(line: Values) -> str:
    """A measurement as the file has it, with the version of its form."""
    finite = {key: _finite(value) for key, value in line.items()}
    return json.dumps({**tag(line[KIND], LINE_VERSION), **finite}) + "\n"


def _parsed_lines(path: Path, text: str) -> list[Any]:
    try:
        return [_parsed(line) for line in text.splitlines()]
    except NewerVersionError as error:
        raise NewerVersionError(f"{path}: {error}") from error


def _parsed(line: str) -> Any:
    """What a line says, without its version; None if a kill has torn it, or it is damaged."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or VERSION not in found:
        return found
    try:
        check_version(found, found.get(KIND, ""), LINE_VERSION)
    except NewerVersionError:
        raise
    except ResultError:
        return None
    return {name: value for name, value in found.items() if name != VERSION}


def _finite(value: Value) -> Value | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class TensorBoard:
    """TensorBoard events next to the metrics; without the package it says so once and does nothing.

    Args:
        folder: Where events go.
        update: Update that the run starts from; later events of a killed process are hidden.
        say: Is told when TensorBoard is missing.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     TensorBoard(Path(folder), 0, say=lambda text: None).close()
    """

    def __init__(self, folder: Path, update: int, say: Callable[[str], None]) -> None:
        self._writer: Any = None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            say("no TensorBoard events: pip install tensorboard to get them; metrics.jsonl has all measurements")
            return
        require_no_link(folder)
        self._folder = folder
        self._before = threading.excepthook
        threading.excepthook = self._heed
        with self._storage():
            self._writer = SummaryWriter(str(folder), purge_step=update + 1)

    def _heed(self, failed: threading.ExceptHookArgs) -> None:
        """The thread that writes shows no traceback of a full disk: the next call raises the same error in words."""
        if not isinstance(failed.exc_value, OSError):
            self._before(failed)

    @contextlib.contextmanager
    def _storage(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise storage_error(self._folder, error) from error

    def add(self, line: Values) -> None:
        """Adds the numbers of one measurement."""
        if self._writer is None:
            return
        with self._storage():
            for name, value in line.items():
                if isinstance(value, float):
                    self._writer.add_scalar(f"{line['kind']}/{name}", value, line["update"])

    def close(self) -> None:
        """Writes out what is left; what finds no room is in the metrics all the same."""
        if self._writer is None:
            return
        with contextlib.suppress(OSError):
            self._writer.close()
        threading.excepthook = self._before


class NoEvents:
    """What a process that owns no folder writes: nothing.

    Example:
        >>> NoEvents().add({"loss": 0.5})
    """

    def add(self, line: Values) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""
