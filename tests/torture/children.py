"""Commands in processes of their own, forked from one that has imported everything: a kill costs no start-up time."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

INTERRUPTED = 130
LIMIT = 600.0
"""Seconds after which a command counts as hung, far beyond what any takes on a busy machine."""
Arm = Callable[[], object]


@dataclass(frozen=True)
class Answer:
    """How a command ended; `code` is minus the signal that killed it, and None if it had to be stopped for its time."""

    code: int | None
    out: str
    err: str


class Command:
    """A command of the command line, at work in a process of its own.

    Args:
        arguments: of the command.
        scratch: folder for what it prints.
        arm: is called in the new process, before the command: to count, to limit, to kill.
    """

    def __init__(self, arguments: Sequence[object], scratch: Path, arm: Arm | None = None) -> None:
        self.out = scratch / "out.txt"
        self.err = scratch / "err.txt"
        words = [str(argument) for argument in arguments]
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = Forked(lambda: _remanence(words, arm), stdout=out, stderr=err)

    @property
    def workers(self) -> list[int]:
        """The processes that it has started."""
        pid = self.process.pid
        try:
            return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except OSError:
            return []

    def answer(self, seconds: float = LIMIT) -> Answer:
        """Waits for its end, at most so long."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = None
        return Answer(code, self.out.read_text(errors="replace"), self.err.read_text(errors="replace"))


def ask(arguments: Sequence[object], scratch: Path, seconds: float = LIMIT, arm: Arm | None = None) -> Answer:
    """Runs a command to its end."""
    return Command(arguments, scratch, arm).answer(seconds)


def _remanence(words: list[str], arm: Arm | None) -> None:
    from remanence.cli import main

    if arm is not None:
        arm()
    sys.argv = ["remanence", *words]
    main()


def drop_powers() -> None:
    """Gives up all capabilities: even root then meets the permissions of its own files."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(header, nothing):
        raise OSError(ctypes.get_errno(), "capabilities could not be dropped")


class Forked:
    """What `subprocess.Popen` is to its callers, for a function instead of a program."""

    def __init__(self, work: Callable[[], object], stdin: int | None = None, stdout=None, stderr=None) -> None:
        self.returncode: int | None = None
        self.stdin: BinaryIO | None = None
        reading = writing = None
        if stdin == subprocess.PIPE:
            reading, writing = os.pipe()
        # Python swallows what a signal's handler raises inside a fork; Popen has no such moment.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        self.pid = os.fork()
        if self.pid:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        else:
            if writing is not None:
                os.close(writing)
            _become(work, reading, stdout, stderr)
        if reading is not None and writing is not None:
            os.close(reading)
            self.stdin = os.fdopen(writing, "wb")

    def poll(self) -> int | None:
        """The exit code, once there is one."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end."""
        if self.poll() is None:
            ends = os.pidfd_open(self.pid)
            try:
                select.select([ends], [], [], timeout)
            finally:
                os.close(ends)
        if self.poll() is None:
            raise subprocess.TimeoutExpired("forked", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signals it, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Asks it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it."""
        self.send_signal(signal.SIGKILL)


def _become(work: Callable[[], object], stdin: int | None, stdout, stderr) -> None:
    """The child: its own session and files, then the work, then the end; it never returns."""
    code = 0
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
        os.dup2(os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin, 0)
        sys.stdin = os.fdopen(0, "r", closefd=False)
        for number, file in ((1, stdout), (2, stderr)):
            os.dup2(file.fileno(), number)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        work()
    except SystemExit as stop:
        code = _code_of(stop)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:  # whatever a second signal raises must not unwind the parent's stack, which removes its folder
            os._exit(code)


def _code_of(stop: SystemExit) -> int:
    if isinstance(stop.code, str):
        print(stop.code, file=sys.stderr)
        return 1
    return stop.code or 0
