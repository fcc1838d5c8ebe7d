"""Damage of every file of a run's folder, and what the commands then say."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.torture.children import Answer, ask, drop_powers
from tests.torture.faults import FAULTS, FITTING, deny
from tests.torture.operations import Operations, die
from tests.torture.part import Part
from tests.torture.subjects import COMMANDS, References, end_of, same, without_clocks
from tests.torture.table import FaultTable

from remanence.runs import RunError

SECRET = "what lies outside is nobody's business"
REFUSALS = (2, 4, 5, 6, 7)
"""Exit codes that docs/training.md lists for input that is bad, in use, not writable, without checkpoint, untrusted."""
FAILED_RUNS = 1
"""Exit code of `compare` and `reproduce` if one of their workers was refused."""
UNGUARDED = ("config.toml", "policy.toml", "metrics.jsonl", "output.txt")
"""Texts that users read and edit: another valid text is another meaning, which no checksum forbids."""
RIGHTS = "rights taken away"
LIMIT = 300.0
PROBED = 8
"""Of so many damaged models one is probed."""
FEW_SAMPLES = ("--rows", 2, "--length", 40, "--longest", 4)
MOMENT = 0.7
"""Share of its changes of files after which the run that is damaged was killed."""


class Damage(Part):
    """Damages copies of runs and asks commands about them.

    Args:
        references: what ends are held against.
        table: where the outcomes go.
        draws: of faults, files and commands.
        names: of the commands that make the runs.
    """

    def __init__(
        self, references: References, table: FaultTable, draws: random.Random, names: Iterable[str] = COMMANDS
    ) -> None:
        super().__init__(references, table, draws)
        self.names = list(names)
        self.outside = self.scratch / "outside.txt"
        self.page = self.scratch / "report.html"
        self.answers: dict[tuple[str, str], Any] = {}
        self.turn = 0

    def commands(self, name: str, folder: Path) -> dict[str, list[object]]:
        """What is asked about the folder that a command has made."""
        asked: dict[str, list[object]] = {
            "runs": ["runs", folder.parent, "--json"],
            "report": ["report", folder, "--no-probes", "-o", self.page],
        }
        if name in ("compare", "reproduce"):
            return {**asked, name: [*COMMANDS[name], folder]}
        asked["evaluate"] = ["evaluate", folder, "--batches", 2, "--batch-size", 4, "--json"]
        asked["resume"] = ["resume", folder, "--json"]
        if name == "train text":
            asked["generate"] = ["generate", folder, "--length", 9, "--json"]
            asked["mi"] = ["mi", folder, *FEW_SAMPLES, "--json"]
        if name == "rl train":
            asked["rl play"] = ["rl", "play", folder, "--episodes", 2, "--json"]
        if name == "train" and self.turn // len(self.names) % PROBED == 0:  # it takes longer than all others
            asked["probe"] = ["probe", folder, "--json"]
        return asked

    def attempt(self) -> None:
        """One damaged file, all commands."""
        name = self.names[self.turn % len(self.names)]
        model = self._model(name)
        fault = self.draws.choice([*FAULTS, RIGHTS])
        victim = self._victim(model)
        state = self.draws.getstate()
        for command in self.commands(name, model):
            self.draws.setstate(state)  # all commands meet the same damage
            self.ask(name, fault, victim, command)
        self.turn += 1

    def _victim(self, model: Path) -> Path:
        """A file of a name that is drawn first: there are more files of checkpoints than of settings."""
        files = sorted(path.relative_to(model) for path in model.rglob("*") if path.is_file())
        name = self.draws.choice(sorted({path.name for path in files}))
        return self.draws.choice([path for path in files if path.name == name])

    def _model(self, name: str) -> Path:
        """A run that was killed after its first checkpoints."""
        folder = self.scratch / "models" / name.replace(" ", "-")
        if not folder.exists():
            moment = Operations(folder, int(MOMENT * self.references[name].changes), die)
            ask([*COMMANDS[name], folder], self.scratch, arm=moment)
            ask(["report", folder, "-o", self.page], self.scratch)  # which leaves its measurements in the folder
        return folder

    def ask(self, name: str, fault: str, victim: Path, command: str) -> None:
        """One damaged file, one command."""
        expected = self._expected(name, command)
        folder = self._copy(name)
        if fault == RIGHTS:
            deny(folder / victim, self.draws)
        else:
            FAULTS[fault](folder / victim, self.draws, self.outside)
        arm = drop_powers if fault == RIGHTS else None
        answer = ask(self.commands(name, folder)[command], self.scratch, LIMIT, arm)
        _give_back(folder)
        other_meaning = victim.name in UNGUARDED or fault == FITTING
        outcome, seen = self._judge(answer, command, folder, None if other_meaning else expected)
        self.table.note(fault, command, outcome, f"{name}/{victim}: {seen}")

    def _expected(self, name: str, command: str) -> Any:
        if (name, command) not in self.answers:
            folder = self._copy(name)
            answer = ask(self.commands(name, folder)[command], self.scratch)
            assert answer.code == 0, answer
            self.answers[name, command] = self._meaning(answer, command, folder)
        return self.answers[name, command]

    def _copy(self, name: str) -> Path:
        model = self._model(name)
        folder = self.scratch / "damaged" / model.name
        shutil.rmtree(folder.parent, ignore_errors=True)
        shutil.copytree(model, folder)
        self.outside.write_text(SECRET)
        self.page.unlink(missing_ok=True)
        return folder

    def _judge(self, answer: Answer, command: str, folder: Path, expected: Any) -> tuple[str, str]:
        """What came of it; `expected` is None if the damage is another meaning, which may have other numbers."""
        said = answer.out + answer.err + (self.page.read_text(encoding="utf-8") if self.page.exists() else "")
        if answer.code is None:
            return "wrong", f"hung for {LIMIT:.0f} seconds"
        if "Traceback" in said:
            return "wrong", answer.err[-700:]
        if not self.outside.exists() or self.outside.read_text() != SECRET or SECRET in said:
            return "wrong", "a file outside was changed or shown"
        refusals = (*REFUSALS, FAILED_RUNS) if command in ("compare", "reproduce") else REFUSALS
        if answer.code in refusals:
            return ("refused", "") if answer.err.strip() else ("wrong", f"exit code {answer.code} without a word")
        if answer.code != 0:
            return "wrong", f"exit code {answer.code}: {answer.err[-500:]}"
        return self._compare(answer, command, folder, expected)

    def _compare(self, answer: Answer, command: str, folder: Path, expected: Any) -> tuple[str, str]:
        """With exit code 0 the numbers are those of the whole folder, or the command says what is the matter."""
        try:
            found = self._meaning(answer, command, folder)
        except (RunError, ValueError, OSError, AssertionError) as error:
            return "wrong", f"exit code 0, but: {type(error).__name__} {error}"
        if expected is None or answer.err.strip() or self._names_trouble(answer, command):
            return "survived", ""
        difference = same(found, expected)
        return ("wrong", f"{difference}: {answer.out[-300:]}") if difference else ("survived", "")

    def _names_trouble(self, answer: Answer, command: str) -> bool:
        """Whether the list or the page itself says that a part of it could not be read."""
        if command == "runs":
            return any(row["status"] == "damaged" or "missing" in str(row["reason"]) for row in json.loads(answer.out))
        page = self.page.read_text(encoding="utf-8") if command == "report" else ""
        return 'id="problems"' in page or "not been measured" in page

    def _meaning(self, answer: Answer, command: str, folder: Path) -> dict[str, Any]:
        """What a command is judged by: its numbers, its page, or the end of the run."""
        if command == "report":
            return {"page": hashlib.sha256(self.page.read_bytes()).hexdigest()}
        told = json.loads(answer.out)
        if command == "probe":
            del told["cost"]  # which a clock and the allocator decide
        told = {"answer": without_clocks(told)}
        return told | end_of(folder) if command == "resume" else told


def _give_back(folder: Path) -> None:
    """Restores the rights, so that the folder can be read and removed."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o700)
