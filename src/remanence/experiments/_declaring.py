"""Short forms for declarations: settings of one source, what is tiny at the smallest scale, printed tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from remanence.experiments._experiment import Departure, Key, PrintedNumber, Setting

TINY = "a few updates of a tiny model show that it runs, and nothing else"
OURS = "ours: how a run is watched"


def told(source: str, **settings: Any) -> tuple[Setting, ...]:
    """Settings of one source; two underscores stand for a dot.

    Example:
        >>> told("Table 6", optimiser__name="adam")[0].key
        'optimiser.name'
    """
    return tuple(Setting(key.replace("__", "."), value, source) for key, value in settings.items())


def options(source: str, **settings: Any) -> tuple[Setting, ...]:
    """Options of the model.

    Example:
        >>> options("Table 6", recent=10)[0].key
        'model.options.recent'
    """
    return tuple(Setting(f"model.options.{key}", value, source) for key, value in settings.items())


def but(settings: Iterable[Setting], *own: Setting) -> tuple[Setting, ...]:
    """Settings with some of them in place of those of the same key, at the end.

    Example:
        >>> [setting.value for setting in but(told("here", seed=1, imports=()), *told("there", seed=2))]
        [(), 2]
    """
    keys = {setting.key for setting in own}
    return (*(setting for setting in settings if setting.key not in keys), *own)


def departures(paper: str, **settings: Any) -> tuple[Departure, ...]:
    """Departures from one thing that the document has; two underscores stand for a dot, ``measure_`` for a measure.

    Example:
        >>> departures("100 epochs", budget__epochs=3)[0].words
        'budget.epochs = 3 (the document: 100 epochs)'
    """
    return tuple(Departure(_key(key), value, paper) for key, value in settings.items())


def _key(key: str) -> str:
    dotted = key.replace("__", ".")
    if dotted.startswith("measure_"):
        return "measure:" + dotted.removeprefix("measure_")
    return dotted


def tiny(updates: int = 4, **more: Any) -> tuple[Departure, ...]:
    """What makes a training run tiny."""
    return departures(
        TINY,
        budget__epochs="none",
        budget__updates=updates,
        evaluation__every=max(1, updates // 2),
        evaluation__batches=1,
        evaluation__batch_size=5,
        loop__log_every=max(1, updates // 2),
        loop__save_every=max(1, updates // 2),
        **more,
    )


def watched(every: int, batches: int, batch_size: int, save_every: int = 2000) -> tuple[Setting, ...]:
    """How a run is watched: nothing that it learns depends on it."""
    return told(
        OURS,
        evaluation__every=every,
        evaluation__batches=batches,
        evaluation__batch_size=batch_size,
        loop__log_every=every,
        loop__save_every=save_every,
    )


def printed_table(
    place: str, rows: Sequence[Any], columns: Mapping[Any, Sequence[Any]], transposed: bool = False
) -> dict[Key, PrintedNumber]:
    """Printed accuracies by (row, column, reading).

    Args:
        place: table of the document.
        rows: values of the first axis.
        columns: by the value of the second axis, numbers in the order of the rows; None is lost in the text at hand,
            ``"OOM"`` what did not fit into memory.
        transposed: whether the second axis comes first in the key.

    Example:
        >>> printed_table("Table 2", (100, 300), {"LSTM": (82, 41)})[300, "LSTM", "accuracy"].value
        41
    """
    found = {}
    for column, numbers in columns.items():
        for row, number in zip(rows, numbers, strict=True):
            if number is None:
                continue
            place_in_table = (row, column)
            if transposed:
                place_in_table = (column, row)
            found[*place_in_table, "accuracy"] = PrintedNumber.of(number, place)
    return found
