"""Storage that fails: no room, files that may not grow, a small disk, folders that may only be read."""

from __future__ import annotations

import contextlib
import random
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.torture.children import Answer, Arm, ask, drop_powers
from tests.torture.operations import Operations, die, run_out_of_room
from tests.torture.part import Part
from tests.torture.subjects import COMMANDS, References
from tests.torture.table import FaultTable

SINGLE = ("train", "train text", "rl train")
"""Commands of one process, which prints little: a limit on the size of files holds for what it prints, too."""
REFUSALS = (2, 5)
"""Exit codes of what cannot be read or written."""
FAILED_RUNS = 1
"""Exit code of `compare` and `reproduce` if one of their workers failed."""
SMALLEST = 4096


class Storage(Part):
    """Takes the room or the rights from commands, gives them back, and lets the commands go on.

    Args:
        references: what the ends are held against.
        table: where the outcomes go.
        draws: of commands and limits.
    """

    def __init__(self, references: References, table: FaultTable, draws: random.Random) -> None:
        super().__init__(references, table, draws)
        self.turn = 0
        self.faults: dict[str, Callable[[str], Path]] = {
            "no room from some change of a file on": self._no_room,
            "no file may grow beyond a limit": self._limited_files,
            "a small disk that fills up": self._small_disk,
            "a folder that may only be read": self._read_only,
        }

    def attempt(self) -> None:
        """The next fault, on some command."""
        fault = list(self.faults)[self.turn % len(self.faults)]
        name = self.draws.choice(SINGLE if fault.startswith("no file") else list(COMMANDS))
        self.turn += 1
        self.take(fault, name)

    def take(self, fault: str, name: str) -> None:
        """One fault, one command."""
        try:
            folder = self.faults[fault](name)
        except Misbehaved as error:
            self.table.note(fault, name, "wrong", str(error))
            return
        self.table.note(fault, name, *self.references.judge(name, folder))
        _give_rights(folder)

    def _no_room(self, name: str) -> Path:
        folder = self._folder()
        at = self.draws.randrange(self.references[name].changes)
        self._ask(name, folder, Operations(folder, at, run_out_of_room, again=True))
        return folder

    def _limited_files(self, name: str) -> Path:
        folder = self._folder()
        limit = self.draws.randrange(SMALLEST, max(self.references[name].sizes))
        self._ask(name, folder, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        return folder

    def _small_disk(self, name: str) -> Path:
        """Without the right to mount one, files that may not grow stand for it."""
        size = self.draws.randrange(SMALLEST, sum(self.references[name].sizes))
        folder = self._folder()
        with small_disk(self.scratch / "disk", size) as disk:
            if disk is None:
                return self._no_room(name)
            self._ask(name, disk / "run", None)
            if (disk / "run").exists():
                shutil.copytree(disk / "run", folder)
        return folder

    def _read_only(self, name: str) -> Path:
        """A run that was killed, and that must not be written meanwhile; then it may."""
        folder = self._folder()
        folder.mkdir()
        at = self.draws.randrange(self.references[name].changes)
        ask([*COMMANDS[name], folder], self.scratch, arm=Operations(folder, at, die))
        for path in (*folder.rglob("*"), folder):
            path.chmod(path.stat().st_mode & ~0o222)
        self._ask(name, folder, drop_powers)
        _give_rights(folder)
        return folder

    def _ask(self, name: str, folder: Path, arm: Arm | None) -> None:
        answer = ask([*COMMANDS[name], folder], self.scratch, arm=arm)
        allowed = (0, *REFUSALS) if name in SINGLE else (0, FAILED_RUNS, *REFUSALS)
        if answer.code not in allowed or "Traceback" in answer.err or not (answer.code == 0 or answer.err.strip()):
            raise Misbehaved(answer)

    def _folder(self) -> Path:
        folder = self.scratch / "stored"
        shutil.rmtree(folder, ignore_errors=True)
        return folder


class Misbehaved(Exception):
    """A command that met the fault did not say so in one line and with an exit code of the list."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"exit code {answer.code}: {answer.err[-500:]}")


@contextlib.contextmanager
def small_disk(place: Path, size: int) -> Iterator[Path | None]:
    """A file system of so many bytes; None where this process may not mount one."""
    place.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _give_rights(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o700)
