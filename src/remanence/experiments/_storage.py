"""Cells on storage that is no folder (s3://, gs://, ...): a cell works in a local folder, an archive mirrors it.

One archive a cell, so that checkpoint and metrics always belong together. It is written under another name and renamed
then: nobody ever reads half of one. Nothing locks it; engines give every cell to one worker at a time.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tarfile
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec

from remanence._validate import message

PAUSE = 5.0
"""Seconds between two looks at what has changed in a cell."""
LOCK = "lock"
CHECKPOINTS = "checkpoint"
ERROR = "error.txt"


def is_url(storage: str) -> bool:
    """Whether a storage is named by a protocol that fsspec may know, and is not a folder.

    Example:
        >>> is_url("s3://runs"), is_url("/mnt/runs"), is_url("file:///mnt/runs")
        (True, False, True)
    """
    return "://" in storage


@dataclass(frozen=True)
class Archive:
    """The mirror of one cell.

    Args:
        storage: where all of them are, such as ``"s3://bucket/runs"``.
        folder: of the cell, on this machine.

    Example:
        >>> Archive("memory://runs", Path("copy-LSTM-s0")).exists
        False
    """

    storage: str
    folder: Path

    @property
    def _place(self) -> tuple[Any, str]:
        try:
            system, root = fsspec.core.url_to_fs(self.storage)
        except (ImportError, ValueError) as error:
            hint = f"It needs a package of its own ({error})"
            wanted = "be a folder or a URL that fsspec knows"
            raise ValueError(message("storage", wanted, repr(self.storage), hint)) from None
        return system, f"{root.rstrip('/')}/{self.folder.name}.tar"

    @property
    def exists(self) -> bool:
        """Whether anything was mirrored yet."""
        system, path = self._place
        return system.exists(path)

    def push(self) -> None:
        """Mirrors the folder as it is now."""
        system, path = self._place
        system.makedirs(path.rpartition("/")[0], exist_ok=True)
        unfinished = f"{path}.{uuid.uuid4().hex}"
        system.pipe_file(unfinished, packed(self.folder))
        system.mv(unfinished, path)

    def fetch(self) -> bool:
        """Puts what was mirrored in the place of the folder; False if there is nothing."""
        system, path = self._place
        try:
            contents = system.cat_file(path)
        except FileNotFoundError:
            return False
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("run", "measures"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / ERROR).unlink(missing_ok=True)
        with tarfile.open(fileobj=io.BytesIO(contents)) as archive:
            archive.extractall(self.folder, filter="data")
        return True

    @contextlib.contextmanager
    def mirrored(self) -> Iterator[None]:
        """Fetches a cell, mirrors it whenever it has changed, and once more in the end."""
        self.fetch()
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(over, _changed(self.folder)), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
            self.push()

    def _watch(self, over: threading.Event, seen: tuple[int, int]) -> None:
        while not over.wait(PAUSE):
            now = _changed(self.folder)
            if now != seen and self._try_to_push():
                seen = now

    def _try_to_push(self) -> bool:
        """Storages raise errors of many kinds: the log tells them, and the next look tries again."""
        try:
            self.push()
        except Exception as error:
            print(f"{self.storage} was not reached, tried again in {PAUSE:g} s: {error!r}", flush=True)
            return False
        return True


def packed(folder: Path) -> bytes:
    """A folder as an archive. Checkpoints come first: metrics may be ahead of them, as after a kill, but never behind.

    Args:
        folder: of a cell.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as archive:
        for file in sorted(_files(folder), key=lambda file: (CHECKPOINTS not in file.parts, file)):
            with contextlib.suppress(FileNotFoundError):  # replaced while we looked
                _add(archive, file, file.relative_to(folder).as_posix())
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, file: Path, name: str) -> None:
    """Adds a file as it was when it was opened: it may be replaced by one of another size before it is read."""
    with file.open("rb") as opened:
        archive.addfile(archive.gettarinfo(arcname=name, fileobj=opened), opened)


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and file.name != LOCK]


def _changed(folder: Path) -> tuple[int, int]:
    """What tells whether anything was written: how many files there are, and when the last one was."""
    times = []
    for file in _files(folder):
        with contextlib.suppress(FileNotFoundError):
            times.append(file.stat().st_mtime_ns)
    return len(times), max(times, default=0)
