"""Jobs in processes of their own: started as there is room, waited for, and asked to save when all is to stop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from remanence.runs._errors import RunLockedError
from remanence.runs._files import is_locked, require_regular

GRACE = 120.0
"""Seconds that a process gets to save itself when it is asked to stop."""

Process = subprocess.Popen[bytes]


class Job(Protocol):
    """Work that has a folder, which says whether it is done, whoever does it."""

    @property
    def folder(self) -> Path:
        """Of this job alone; who is at it holds its lock."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        ...


AnyJob = TypeVar("AnyJob", bound=Job)
TakenJob = TypeVar("TakenJob", contravariant=True)


class Engine(Protocol[TakenJob]):
    """Carries out jobs, several at a time. Their results are in their folders; nothing else depends on the engine."""

    def start(self, jobs: Sequence[TakenJob], /) -> None:
        """Takes on jobs."""
        ...

    def poll(self) -> bool:
        """Starts what there is room for; whether anything is still waiting or at work."""
        ...

    def stop(self) -> None:
        """Asks everything to save and end, and waits for it."""
        ...


class ProcessEngine(ABC, Generic[AnyJob]):
    """Carries out jobs in processes of this machine; a subclass says how one is started, and when there is room."""

    retries = 0
    """How often a job is started anew whose process was killed, as for want of memory; it goes on where it was."""

    def __init__(self) -> None:
        self.waiting: list[AnyJob] = []
        self.working: dict[Path, tuple[AnyJob, Process]] = {}
        self.held = 0
        """Waiting jobs that other processes are at, as workers of a driver that was killed."""
        self.kills: Counter[Path] = Counter()

    @abstractmethod
    def launch(self, job: AnyJob) -> Process:
        """Starts the process of a job."""

    @abstractmethod
    def has_room(self, job: AnyJob) -> bool:
        """Whether a job may start beside those at work."""

    def start(self, jobs: Sequence[AnyJob], /) -> None:
        """Takes on jobs."""
        self.waiting += jobs

    def poll(self) -> bool:
        """Starts what there is room for; whether anything is still waiting or at work."""
        for job, process in list(self.working.values()):
            if process.poll() is not None:
                self._end(job, process)
        # What another process has goes on there; to start it here would only burn time until it says so itself.
        free = [job for job in self.waiting if not is_locked(job.folder)]
        self.held = len(self.waiting) - len(free)
        for job in free:
            done = job.is_done
            if not done and not self.has_room(job):
                break
            self.waiting.remove(job)
            if not done:
                self.working[job.folder] = (job, self.launch(job))
        return bool(self.waiting or self.working)

    def _end(self, job: AnyJob, process: Process) -> None:
        del self.working[job.folder]
        if process.returncode == RunLockedError.exit_code:  # another driver was quicker
            self.waiting.append(job)
        elif process.returncode < 0 and self.kills[job.folder] < self.retries:
            self.kills[job.folder] += 1
            self.waiting.append(job)

    def stop(self) -> None:
        """Asks every job to save and end, and waits for it."""
        self.waiting = []
        stop_processes([process for _, process in self.working.values()])


def start_process(module: str, arguments: Sequence[str], log: Path, threads: int, text: str = "") -> Process:
    """Starts ``python -m MODULE ARGUMENTS``.

    Args:
        module: a module that can be run.
        arguments: for it.
        log: file that all it prints is appended to.
        threads: of torch's operations.
        text: for its standard input.
    """
    count = str(threads)
    environment = {**os.environ, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count}
    require_regular(log)
    with log.open("ab") as output:
        # A session of its own: Ctrl-C reaches the command alone, which then asks every process to save.
        process = subprocess.Popen(
            [sys.executable, *_path_options(), "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )
    assert process.stdin is not None
    process.stdin.write(text.encode())
    process.stdin.close()
    return process


def _path_options() -> list[str]:
    """``python -m`` imports from the current folder, perhaps a stranger's, first: only where this process does, too."""
    if os.getcwd() in map(os.path.abspath, sys.path):
        return []
    return ["-P"]


def stop_processes(processes: Sequence[Process]) -> None:
    """Asks processes to save and end, and waits for them."""
    for process in processes:
        process.terminate()
        with contextlib.suppress(OSError, ValueError):
            process.send_signal(signal.SIGCONT)  # a stopped process hears nothing until it goes on
    for process in processes:
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()  # its last checkpoint is whole
            process.wait()


LOOK_PATIENCE = 50
"""A look at many jobs reads many files: so many times what it took passes before the next."""


def run_jobs(engine: Engine[AnyJob], jobs: Sequence[AnyJob], look: Callable[[], None], pause: float) -> None:
    """Carries jobs to their end; one that crashes does not stop the others.

    Args:
        engine: that carries them out.
        jobs: to be done.
        look: called now and then, to show how far they are.
        pause: seconds between two looks; longer if a look takes longer than 2 % of it.

    Raises:
        Stopped: by SIGTERM or Ctrl-C; every job has then been asked to save, and has.
    """
    engine.start(jobs)
    try:
        # A signal is a request: raised in the middle of a start, it would leave a process behind that nobody knows.
        with stop_requests() as request:
            next_look = 0.0
            while engine.poll():
                began = time.monotonic()
                if began >= next_look:
                    look()
                    next_look = began + LOOK_PATIENCE * (time.monotonic() - began)
                time.sleep(pause)
                if request.signal is not None:
                    raise Stopped(request.signal)
    except BaseException:
        engine.stop()
        raise


class Stopped(KeyboardInterrupt):
    """A signal stopped several jobs; every one of them has been saved.

    Example:
        >>> Stopped(15).number
        15
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class StopRequest:
    """Remembers the signal that asked the run to stop.

    Example:
        >>> StopRequest().signal is None
        True
    """

    def __init__(self) -> None:
        self.signal: int | None = None


@contextlib.contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Turns SIGTERM and Ctrl-C into a request; a second Ctrl-C interrupts at once.

    Outside the main thread, where Python delivers no signals, nothing is caught.

    Example:
        >>> with stop_requests() as request:
        ...     signal.raise_signal(signal.SIGTERM)
        ...     request.signal == signal.SIGTERM
        True
    """
    request = StopRequest()

    def note(number: int, frame: object) -> None:
        if request.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        request.signal = number

    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
