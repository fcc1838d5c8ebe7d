"""Accuracies that the documents print for a task, a model and a length, to be shown beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """One cell of a printed table.

    Args:
        document: its number.
        table: the table's number.
        accuracy: between 0 and 1; None where the table says that the model did not fit into memory.

    Example:
        >>> Printed("000", 2, 0.41).place
        'document 000, Table 2'
    """

    document: str
    table: int
    accuracy: float | None

    @property
    def place(self) -> str:
        """Where the number stands."""
        return f"document {self.document}, Table {self.table}"


_UNREADABLE = -1
"""A cell of Table 5 that the text at hand has lost, or runs together with the one below it."""

# Percent; None is "OOM". Names of models are ours: orth-RNN, expRNN, h-detach and SAB in the document.
_COPY = {
    "LSTM": (100, 100, 100, 12, _UNREADABLE, 12),
    "OrthRNN": (100, 100, 100, 100, 80, 11),
    "ExpRNN": (100, 100, 100, 100, 100, 100),
    "MemRNN": (100, 100, _UNREADABLE, _UNREADABLE, 100, None),
    "SABLSTM": (100, 100, 100, 100, 100, 100),
    "RelRNN": (100, 100, 100, 100, 100, 100),
    "RelLSTM": (100, 100, 100, 100, 100, 100),
}
_COPY_LENGTHS = (100, 200, 300, 500, 1000, 2000)
_DENOISE = {
    "OrthRNN": (90, 71, 61, 29, 3),
    "ExpRNN": (34, 25, 20, 16, 11),
    "MemRNN": (99, 99, 99, 99, None),
    "RelRNN": (100, 99, 99, 99, 99),
    "LSTM": (82, 41, 33, 21, 15),
    "GORU": (92, 93, 91, 93, 73),
    "SABLSTM": (99, 99, 99, 99, 99),
    "RelLSTM": (100, 99, 99, 99, 99),
}
_DENOISE_LENGTHS = (100, 300, 500, 1000, 2000)
_TRANSFER = {
    "OrthRNN": (99, 4, 16, 10, 0),
    "ExpRNN": (100, 86, 73, 58, 50),
    "MemRNN": (99, 99, 99, 92, None),
    "RelRNN": (100, 99, 99, 99, 99),
    "LSTM": (99, 64, 48, 19, 14),
    "HDetachLSTM": (100, 91, 77, 51, 42),
    "SABLSTM": (99, 95, 95, 95, 95),
    "RelLSTM": (100, 99, 99, 99, 99),
}
_TRANSFER_LENGTHS = (100, 200, 400, 2000, 5000)
_TRAINED_AT = 100


def printed_accuracy(task: str, model: str, trained_at: int, measured_at: int | None = None) -> Printed | None:
    """What document 000 prints for a cell.

    Args:
        task: ``"copy"`` or ``"denoise"``; others have no printed cell here.
        model: by its name in :mod:`remanence.nn`.
        trained_at: T of the training.
        measured_at: T of the evaluation, if it is another (Transfer Copy).

    Returns:
        The cell, None if there is none.

    Example:
        >>> printed_accuracy("denoise", "LSTM", 300)
        Printed(document='000', table=2, accuracy=0.41)
        >>> printed_accuracy("copy", "RelRNN", 100, 5000).accuracy
        0.99
    """
    if measured_at in (None, trained_at):
        if task == "copy":
            return _cell(5, _COPY, _COPY_LENGTHS, model, trained_at)
        return _cell(2, _DENOISE, _DENOISE_LENGTHS, model, trained_at) if task == "denoise" else None
    if task == "copy" and trained_at == _TRAINED_AT:
        return _cell(1, _TRANSFER, _TRANSFER_LENGTHS, model, measured_at)
    return None


def _cell(
    table: int, rows: dict[str, tuple[int | None, ...]], lengths: tuple[int, ...], model: str, length: int | None
) -> Printed | None:
    if model not in rows or length not in lengths:
        return None
    percent = rows[model][lengths.index(length)]
    if percent == _UNREADABLE:
        return None
    return Printed("000", table, None if percent is None else percent / 100)
