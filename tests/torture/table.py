"""The table of faults: how many were tried, and what became of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from remanence.runs import Result

OUTCOMES = ("survived", "refused", "lost", "wrong")
COLUMNS = ("tried", *OUTCOMES)


@dataclass
class Row:
    """One kind of fault, done to one command.

    Args:
        fault: what was done.
        command: to what.
        survived: the same bits, or the same answer, as without it.
        refused: one line that says why, and an exit code that the documentation lists.
        lost: the run could not be carried to its end.
        wrong: another number in silence, a traceback, a hang, or something overwritten.
    """

    fault: str
    command: str
    survived: int = 0
    refused: int = 0
    lost: int = 0
    wrong: int = 0

    @property
    def tried(self) -> int:
        """How many there were."""
        return self.survived + self.refused + self.lost + self.wrong

    def count(self, outcome: str, times: int = 1) -> None:
        """Adds faults of one outcome."""
        setattr(self, outcome, getattr(self, outcome) + times)


@dataclass(frozen=True)
class Finding:
    """A fault that was lost or wrong, with what was seen."""

    fault: str
    command: str
    outcome: str
    seen: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.fault}: {self.command}: {self.seen}"


@dataclass(frozen=True)
class FaultTable(Result):
    """What a campaign found."""

    kind: ClassVar[str] = "fault-table"
    seed: int
    seconds: float = 0.0
    rows: list[Row] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """How many faults there were."""
        return sum(row.tried for row in self.rows)

    @property
    def sound(self) -> bool:
        """Whether nothing was lost or wrong."""
        return not any(row.lost or row.wrong for row in self.rows)

    def note(self, fault: str, command: str, outcome: str, seen: str = "", times: int = 1) -> None:
        """Counts an outcome, and keeps what was seen of one that may not be."""
        self.row(fault, command).count(outcome, times)
        if outcome in ("lost", "wrong"):
            self.findings.append(Finding(fault, command, outcome, seen.replace(sys.prefix, "")))  # of any machine

    def row(self, fault: str, command: str) -> Row:
        """The row of a fault and a command; a new one if there is none."""
        for row in self.rows:
            if (row.fault, row.command) == (fault, command):
                return row
        self.rows.append(Row(fault, command))
        return self.rows[-1]

    def markdown(self) -> str:
        """Two tables for people: by fault, and by command."""
        return f"{self._summed('fault')}\n{self._summed('command')}"

    def _summed(self, key: str) -> str:
        names = sorted({getattr(row, key) for row in self.rows}, key=str.casefold)
        lines = [_line([key, *COLUMNS]), "|---|" + "---:|" * len(COLUMNS)]
        lines += [_total(name, (row for row in self.rows if getattr(row, key) == name)) for name in names]
        return "\n".join([*lines, _total("all", self.rows)]) + "\n"


def merged(seed: int, seconds: float, tables: Iterable[FaultTable]) -> FaultTable:
    """One table of several."""
    whole = FaultTable(seed, seconds)
    for table in tables:
        whole.findings.extend(table.findings)
        for row in table.rows:
            for outcome in OUTCOMES:
                whole.row(row.fault, row.command).count(outcome, getattr(row, outcome))
    return whole


def _total(name: str, rows: Iterable[Row]) -> str:
    sums = dict.fromkeys(COLUMNS, 0)
    for row in rows:
        for column in COLUMNS:
            sums[column] += getattr(row, column)
    return _line([name, *sums.values()])


def _line(values) -> str:
    return "| " + " | ".join(f"{value:,}" if isinstance(value, int) else value for value in values) + " |"
