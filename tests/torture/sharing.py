"""Several processes on one folder: one works, the others are refused, and the end is that of one alone."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from tests.torture.children import Command, ask
from tests.torture.kills import COMMANDS, Kills, end_of, same
from tests.torture.table import FaultTable, Finding

STARTS = 3
IN_USE = 4
BAD_INPUT = 2


def share(kills: Kills, scratch: Path, table: FaultTable, draws: random.Random) -> None:
    """Starts one command several times at nearly the same moment, or with different seeds."""
    name = draws.choice(["train", "rl train"])
    differ = draws.random() < 0.5
    folder = scratch / "shared"
    shutil.rmtree(folder, ignore_errors=True)
    commands = [_command(name, folder, number if differ else 0) for number in range(STARTS)]
    running = []
    for number, command in enumerate(commands):
        place = scratch / f"start-{number}"
        place.mkdir(exist_ok=True)
        running.append(Command(command, place))
        time.sleep(draws.choice([0.0, draws.uniform(0.0, 0.05)]))
    answers = [each.answer() for each in running]
    codes = [answer.code for answer in answers]
    row = table.row(f"{STARTS} starts, one folder, {'different' if differ else 'equal'} settings")
    seen = _judge(codes, folder, commands, scratch, kills.reference(name))
    if any("Traceback" in answer.err for answer in answers):
        seen = next(answer.err for answer in answers if "Traceback" in answer.err)[-500:]
    row.count("wrong" if seen else "survived")
    if seen:
        table.findings.append(Finding(row.fault, name, "wrong", seen))


def _command(name: str, folder: Path, seed: int) -> list[object]:
    return [*COMMANDS[name], folder, "--seed", seed]


def _judge(codes: list[int | None], folder: Path, commands: list[list[object]], scratch: Path, reference: dict) -> str:
    """Empty if exactly the settings of those that ended well are what the folder holds."""
    if not set(codes) <= {0, IN_USE, BAD_INPUT} or 0 not in codes:
        return f"exit codes {codes}"
    winners = [command for code, command in zip(codes, commands, strict=True) if code == 0]
    if any(winner != winners[0] for winner in winners):
        return f"exit codes {codes}: two with different settings both ended well"
    alone = scratch / "alone"
    shutil.rmtree(alone, ignore_errors=True)
    if winners[0][-1] != 0:
        again = [alone if word == folder else word for word in winners[0]]
        assert ask(again, scratch).code == 0
        reference = end_of(alone)
    return same(end_of(folder), reference) or ""
