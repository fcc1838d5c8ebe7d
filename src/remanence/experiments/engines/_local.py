"""Cells as processes of this machine, within its cores and its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from remanence.experiments._cell import LOG, Cell
from remanence.experiments._size import memory_of, size_of
from remanence.ops import warn_without_kernel
from remanence.runs import RunLockedError, available_cores, is_locked, require_regular

RETRIES = 3
"""How often a cell is started anew whose process was killed, as for want of memory; it goes on where it was."""


class LocalEngine:
    """Runs as many cells as there are cores, one thread each, and as fit into memory; the longest first.

    Args:
        workers: cells at a time; None is one a core.

    Example:
        >>> LocalEngine(2).poll()
        False
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or available_cores()
        self.memory = available_memory()
        self.waiting: list[Cell] = []
        self.working: dict[Path, tuple[Cell, subprocess.Popen[bytes]]] = {}
        self.kills: dict[Path, int] = {}

    def start(self, cells: Sequence[Cell]) -> None:
        """Takes on cells; warnings of theirs go to their logs, so a missing kernel is said here."""
        if cells:
            warn_without_kernel()
        self.waiting += sorted(cells, key=lambda cell: -size_of(cell.work))

    def poll(self) -> bool:
        """Starts what there is room for; whether anything is still waiting or at work."""
        for cell, process in list(self.working.values()):
            if process.poll() is not None:
                self._end(cell, process)
        # What another process has goes on there; to start it here would only burn time until it says so itself.
        free = [cell for cell in self.waiting if not is_locked(cell.folder)]
        while free and self._has_room(free[0]):
            cell = free.pop(0)
            self.waiting.remove(cell)
            self.working[cell.folder] = (cell, _start(cell))
        return bool(self.waiting or self.working)

    def _end(self, cell: Cell, process: subprocess.Popen[bytes]) -> None:
        del self.working[cell.folder]
        if process.returncode == RunLockedError.exit_code:  # another driver was quicker
            self.waiting.append(cell)
            return
        kills = self.kills.get(cell.folder, 0)
        if process.returncode < 0 and kills < RETRIES:
            self.kills[cell.folder] = kills + 1
            self.waiting.append(cell)

    def _has_room(self, cell: Cell) -> bool:
        """One cell always has; a further one needs a core, and memory beside what the others may come to need."""
        busy = [other.work for other, _ in self.working.values()]
        cores = sum(work.threads for work in busy) + cell.work.threads
        memory = sum(map(memory_of, busy)) + memory_of(cell.work)
        return not busy or (cores <= self.workers and memory <= self.memory)

    def stop(self) -> None:
        """Asks every cell to save and end, and waits for it."""
        self.waiting = []
        for _, process in self.working.values():
            process.terminate()
        for _, process in self.working.values():
            process.wait()


def _start(cell: Cell) -> subprocess.Popen[bytes]:
    threads = str(cell.work.threads)
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    command = [sys.executable, "-m", "remanence.experiments.worker", str(cell.folder), cell.storage]
    cell.folder.mkdir(parents=True, exist_ok=True)
    require_regular(cell.folder / LOG)
    with (cell.folder / LOG).open("ab") as output:
        # A session of its own: Ctrl-C reaches the command alone, which then asks every cell to save.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=environment, start_new_session=True
        )
    assert process.stdin is not None
    process.stdin.write(json.dumps(cell.work.to_dict()).encode())
    process.stdin.close()
    return process


def available_memory() -> float:
    """Bytes that are free now, or could be made so; half of all memory where the system does not say.

    Example:
        >>> available_memory() > 0
        True
    """
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):  # pragma: no cover - not Linux
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
