"""What every part of a campaign has: undisturbed runs to compare with, a table of outcomes, and luck."""

from __future__ import annotations

import random

from tests.torture.subjects import References
from tests.torture.table import FaultTable


class Part:
    """One kind of fault.

    Args:
        references: undisturbed runs, which the ends are held against.
        table: where the outcomes go.
        draws: of everything that is left to chance.
    """

    def __init__(self, references: References, table: FaultTable, draws: random.Random) -> None:
        self.references = references
        self.scratch = references.scratch
        self.table = table
        self.draws = draws
