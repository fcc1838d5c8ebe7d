"""Kills of `reproduce` on a Ray cluster: of the driver or of a worker; the end is held against the local engine."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.torture.part import Part
from tests.torture.subjects import REPRODUCE, References, end_of, same
from tests.torture.table import FaultTable

NAME = "reproduce (engine ray)"
FAULT = "{} to the driver or a worker on a Ray cluster"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MOST = 3
"""Kills of one run; then it is left alone."""
LONGEST = 60.0
"""Seconds after which the driver is killed at the latest, if it is still at work."""
LIMIT = 900.0
A_WORKER = 0.5
"""Share of the kills, while a worker is at a cell, that hit the worker and not the driver."""
MARK = "REMANENCE_TORTURE"
"""Variable by which the processes of the cluster are known."""


class Cluster(Part):
    """Kills `reproduce` with the Ray engine. The cluster is started once, and ends with :meth:`close`.

    Args:
        references: what the ends are held against: those of the local engine.
        table: where the outcomes go.
        draws: of moments, signals and victims.
    """

    def __init__(self, references: References, table: FaultTable, draws: random.Random) -> None:
        super().__init__(references, table, draws)
        self.address = ""

    def attempt(self) -> None:
        """One run, killed once or more."""
        if not self.address:
            self.address = self._start()
        folder = self.scratch / "on-ray"
        shutil.rmtree(folder, ignore_errors=True)
        number = self.draws.choice(SIGNALS)
        kills, trouble = self._kill_until_done(folder, number)
        outcome, seen = ("wrong", trouble) if trouble else self._judge(folder)
        fault = FAULT.format(signal.Signals(number).name)
        self.table.note(fault, NAME, outcome, f"killed {kills} times: {seen}", max(kills, 1))

    def close(self) -> None:
        """Ends the cluster, if one was started."""
        if self.address:
            for pid in self._members(""):
                _try_kill(pid, signal.SIGKILL)

    def _start(self) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [Path(sys.executable).with_name("ray"), "start", "--head", "--num-cpus=2", f"--port={port}"]
        command += ["--node-ip-address=127.0.0.1", "--include-dashboard=false", f"--temp-dir={self.scratch / 'ray'}"]
        subprocess.run(command, check=True, capture_output=True, env=self._environment())
        return f"127.0.0.1:{port}"

    def _run(self, folder: Path) -> subprocess.Popen:
        """The command in a process of its own: a fork would take Ray's threads for its own."""
        words = [*REPRODUCE.split(), "--folder", str(folder), "--engine", "ray", "--address", self.address]
        command = [sys.executable, "-m", "remanence", *words]
        with (self.scratch / "ray.out").open("wb") as out, (self.scratch / "ray.err").open("wb") as err:
            return subprocess.Popen(command, stdout=out, stderr=err, env=self._environment())

    def _kill_until_done(self, folder: Path, number: int) -> tuple[int, str]:
        """Kills the driver until it is done, or a worker once, as a machine short of memory would."""
        for kills in range(MOST):
            driver = self._run(folder)
            with contextlib.suppress(subprocess.TimeoutExpired):
                driver.wait(self.draws.uniform(1.0, LONGEST))
                return kills, self._trouble()
            workers = self._members("ray::fill")
            if workers and self.draws.random() < A_WORKER:
                _try_kill(workers[0], signal.SIGKILL)
                driver.wait(LIMIT)
                return kills + 1, self._trouble()
            _try_kill(driver.pid, number)
            driver.wait(LIMIT)
            if self._trouble():
                return kills + 1, self._trouble()
        return MOST, ""

    def _trouble(self) -> str:
        err = (self.scratch / "ray.err").read_text(errors="replace")
        return err[-700:] if "Traceback" in err else ""

    def _judge(self, folder: Path) -> tuple[str, str]:
        code = self._run(folder).wait(LIMIT)
        if code:
            return "lost", f"exit code {code}: {(self.scratch / 'ray.err').read_text(errors='replace')[-500:]}"
        difference = same(end_of(folder), self.references["reproduce"].end)
        return ("wrong", difference) if difference else ("survived", "")

    def _members(self, word: str) -> list[int]:
        """Processes of this very cluster whose command has a word."""
        commands, parents, members = {}, {}, set()
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                pid = int(entry.name)
                commands[pid] = (entry / "cmdline").read_bytes().decode(errors="replace")
                parents[pid] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if f"{MARK}={self.scratch}".encode() in (entry / "environ").read_bytes():
                    members.add(pid)
        for pid in sorted(parents):  # a worker has written its title over its environment, but has a parent that knows
            if parents[pid] in members:
                members.add(pid)
        return [pid for pid in sorted(members) if word in commands[pid]]

    def _environment(self) -> dict[str, str]:
        patient = {"RAY_worker_niceness": "0", "RAY_raylet_start_wait_time_s": "600", "RAY_USAGE_STATS_ENABLED": "0"}
        return {**os.environ, **patient, MARK: str(self.scratch)}


def has_ray() -> bool:
    """Whether Ray is installed."""
    return importlib.util.find_spec("ray") is not None


def _try_kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it was quicker
        os.kill(pid, number)
