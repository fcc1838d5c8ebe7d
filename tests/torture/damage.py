"""Damage of every file of a run's folder, and what the commands then say."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.torture.children import Answer, ask
from tests.torture.kills import COMMANDS, end_of, same, without_clocks
from tests.torture.table import FaultTable, Finding

SECRET = "what lies outside is nobody's business"
REFUSALS = (2, 4, 5, 6, 7)
"""Exit codes that docs/training.md lists for input that is bad, in use, not writable, without checkpoint, untrusted."""
UNGUARDED = ("config.toml", "policy.toml", "metrics.jsonl", "output.txt")
"""Texts that users read and edit: another valid text is another meaning, which no checksum forbids."""
STRANGE = [None, [], {}, "", "x", -1, 1e400, True, [[]], {"a": {}}, "../../secret", "[bold]a[/b]", 10**30]
BUDGETS = {"train": ("updates", "12", "24"), "rl train": ("frames", "96", "192")}
"""The setting of a budget, and what it is before and after a run is made longer."""
LIMIT = 30.0


def truncate(path: Path, draws: random.Random, outside: Path) -> None:
    contents = path.read_bytes()
    path.write_bytes(contents[: draws.randrange(max(len(contents), 1))])


def flip(path: Path, draws: random.Random, outside: Path) -> None:
    contents = bytearray(path.read_bytes() or b"\0")
    contents[draws.randrange(len(contents))] ^= 1 << draws.randrange(8)
    path.write_bytes(bytes(contents))


def empty(path: Path, draws: random.Random, outside: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path, draws: random.Random, outside: Path) -> None:
    path.unlink()


def directory(path: Path, draws: random.Random, outside: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path, draws: random.Random, outside: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def link(path: Path, draws: random.Random, outside: Path) -> None:
    path.unlink()
    path.symlink_to(outside if draws.random() < 0.7 else outside.with_name("nowhere"))


def strange(path: Path, draws: random.Random, outside: Path) -> None:
    """Another type of one value, or of the whole."""
    if path.suffix == ".toml":
        path.write_text(_strange_toml(path.read_text(), draws))
    elif path.suffix in (".json", ".jsonl"):
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        place = draws.randrange(max(len(lines), 1))
        lines[place : place + 1] = [json.dumps(_strange_json(json.loads(lines[place]), draws))]
        path.write_text("\n".join(lines) + "\n")
    else:
        path.write_bytes(draws.randbytes(draws.randrange(200)))


def _strange_json(value: Any, draws: random.Random) -> Any:
    if isinstance(value, dict) and value and draws.random() < 0.8:
        key = draws.choice(sorted(value))
        return {**value, key: _strange_json(value[key], draws)}
    return draws.choice(STRANGE)


def _strange_toml(text: str, draws: random.Random) -> str:
    lines = text.splitlines()
    places = [number for number, line in enumerate(lines) if " = " in line]
    place = draws.choice(places)
    name = lines[place].split(" = ")[0]
    lines[place] = f"{name} = " + draws.choice(['"x"', "-1", "[]", "{}", "inf", "true", '"[bold]a[/b]"', "1" * 40])
    return "\n".join(lines)


def deep(path: Path, draws: random.Random, outside: Path) -> None:
    nested = "[" * 100_000
    path.write_text(f"a = {nested}" if path.suffix == ".toml" else nested)


FAULTS: dict[str, Callable[[Path, random.Random, Path], None]] = {
    "truncated": truncate,
    "one bit flipped": flip,
    "emptied": empty,
    "removed": remove,
    "a directory instead": directory,
    "a pipe instead": pipe,
    "a link that leads outside": link,
    "values of other types": strange,
    "nested 100,000 deep": deep,
}


def deny(path: Path, draws: random.Random) -> None:
    """Takes the rights to a file or its folder."""
    victim = draws.choice([path, path.parent])
    victim.chmod(draws.choice([0, 0o444] if victim == path else [0, 0o555]))


class Damage:
    """Damages copies of runs and asks commands about them.

    Args:
        scratch: a folder for the runs.
        table: where the outcomes go.
        draws: of faults, files and commands.
        names: of the commands that make the runs.
    """

    def __init__(self, scratch: Path, table: FaultTable, draws: random.Random, names: Iterable[str] = BUDGETS) -> None:
        self.scratch = scratch
        self.table = table
        self.draws = draws
        self.outside = scratch / "outside.txt"
        self.models = [self._make(name) for name in names]
        self.answers: dict[tuple[Path, str], Any] = {}

    def _make(self, name: str) -> Path:
        """A run that has its checkpoints and has not reached its end: its budget was made larger since."""
        key, fewer, all_of_them = BUDGETS[name]
        folder = self.scratch / "models" / name.replace(" ", "-")
        whole = [*COMMANDS[name], folder]
        part = [fewer if word == all_of_them else word for word in whole]
        assert ask(part, self.scratch).code == 0
        settings = next(folder.glob("*.toml"))
        text = settings.read_text()
        settings.write_text(re.sub(rf"(?m)^{key} = \d+", f"{key} = {all_of_them}", text))
        status = json.loads((folder / "status.json").read_text())
        (folder / "status.json").write_text(json.dumps({**status, "status": "interrupted"}))
        return folder

    def commands(self, folder: Path) -> dict[str, list[object]]:
        """What is asked about a folder."""
        return {
            "runs": ["runs", folder.parent, "--json"],
            "evaluate": ["evaluate", folder, "--batches", 2, "--batch-size", 4, "--json"],
            "report": ["report", folder, "-o", self.scratch / "report.html"],
            "probe": ["probe", folder, "--json"],
            "resume": ["resume", folder, "--json"],
        }

    def attempt(self) -> None:
        """One damaged file, all commands."""
        model = self.draws.choice(self.models)
        fault = self.draws.choice([*FAULTS, "rights taken away"])
        names = sorted(path.relative_to(model) for path in model.rglob("*") if path.is_file())
        victim = self.draws.choice(names)
        for name in ("runs", "evaluate", "report", "probe", "resume"):
            self._ask(model, fault, victim, name)

    def _ask(self, model: Path, fault: str, victim: Path, name: str) -> None:
        expected = self._expected(model, name)
        folder = self._copy(model)
        before = self.draws.getstate()
        if fault == "rights taken away":
            deny(folder / victim, self.draws)
        else:
            FAULTS[fault](folder / victim, self.draws, self.outside)
        if name != "resume":
            self.draws.setstate(before)  # all commands meet the same damage
        answer = ask(self.commands(folder)[name], self.scratch, LIMIT, humble=fault == "rights taken away")
        _give_back(folder)
        outcome, seen = self._judge(answer, name, folder, expected, victim)
        self.table.row(fault).count(outcome)
        if outcome in ("lost", "wrong"):
            self.table.findings.append(Finding(fault, f"{name}, {model.name}/{victim}", outcome, seen))

    def _expected(self, model: Path, name: str) -> Any:
        if (model, name) not in self.answers:
            folder = self._copy(model)
            answer = ask(self.commands(folder)[name], self.scratch)
            assert answer.code in (0, 2), answer  # a policy cannot be probed, and is told so
            self.answers[model, name] = _meaning(answer, name, folder)
        return self.answers[model, name]

    def _copy(self, model: Path) -> Path:
        folder = self.scratch / "damaged" / model.name
        shutil.rmtree(folder.parent, ignore_errors=True)
        shutil.copytree(model, folder)
        self.outside.write_text(SECRET)
        return folder

    def _judge(self, answer: Answer, name: str, folder: Path, expected: Any, victim: Path) -> tuple[str, str]:
        said = answer.out + answer.err
        if answer.code is None:
            return "wrong", f"hung for {LIMIT:.0f} seconds"
        if "Traceback" in said:
            return "wrong", answer.err[-700:]
        if not self.outside.exists() or self.outside.read_text() != SECRET or SECRET in said:
            return "wrong", "a file outside was changed or shown"
        if answer.code in REFUSALS:
            return ("refused", "") if answer.err.strip() else ("wrong", f"exit code {answer.code} without a word")
        if answer.code != 0:
            return "wrong", f"exit code {answer.code}: {answer.err[-500:]}"
        return self._compare(answer, name, folder, expected, victim)

    def _compare(self, answer: Answer, name: str, folder: Path, expected: Any, victim: Path) -> tuple[str, str]:
        """With exit code 0 the numbers are those of the whole folder, or the command says what is the matter."""
        try:
            found = _meaning(answer, name, folder)
        except (ValueError, OSError, AssertionError) as error:
            return "wrong", f"exit code 0, but: {type(error).__name__} {error}"
        if name in ("runs", "report") or victim.name in UNGUARDED or answer.err.strip():
            return "survived", ""
        if name == "resume":
            difference = same(found, expected)
            return ("wrong", difference) if difference else ("survived", "")
        return ("survived", "") if found == expected else ("wrong", f"other numbers: {answer.out[-300:]}")


def _meaning(answer: Answer, name: str, folder: Path) -> Any:
    """What a command is judged by: its numbers, or the end of the run."""
    if answer.code != 0 or name == "report":
        return answer.code
    if name == "resume":
        json.loads(answer.out)
        return end_of(folder)
    return without_clocks(json.loads(answer.out))


def _give_back(folder: Path) -> None:
    """Restores the rights, so that the folder can be read and removed."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o700)
