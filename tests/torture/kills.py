"""Kills: the command is repeated until it is done, and must end with the bits of one left alone."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from pathlib import Path

from tests.torture.children import Command, ask
from tests.torture.operations import Operations, die, lose_power
from tests.torture.part import Part
from tests.torture.subjects import COMMANDS, References
from tests.torture.table import FaultTable

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
AT_RANDOM = "{} at a random moment"
AT_CHANGE = "SIGKILL before a change of a file"
LEFT_ALONE = 0.25
"""Share of the runs killed at a change of a file that are then left to go on undisturbed."""
AT_SYNC = "power cut: files not yet synced lose their half"


class Kills(Part):
    """Kills the commands in turn.

    Args:
        references: what the ends are held against.
        table: where the outcomes go.
        draws: of moments, signals and victims.
        most: kills of one run; then it is left alone.
    """

    def __init__(self, references: References, table: FaultTable, draws: random.Random, most: int = 10) -> None:
        super().__init__(references, table, draws)
        self.most = most
        self.changes: dict[str, list[int]] = {}
        self.turn = 0

    def attempt(self) -> None:
        """One run of the command whose turn it is, killed once or more."""
        name = list(COMMANDS)[self.turn % len(COMMANDS)]
        by_change = self.turn // len(COMMANDS) % 3 > 0
        self.turn += 1
        if by_change:
            self.at_changes(name)
        else:
            self.at_random(name)

    def at_random(self, name: str) -> None:
        """Signals the command at random moments until it is done."""
        number = self.draws.choice(SIGNALS)
        folder = self._folder()
        longest = 0.7 * self.references[name].seconds
        kills, trouble = self._kill_until_done([*COMMANDS[name], folder], number, longest)
        self._judge(AT_RANDOM.format(signal.Signals(number).name), name, folder, kills, trouble)

    def at_changes(self, name: str) -> None:
        """Kills the command at the next of its changes of files, and perhaps again when it goes on."""
        if not self.changes.get(name):
            count = self.references[name].changes
            self.changes[name] = self.draws.sample(range(count), count)
        deed, fault = self.draws.choice([(die, AT_CHANGE), (lose_power, AT_SYNC)])
        folder = self._folder()
        place = self.changes[name].pop()
        kills, trouble = 0, ""
        for _ in range(self.most):
            operations = Operations(folder, place, deed)
            answer = ask([*COMMANDS[name], folder], self.scratch, arm=operations)
            kills += operations.count > place
            trouble = _trouble(answer.code, answer.err)
            if trouble or answer.code == 0 or self.draws.random() < LEFT_ALONE:
                break
            place = self.draws.randrange(max(operations.count, 1))
        self._judge(fault, name, folder, kills, trouble)

    def _folder(self) -> Path:
        folder = self.scratch / "killed"
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def _judge(self, fault: str, name: str, folder: Path, kills: int, trouble: str) -> None:
        outcome, seen = ("wrong", trouble) if trouble else self.references.judge(name, folder)
        self.table.note(fault, name, outcome, f"killed {kills} times: {seen}", kills)

    def _kill_until_done(self, command: list[object], number: int, longest: float) -> tuple[int, str]:
        """Signals it until it is done; how often, and a traceback if there was one."""
        for kills in range(self.most):
            running = Command(command, self.scratch)
            time.sleep(self.draws.uniform(0.0, longest))
            if running.process.poll() == 0:
                return kills, ""
            self._signal(running, number)
            answer = running.answer()
            trouble = _trouble(answer.code, answer.err)
            if trouble:
                return kills + 1, trouble
            longest *= 1.02  # a loaded machine may need longer to get anywhere at all
        return self.most, ""

    def _signal(self, running: Command, number: int) -> None:
        """The command, or all of its processes, or one of its workers, as a machine short of memory would."""
        workers = running.workers
        victims = self.draws.choice([[], workers, workers[:1]])
        for pid in victims:
            _try_kill(pid, number)
        if not victims or len(victims) == len(workers):
            running.process.send_signal(number)


def _trouble(code: int | None, err: str) -> str:
    """Empty, or a hang or traceback in words."""
    if code is None or "Traceback" in err:
        return f"exit code {code}: {err[-500:]}"
    return ""


def _try_kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it was quicker
        os.kill(pid, number)
