"""Accuracies that the papers print for a task, a model and a length, to be shown with the measured ones."""

from __future__ import annotations

from dataclasses import dataclass

from remanence._documents import PAPERS, paper_key
from remanence.experiments._experiment import PrintedNumber
from remanence.experiments.kerg2020._recall import TABLE_1, TABLE_2, TABLE_5, TRAINED_AT


@dataclass(frozen=True)
class Printed:
    """One cell of a printed table.

    Args:
        document: the paper's key, such as ``"kerg2020"``.
        table: the table's number.
        accuracy: between 0 and 1; None where the table says that the model did not fit into memory.

    Example:
        >>> Printed("kerg2020", 2, 0.41).place
        'Kerg et al. 2020, Table 2'
    """

    document: str
    table: int
    accuracy: float | None

    @property
    def place(self) -> str:
        """Where the number stands."""
        return f"{PAPERS[paper_key(self.document)].name}, Table {self.table}"


def printed_accuracy(task: str, model: str, trained_at: int, measured_at: int | None = None) -> Printed | None:
    """What Kerg et al. 2020 print for a cell.

    Args:
        task: ``"copy"`` or ``"denoise"``; others have no printed cell here.
        model: by its name in :mod:`remanence.nn`.
        trained_at: T of the training.
        measured_at: T of the evaluation, if it is another (Transfer Copy).

    Returns:
        The cell, None if there is none.

    Example:
        >>> printed_accuracy("denoise", "LSTM", 300)
        Printed(document='kerg2020', table=2, accuracy=0.41)
        >>> printed_accuracy("copy", "RelRNN", 100, 5000).accuracy
        0.99
    """
    is_transfer = measured_at not in (None, trained_at)
    if task == "denoise" and not is_transfer:
        return _cell(2, TABLE_2.printed.get((model, trained_at, "accuracy")))
    if task == "copy" and not is_transfer:
        return _cell(5, TABLE_5.printed.get((trained_at, model, "accuracy")))
    if task == "copy" and trained_at == TRAINED_AT:
        return _cell(1, TABLE_1.printed.get((model, f"T = {measured_at}")))
    return None


def _cell(table: int, printed: PrintedNumber | None) -> Printed | None:
    if printed is None:
        return None
    return Printed("kerg2020", table, printed.value and printed.value / 100)
