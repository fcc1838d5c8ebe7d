"""The table of faults: how many were tried, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from remanence.runs import Result

COLUMNS = ("fault", "tried", "survived", "refused", "lost", "wrong")


@dataclass
class Row:
    """One kind of fault.

    Args:
        fault: what was done.
        survived: the same bits, or the same answer, as without it.
        refused: one line that says why, and an exit code that the documentation lists.
        lost: the run could not be carried to its end.
        wrong: another number in silence, a traceback, a hang, or something overwritten.
    """

    fault: str
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
    """A fault that was lost or wrong, with what was seen and how to see it again."""

    fault: str
    command: str
    outcome: str
    seen: str


@dataclass(frozen=True)
class FaultTable(Result):
    """What a campaign found."""

    kind: ClassVar[str] = "fault-table"
    seed: int
    seconds: float
    rows: list[Row] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing was lost or wrong."""
        return not any(row.lost or row.wrong for row in self.rows)

    def row(self, fault: str) -> Row:
        """The row of a fault; a new one if there is none."""
        for row in self.rows:
            if row.fault == fault:
                return row
        self.rows.append(Row(fault))
        return self.rows[-1]

    def markdown(self) -> str:
        """The table for people."""
        total = Row("all")
        for row in self.rows:
            for outcome in COLUMNS[2:]:
                total.count(outcome, getattr(row, outcome))
        lines = [_line(COLUMNS), "|---|" + "---:|" * (len(COLUMNS) - 1)]
        lines += [_line([getattr(row, name) for name in COLUMNS]) for row in (*self.rows, total)]
        return "\n".join(lines) + "\n"


def _line(values) -> str:
    return "| " + " | ".join(f"{value:,}" if isinstance(value, int) else value for value in values) + " |"
