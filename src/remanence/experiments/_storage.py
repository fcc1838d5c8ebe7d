"""Cells on storage that is no folder (s3://, gs://, ...): a cell works in a local folder, an archive mirrors it.

One archive a cell, so that checkpoint and metrics always belong together. It is written under another name and renamed
then: nobody ever reads half of one. No storage has locks, so whoever takes a cell up leaves a name beside its archive.
A worker that finds another name there, because it was thought lost, writes no more and ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
import signal
import tarfile
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec

from remanence._validate import message
from remanence.experiments._cell_state import ERROR
from remanence.runs import DamagedFileError, RunError, RunLockedError, locked, replace_file

PAUSE = 5.0
"""Seconds between two looks at what has changed in a cell."""
LOCK = "lock"
CHECKPOINTS = "checkpoint"
CHECKSUM_BYTES = hashlib.sha256().digest_size


def is_url(storage: str) -> bool:
    """Whether a storage is named by a protocol that fsspec may know, and is not a folder.

    Example:
        >>> is_url("s3://runs"), is_url("/mnt/runs"), is_url("file:///mnt/runs")
        (True, False, True)
    """
    return "://" in storage


class TakenOverError(RunError):
    """Another worker has taken up the cell that this one mirrors."""


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

    def push(self, draft: str = "draft") -> None:
        """Mirrors the folder as it is now; until it is whole, its name ends in ``draft``."""
        system, path = self._place
        system.makedirs(path.rpartition("/")[0], exist_ok=True)
        system.pipe_file(f"{path}.{draft}", packed(self.folder))
        system.mv(f"{path}.{draft}", path)

    def fetch(self) -> bool:
        """Puts what was mirrored in the place of the folder; False if there is nothing."""
        system, path = self._place
        try:
            contents = system.cat_file(path)
        except FileNotFoundError:
            return False
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with tarfile.open(fileobj=io.BytesIO(_whole(contents)), mode="r:") as archive:
                _require_files(archive.getmembers(), len(contents))
                # Nothing that is here goes before it is known that what comes is whole.
                for name in ("run", "measures"):
                    shutil.rmtree(self.folder / name, ignore_errors=True)
                (self.folder / ERROR).unlink(missing_ok=True)
                archive.extractall(self.folder, filter="data")
        except (tarfile.TarError, EOFError, ValueError) as error:
            told = f"{path} on {self.storage} is damaged: {error}; remove it, and the cell goes on from {self.folder}"
            raise DamagedFileError(told) from error
        return True

    def look(self) -> None:
        """Fetches what is new for somebody who only watches; a worker in the same folder is ahead of the storage."""
        if self.exists:
            self.folder.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(RunLockedError), locked(self.folder):
                self.fetch()

    @property
    def owner(self) -> str:
        """Name of the worker that has taken the cell up last; empty if none has."""
        system, path = self._place
        try:
            return system.cat_file(f"{path}.owner").decode(errors="replace")
        except FileNotFoundError:
            return ""

    def take(self, name: str) -> None:
        """Makes a worker the owner, and clears away what the one before has left half written."""
        system, path = self._place
        before = self.owner
        system.makedirs(path.rpartition("/")[0], exist_ok=True)
        system.pipe_file(f"{path}.owner", name.encode())
        if before.isalnum():  # a name with a slash might lead to anybody's file
            with contextlib.suppress(FileNotFoundError):
                system.rm_file(f"{path}.{before}")

    @contextlib.contextmanager
    def mirrored(self) -> Iterator[None]:
        """Takes a cell up, fetches it, mirrors it whenever it has changed, and once more in the end.

        Raises:
            TakenOverError: another worker has taken it up meanwhile; nothing of this one was mirrored since.
        """
        mirror = _Mirror(self, uuid.uuid4().hex)
        self.take(mirror.name)
        self.fetch()
        try:
            with mirror.watching():
                yield
        except KeyboardInterrupt:  # perhaps our own
            if not mirror.is_lost:
                raise
        if mirror.is_lost:
            words = f"{self.folder.name} on {self.storage} was taken up by another worker; run one driver at a time"
            replace_file(self.folder / ERROR, f"{words}\n".encode())
            raise TakenOverError(words)


class _Mirror:
    """Keeps an archive up to date from a thread, as long as the cell is this worker's."""

    def __init__(self, archive: Archive, name: str) -> None:
        self.archive = archive
        self.name = name
        self.is_lost = False
        self.over = threading.Event()
        self.may_interrupt = threading.current_thread() is threading.main_thread()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        watcher = threading.Thread(target=self._watch, args=(_changed(self.archive.folder),), daemon=True)
        watcher.start()
        try:
            with _heeding_interrupts() if self.may_interrupt else contextlib.nullcontext():
                yield
        finally:
            self.over.set()
            watcher.join()
            self._push()

    def _watch(self, seen: tuple[int, int]) -> None:
        while not self.over.wait(PAUSE):
            now = _changed(self.archive.folder)
            if now != seen and self._try_to_push():
                seen = now
            if self.is_lost:
                if self.may_interrupt:
                    _interrupt_main_thread()
                return

    def _try_to_push(self) -> bool:
        """Storages raise errors of many kinds: the log tells them, and the next look tries again."""
        try:
            self._push()
        except Exception as error:
            print(f"{self.archive.storage} was not reached, tried again in {PAUSE:g} s: {error!r}", flush=True)
            return False
        return True

    def _push(self) -> None:
        self.is_lost = self.is_lost or self.archive.owner != self.name
        if not self.is_lost:
            self.archive.push(self.name)


def packed(folder: Path) -> bytes:
    """A folder as an archive, with its checksum behind the end, where readers of archives do not look.

    Checkpoints come first: metrics may be ahead of them, as after a kill, never behind.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as archive:
        for file in sorted(_files(folder), key=lambda file: (CHECKPOINTS not in file.parts, file)):
            with contextlib.suppress(FileNotFoundError):  # replaced while we looked
                _add(archive, file, file.relative_to(folder).as_posix())
    return buffer.getvalue() + hashlib.sha256(buffer.getvalue()).digest()


def _whole(contents: bytes) -> bytes:
    """What :func:`packed` made, without its checksum; ValueError if it was damaged."""
    inside = contents[:-CHECKSUM_BYTES]
    if hashlib.sha256(inside).digest() != contents[-CHECKSUM_BYTES:]:
        raise ValueError("its checksum does not match")
    return inside


def _require_files(members: list[tarfile.TarInfo], room: int) -> None:
    """Sees that an archive holds what :func:`packed` puts in, files that have room in it; else a ValueError."""
    if not all(member.isfile() for member in members):
        raise ValueError("it holds something that is no file")
    if sum(member.size for member in members) > room:
        raise ValueError("its files claim to be larger than it is")


def _add(archive: tarfile.TarFile, file: Path, name: str) -> None:
    """Adds a file as it was when it was opened: it may be replaced by one of another size before it is read."""
    with file.open("rb") as opened:
        archive.addfile(archive.gettarinfo(arcname=name, fileobj=opened), opened)


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink() and file.name != LOCK]


def _changed(folder: Path) -> tuple[int, int]:
    """What tells whether anything was written: how many files there are, and when the last one was."""
    times = []
    for file in _files(folder):
        with contextlib.suppress(FileNotFoundError):
            times.append(file.stat().st_mtime_ns)
    return len(times), max(times, default=0)


@contextlib.contextmanager
def _heeding_interrupts() -> Iterator[None]:
    """A shell starts what runs in its background with Ctrl-C ignored, and our own interrupt would be lost too."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt_main_thread() -> None:
    """As Ctrl-C does: a run saves and ends. A real signal, which also wakes a thread that waits or sleeps."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
