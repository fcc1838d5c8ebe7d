"""The process that all others are forked from: it has imported everything, and has run every command once."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence

import torch
import typer.main
from tests.torture.children import Forked

from remanence.cli import _app
from remanence.report import _page
from remanence.runs import _processes

LONGEST_SLEEP = 0.02
"""Seconds that `compare` and `reproduce` sleep between two looks at their workers, instead of some tenths."""

PLOTLY = _page.plotly_script


def prepare(commands: Iterable[Sequence[object]]) -> None:
    """Runs commands here, so that their imports are there for all who are forked; threads would not be.

    Args:
        commands: of the command line; they may write where the campaign works.
    """
    torch.set_num_threads(1)
    fork_workers()
    _page.plotly_script = lambda: ""  # megabytes, which only pages that are opened need
    built = typer.main.get_command(_app.app)
    typer.main.get_command = lambda application: built
    for command in commands:
        _run_here(command)
    tasks = len(os.listdir("/proc/self/task"))
    if tasks > 1 or threading.active_count() > 1:
        raise RuntimeError(f"there are {tasks} threads, which a fork would lose: {threading.enumerate()}")
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page that it looks at


def with_plotly() -> None:
    """To be given to a command as its ``arm``: its pages can be opened."""
    _page.plotly_script = PLOTLY


def _run_here(command: Sequence[object]) -> None:
    sys.argv = ["remanence", *map(str, command)]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            _app.main()
        except SystemExit as stop:
            if stop.code:
                raise RuntimeError(f"{command} ended with {stop.code}: {said.getvalue()}") from stop


class Workers:
    """Stands where `compare` and `reproduce` have `subprocess`: the same modules run, and start at once."""

    PIPE = subprocess.PIPE
    TimeoutExpired = subprocess.TimeoutExpired

    @staticmethod
    def Popen(command: list[str], stdin=None, stdout=None, stderr=None, env=None, start_new_session=True) -> Forked:
        """Runs ``python -m MODULE ARGUMENTS``."""
        module, *arguments = command[command.index("-m") + 1 :]

        def work() -> None:
            sys.argv = [module, *arguments]
            runpy.run_module(module, run_name="__main__")

        return Forked(work, stdin, stdout, stderr)


class Hasty:
    """Stands where these modules have `time`: nobody waits long for workers that take no time to start."""

    def __getattr__(self, name: str):
        return getattr(time, name)

    @staticmethod
    def sleep(seconds: float) -> None:
        """Sleeps, but not for long."""
        time.sleep(min(seconds, LONGEST_SLEEP))


def fork_workers() -> None:
    """Lets `compare` and `reproduce` fork their workers, too, and look at them often."""
    _processes.subprocess = Workers  # type: ignore[assignment]
    _processes.time = Hasty()  # type: ignore[assignment]
