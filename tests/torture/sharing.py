"""Several processes on one folder: one works, the others are refused, and the end is that of one alone."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from tests.torture.children import Command, ask
from tests.torture.part import Part
from tests.torture.subjects import COMMANDS, end_of, same

STARTS = 3
IN_USE = 4
BAD_INPUT = 2


class Sharing(Part):
    """Starts one command several times at nearly the same moment.

    Args:
        references: what the ends are held against.
        table: where the outcomes go.
        draws: of commands, seeds and moments.
    """

    def attempt(self, name: str | None = None) -> None:
        """One command, with equal or with different seeds."""
        name = name or self.draws.choice(["train", "train text", "rl train"])
        differ = self.draws.random() < 0.5
        folder = self.scratch / "shared"
        shutil.rmtree(folder, ignore_errors=True)
        commands = [_command(name, folder, number if differ else 0) for number in range(STARTS)]
        answers = [each.answer() for each in self._start(commands)]
        seen = self._judge([answer.code for answer in answers], folder, commands, name)
        if any("Traceback" in answer.err for answer in answers):
            seen = next(answer.err for answer in answers if "Traceback" in answer.err)[-500:]
        fault = f"{STARTS} starts, one folder, {'different' if differ else 'equal'} settings"
        self.table.note(fault, name, "wrong" if seen else "survived", seen)

    def _start(self, commands: list[list[object]]) -> list[Command]:
        running = []
        for number, command in enumerate(commands):
            place = self.scratch / f"start-{number}"
            place.mkdir(exist_ok=True)
            running.append(Command(command, place))
            time.sleep(self.draws.choice([0.0, self.draws.uniform(0.0, 0.05)]))
        return running

    def _judge(self, codes: list[int | None], folder: Path, commands: list[list[object]], name: str) -> str:
        """Empty if exactly the settings of those that ended well are what the folder holds."""
        if not set(codes) <= {0, IN_USE, BAD_INPUT} or 0 not in codes:
            return f"exit codes {codes}"
        winners = [command for code, command in zip(codes, commands, strict=True) if code == 0]
        if any(winner != winners[0] for winner in winners):
            return f"exit codes {codes}: two with different settings both ended well"
        return same(end_of(folder), self._alone(winners[0], folder, name)) or ""

    def _alone(self, winner: list[object], folder: Path, name: str) -> dict:
        """The end of the command without the others."""
        if winner[-1] == 0:
            return self.references[name].end
        alone = self.scratch / "alone"
        shutil.rmtree(alone, ignore_errors=True)
        again = [alone if word == folder else word for word in winner]
        assert ask(again, self.scratch).code == 0
        return end_of(alone)


def _command(name: str, folder: Path, seed: int) -> list[object]:
    return [*COMMANDS[name], folder, "--seed", seed]
