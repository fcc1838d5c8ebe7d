"""Cells as processes of this machine, within its cores and its memory."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from remanence.experiments._cell import LOG, TableCell
from remanence.experiments._size import memory_of, size_of
from remanence.ops import warn_without_kernel
from remanence.runs import Process, ProcessEngine, available_cores, start_process


class LocalEngine(ProcessEngine[TableCell]):
    """Runs as many cells as there are cores, one thread each, and as fit into memory; the longest first.

    Args:
        workers: cells at a time; None is one a core.

    Example:
        >>> LocalEngine(2).poll()
        False
    """

    retries = 3

    def __init__(self, workers: int | None = None) -> None:
        super().__init__()
        self.workers = workers or available_cores()
        self.memory = available_memory()

    def start(self, cells: Sequence[TableCell], /) -> None:
        """Takes on cells; warnings of theirs go to their logs, so a missing kernel is said here."""
        if cells:
            warn_without_kernel()
        super().start(sorted(cells, key=lambda cell: -size_of(cell.work)))

    def launch(self, job: TableCell) -> Process:
        """Starts the process of a cell."""
        return _start(job)

    def has_room(self, job: TableCell) -> bool:
        """One cell always has; a further one needs a core, and memory beside what the others may come to need."""
        busy = [other.work for other, _ in self.working.values()]
        cores = sum(work.threads for work in busy) + job.work.threads
        memory = sum(map(memory_of, busy)) + memory_of(job.work)
        return not busy or (cores <= self.workers and memory <= self.memory)


def _start(cell: TableCell) -> Process:
    cell.folder.mkdir(parents=True, exist_ok=True)
    arguments = [str(cell.folder), cell.storage]
    work = json.dumps(cell.work.to_dict())
    return start_process("remanence.experiments.worker", arguments, cell.folder / LOG, cell.work.threads, work)


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
