"""Kills at random moments: the command is repeated until it is done, and must end with the bits of one left alone."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tests.torture.children import Command, ask
from tests.torture.table import FaultTable, Finding

from remanence.runs import load_best, load_checkpoint, read_lines

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
CLOCKS = ("seconds", "cpu_seconds", "updates_per_second", "frames_per_second", "playing", "commit")

TINY = ["--set", "model.options.hidden_size=4", "--set", "task.batch_size=2", "--set", "loop.save_every=2"]
TINY += ["--set", "evaluation.every=5", "--set", "evaluation.batches=1", "--set", "evaluation.batch_size=4"]
PPO = ["copies=2", "ppo.steps=8", "ppo.recurrence=8", "ppo.batch=16", "save_every=2"]

TRAIN = "train copy --model HDetachLSTM --length 4 --updates 24 --json"
POLICY = "rl train remanence/TMaze-v0 --model LSTM --frames 192 --hidden 4 --json"
COMPARE = "compare copy --models LSTM,RelRNN --lengths 4 --updates 12 --jobs 2 --json"
REPRODUCE = "reproduce kerg2020/table-2 length=5 --scale smoke --only model=LSTM --seeds 2 --workers 2 --json"

COMMANDS: dict[str, list[object]] = {
    "train": [*TRAIN.split(), *TINY, "--run"],
    "rl train": [*POLICY.split(), *(word for setting in PPO for word in ("--set", setting)), "--run"],
    "compare": [*COMPARE.split(), *TINY, "--folder"],
    "reproduce": [*REPRODUCE.split(), "--folder"],
}


def end_of(folder: Path) -> dict[str, Any]:
    """Everything that must not depend on kills: weights, optimisers, generators, metrics, results; no clocks."""
    found: dict[str, Any] = {}
    for checkpoints in sorted(folder.rglob("checkpoint")):
        name = str(checkpoints.relative_to(folder))
        last = load_checkpoint(checkpoints)
        best = load_best(checkpoints)
        assert last is not None
        found |= {
            f"{name}.{path}": value for path, value in leaves((last.weights, last.training, best)) if tensor(value)
        }
        found[name] = [without_clocks(line) for line in read_lines(checkpoints.with_name("metrics.jsonl"))]
    for path in sorted(folder.rglob("measures/[!.]*.json")):  # a kill may leave a draft, whose name begins with a dot
        found[str(path.relative_to(folder))] = without_clocks(json.loads(path.read_text()))
    return found


def tensor(value: object) -> bool:
    """Whether it is a tensor."""
    return isinstance(value, torch.Tensor)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All values inside dictionaries, lists and tuples, with their paths."""
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list | tuple):
        inside = enumerate(value)
    else:
        yield path, value
        return
    for key, each in inside:
        yield from leaves(each, f"{path}.{key}")


def without_clocks(value: Any) -> Any:
    """The same without what a clock says, or the checkout, which may move on meanwhile."""
    if isinstance(value, dict):
        return {key: without_clocks(each) for key, each in value.items() if key not in CLOCKS}
    if isinstance(value, list):
        return [without_clocks(each) for each in value]
    return value


def same(one: dict[str, Any], other: dict[str, Any]) -> str | None:
    """None if two ends are equal, bit by bit; else the first difference."""
    if one.keys() != other.keys():
        return f"only one has {sorted(one.keys() ^ other.keys())[0]}"
    for name, value in one.items():
        equal = torch.equal(value, other[name]) if tensor(value) else value == other[name]
        if not equal:
            return f"{name} differs"
    return None


class Kills:
    """Kills the four commands in turn.

    Args:
        scratch: a folder for the runs.
        table: where the outcomes go.
        draws: of moments, signals and victims.
        most: kills of one run; then it is left alone.
    """

    def __init__(self, scratch: Path, table: FaultTable, draws: random.Random, most: int = 40) -> None:
        self.scratch = scratch
        self.table = table
        self.draws = draws
        self.most = most
        self.references: dict[str, dict[str, Any]] = {}
        self.seconds: dict[str, float] = {}

    def reference(self, name: str) -> dict[str, Any]:
        """The end of the command that nobody disturbs; also how long it takes."""
        if name not in self.references:
            folder = self.scratch / f"{name}-reference".replace(" ", "-")
            begun = time.monotonic()
            answer = ask([*COMMANDS[name], folder], self.scratch)
            self.seconds[name] = time.monotonic() - begun
            assert answer.code == 0, answer
            self.references[name] = end_of(folder)
        return self.references[name]

    def attempt(self, name: str) -> None:
        """One run of a command, killed again and again, by one signal."""
        reference = self.reference(name)
        number = self.draws.choice(SIGNALS)
        folder = self.scratch / "killed"
        shutil.rmtree(folder, ignore_errors=True)
        command = [*COMMANDS[name], folder]
        kills, complaint = self._kill(command, number, self.seconds[name])
        row = self.table.row(f"{signal.Signals(number).name}: {name}")
        outcome, seen = self._judge(command, folder, reference)
        if complaint:
            outcome, seen = "wrong", complaint
        row.count(outcome, kills)
        if outcome != "survived":
            self.table.findings.append(Finding(row.fault, name, outcome, seen))

    def _kill(self, command: list[object], number: int, longest: float) -> tuple[int, str]:
        """Signals it until it is done; how often, and a traceback if there was one."""
        longest *= 0.7
        for kills in range(self.most):
            running = Command(command, self.scratch)
            time.sleep(self.draws.uniform(0.0, longest))
            if running.process.poll() == 0:
                return kills, ""
            self._signal(running, number)
            answer = running.answer()
            if answer.code is None or "Traceback" in answer.err:
                return kills + 1, f"exit code {answer.code}: {answer.err[-500:]}"
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

    def _judge(self, command: list[object], folder: Path, reference: dict[str, Any]) -> tuple[str, str]:
        answer = ask(command, self.scratch)
        if answer.code != 0:
            return "lost", f"exit code {answer.code}: {answer.err[-500:]}"
        difference = same(end_of(folder), reference)
        return ("wrong", difference) if difference else ("survived", "")


def _try_kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it was quicker
        os.kill(pid, number)
