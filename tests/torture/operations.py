"""Changes of files as a process makes them: counted, and something done at one of them."""

from __future__ import annotations

import errno
import mmap
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "shutil.rmtree")
NEED_ROOM = ("open", "os.mkdir", "os.fsync")

Deed = Callable[[str, Path, int], None]
"""Is told the kind of change, the file, and how many of its bytes the disk has for certain."""


class Operations:
    """Counts, over all processes of a command, what they do to files: open to write, rename, remove, make, sync.

    To be given to a command as its ``arm``. Two processes that change files at the same instant may count as one.

    Args:
        folder: only changes below it count.
        at: the change at which the deed is done, counted from 0; None only counts.
        deed: what is done.
        again: whether the deed is done at all later changes, too.
    """

    def __init__(self, folder: Path, at: int | None = None, deed: Deed | None = None, again: bool = False) -> None:
        self.folder = str(folder)
        self.at = at
        self.deed = deed
        self.again = again
        self._shared = mmap.mmap(-1, 8)  # forked processes see the same number
        self._synced: dict[str, int] = {}

    @property
    def count(self) -> int:
        """How many there were."""
        return int.from_bytes(self._shared[:], "little")

    def __call__(self) -> None:
        """Begins to count in this process and those forked from it."""
        sys.addaudithook(self._hear)
        sync = os.fsync

        def fsync(descriptor: int) -> None:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            self._meet("os.fsync", path)
            sync(descriptor)
            self._synced[path] = os.fstat(descriptor).st_size

        os.fsync = fsync

    def _hear(self, event: str, arguments: tuple) -> None:
        if event == "open":
            path, _, flags = arguments
            if flags & WRITES and isinstance(path, str | Path):
                self._meet(event, str(path))
                self._note_safe(Path(path))
        elif event in CHANGES:
            self._meet(event, str(arguments[0]))

    def _note_safe(self, path: Path) -> None:
        """What a file holds when it is first opened is safe; of a new one nothing is."""
        if path.is_file():
            self._synced.setdefault(str(path), path.stat().st_size)
        else:
            self._synced[str(path)] = 0

    def _meet(self, event: str, path: str) -> None:
        if not path.startswith(self.folder):
            return
        number = self.count
        self._shared[:] = (number + 1).to_bytes(8, "little")
        if self.at is not None and self.deed is not None and (number == self.at or (self.again and number > self.at)):
            self.deed(event, Path(path), self._safe(Path(path)))

    def _safe(self, path: Path) -> int:
        """Bytes of a file that the disk has; all of one that this process has not opened to write."""
        if str(path) in self._synced:
            return self._synced[str(path)]
        return path.stat().st_size if path.is_file() else 0


def die(event: str, path: Path, safe: int) -> None:
    """The process is killed before the change."""
    os.kill(os.getpid(), signal.SIGKILL)


def lose_power(event: str, path: Path, safe: int) -> None:
    """The process is killed; a file that was about to be synced loses the second half of what was not."""
    if event == "os.fsync" and path.is_file():
        os.truncate(path, safe + (path.stat().st_size - safe) // 2)
    die(event, path, safe)


def run_out_of_room(event: str, path: Path, safe: int) -> None:
    """What needs room finds none."""
    if event in NEED_ROOM:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
