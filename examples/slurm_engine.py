"""Fill the cells of a table as SLURM jobs: an engine of one's own.

An engine has three methods and keeps no results: a cell's folder tells where it stands. The folder must lie on a disk
that all nodes see. Run it again after anything went wrong; cells that are done stay as they are.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from remanence.experiments import TableCell, entries, find_experiment, plan_cells, run_cells


class SlurmEngine:
    """One job a cell.

    Args:
        options: further ones of ``sbatch``, such as ``["--partition=long", "--time=24:00:00"]``.
    """

    def __init__(self, options: Sequence[str] = ()) -> None:
        self.options = list(options)
        self.jobs: list[str] = []

    def start(self, cells: Sequence[TableCell]) -> None:
        """Submits every cell; SLURM decides when and where each is run."""
        for cell in cells:
            self.jobs.append(_output("sbatch", *self._arguments(cell)).strip())

    def _arguments(self, cell: TableCell) -> list[str]:
        cell.folder.mkdir(parents=True, exist_ok=True)
        work = cell.folder / "work.json"
        work.write_text(json.dumps(cell.work.to_dict()), encoding="utf-8")
        command = [sys.executable, "-m", "remanence.experiments.worker", str(cell.folder.absolute()), cell.storage]
        return [
            "--parsable",
            "--requeue",  # a job whose node died is run again, and goes on from the last checkpoint
            f"--cpus-per-task={cell.work.threads}",
            f"--output={cell.folder.absolute()}/output.txt",
            "--open-mode=append",
            *self.options,
            f"--wrap=exec {shlex.join(command)} < {shlex.quote(str(work.absolute()))}",
        ]

    def poll(self) -> bool:
        """Whether SLURM still knows one of the jobs."""
        known = set(_output("squeue", "--noheader", "--format=%i", "--me").split())
        self.jobs = [job for job in self.jobs if job in known]
        return bool(self.jobs)

    def stop(self) -> None:
        """Sends SIGTERM to every job, on which a cell saves itself, and waits."""
        if self.jobs:
            subprocess.run(["scancel", "--signal=TERM", "--full", *self.jobs], check=False)
        while self.poll():
            time.sleep(1.0)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(scale: str = "smoke", folder: str = "runs/reproduce", pause: float = 10.0) -> list[str]:
    """Runs two cells of a table and returns their results in words."""
    table = find_experiment("kerg2020/table-2")
    cells = plan_cells(table, scale, Path(folder), ["model=LSTM,RelRNN"], seeds=[0])
    failures = run_cells(cells, SlurmEngine(), pause=pause)
    for failure in failures:
        print(f"{failure.label} failed; see {failure.log}\n{failure.traceback}")
    return [f"{entry.place['model']}: {entry.words}" for entry in entries(table, cells)]


if __name__ == "__main__":
    print(*main(), sep="\n")
