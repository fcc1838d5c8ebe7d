"""The commands that faults are done to, how a run of one ends if nobody disturbs it, and what may not differ."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tests.torture.children import ask
from tests.torture.operations import Operations

from remanence.runs import load_best, load_checkpoint, read_lines

TEXT = Path(__file__).parents[2] / "LICENSE"
CLOCKS = ("seconds", "cpu_seconds", "updates_per_second", "frames_per_second", "playing", "commit", "changed", "sha256")

TINY = ["--set", "model.options.hidden_size=4", "--set", "task.batch_size=2", "--set", "loop.save_every=2"]
TINY += ["--set", "evaluation.every=5", "--set", "evaluation.batches=1", "--set", "evaluation.batch_size=4"]
PPO = ["copies=2", "ppo.steps=8", "ppo.recurrence=8", "ppo.batch=16", "save_every=2"]

TRAIN = "train copy --model HDetachLSTM --length 4 --updates 24 --json"
WRITING = f"train text {TEXT} --model LSTM --length 8 --updates 24 --json"
POLICY = "rl train remanence/TMaze-v0 --model LSTM --frames 192 --hidden 4 --json"
COMPARE = "compare copy --models LSTM,RelRNN --lengths 4 --updates 12 --jobs 2 --json"
REPRODUCE = "reproduce kerg2020/table-2 length=5 --scale smoke --only model=LSTM --seeds 2 --workers 2 --json"

COMMANDS: dict[str, list[object]] = {
    "train": [*TRAIN.split(), *TINY, "--run"],
    "train text": [*WRITING.split(), *TINY, "--run"],
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


@dataclass(frozen=True)
class Reference:
    """A run that nobody disturbed.

    Args:
        end: as :func:`end_of` gives it.
        seconds: that it took.
        changes: of files that it made.
        sizes: of its files, in bytes.
    """

    end: dict[str, Any]
    seconds: float
    changes: int
    sizes: list[int]


class References:
    """Undisturbed runs, made when they are first asked for.

    Args:
        scratch: a folder for them.
    """

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self._made: dict[str, Reference] = {}

    def __getitem__(self, name: str) -> Reference:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def folder(self, name: str) -> Path:
        """Where the undisturbed run lies, once it was asked for."""
        return self.scratch / "references" / name.replace(" ", "-")

    def _make(self, name: str) -> Reference:
        folder = self.folder(name)
        begun = time.monotonic()
        counted = Operations(folder)
        answer = ask([*COMMANDS[name], folder], self.scratch, arm=counted)
        assert answer.code == 0, answer
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        return Reference(end_of(folder), time.monotonic() - begun, counted.count, sizes)

    def judge(self, name: str, folder: Path) -> tuple[str, str]:
        """Carries a disturbed run to its end: survived, lost or wrong, and what was seen."""
        answer = ask([*COMMANDS[name], folder], self.scratch)
        if answer.code != 0:
            return "lost", f"exit code {answer.code}: {answer.err[-500:]}"
        difference = same(end_of(folder), self[name].end)
        return ("wrong", difference) if difference else ("survived", "")
