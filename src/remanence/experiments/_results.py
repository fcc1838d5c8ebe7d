"""What a table shows: printed and measured numbers. A pure function of cells, finished or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from remanence.experiments._cell_state import CellState
from remanence.experiments._experiment import OUT_OF_MEMORY, Experiment, Reading

PERCENT = "%"


class Filled(Protocol):
    """What a table asks of a cell: a folder, or what a record keeps of one."""

    @property
    def place(self) -> Mapping[str, Any]:
        """Where it stands, with its seed."""
        ...

    @property
    def state(self) -> CellState:
        """How far it is."""
        ...

    def result(self, name: str) -> dict[str, Any] | None:
        """What a measurement found, None before it was made."""
        ...


@dataclass(frozen=True)
class Entry:
    """One number of a table, from all seeds.

    Args:
        place: values of the axes.
        reading: which number of the cell.
        unit: ``"%"`` or nothing.
        printed: what the document has; None if nothing, or if the model did not fit into memory there.
        is_printed: whether the document says anything here.
        values: measured, by seed.
        unfinished: what is known of the cells that are not done, in words, by seed.

    Example:
        >>> Entry({"model": "LSTM"}, "accuracy", "%", 82.0, True, {0: 97.1}, {}).words
        '97.1'
    """

    place: Mapping[str, Any]
    reading: str
    unit: str
    printed: float | None
    is_printed: bool
    values: Mapping[int, float]
    unfinished: Mapping[int, str]

    @property
    def words(self) -> str:
        """What was measured: the mean and the range over seeds, and what is not done yet."""
        told = Counter(self.unfinished.values())
        waiting = [words if seeds == 1 else f"{words} ({seeds} seeds)" for words, seeds in told.items()]
        return "; ".join(filter(None, (self._measured(), *waiting))) or "not run"

    def _measured(self) -> str:
        values = list(self.values.values())
        if not values:
            return ""
        mean = short(sum(values) / len(values))
        if len(values) == 1:
            return mean
        return f"{mean} ({short(min(values))} to {short(max(values))}, {len(values)} seeds)"

    @property
    def printed_words(self) -> str:
        """What the document has."""
        if not self.is_printed:
            return ""
        return OUT_OF_MEMORY if self.printed is None else f"{self.printed:g}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            **self.place,
            "reading": self.reading,
            "unit": self.unit,
            "printed": self.printed_words or None,
            "measured": {str(seed): value for seed, value in self.values.items()},
            "unfinished": {str(seed): words for seed, words in self.unfinished.items()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], axes: Iterable[str]) -> Entry:
        """What :meth:`to_dict` gave.

        Args:
            values: plain ones.
            axes: of the table.
        """
        printed = values["printed"]
        return cls(
            {name: values[name] for name in axes},
            values["reading"],
            values["unit"],
            None if printed in (None, OUT_OF_MEMORY) else float(printed),
            printed is not None,
            {int(seed): value for seed, value in values["measured"].items()},
            {int(seed): words for seed, words in values["unfinished"].items()},
        )


def short(value: float) -> str:
    """A number with as many digits as a table shows.

    Example:
        >>> short(97.123), short(0.00041), short(1.0)
        ('97.1', '0.00041', '1')
    """
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def entries(experiment: Experiment, cells: Iterable[Filled]) -> list[Entry]:
    """All numbers of a table, in the order of its cells.

    Args:
        experiment: the table.
        cells: some of its cells, from any seeds.
    """
    grouped: dict[tuple[Any, ...], list[Filled]] = {}
    for cell in cells:
        grouped.setdefault(tuple(cell.place[name] for name in experiment.axes), []).append(cell)
    return [
        _entry(experiment, reading, group)
        for group in grouped.values()
        for reading in experiment.readings_at(group[0].place)
    ]


def _entry(experiment: Experiment, reading: Reading, group: Sequence[Filled]) -> Entry:
    place = {name: group[0].place[name] for name in experiment.axes}
    values = {cell.place["seed"]: read(cell, reading) for cell in group}
    printed = experiment.printed_at(place, reading.name)
    return Entry(
        place,
        reading.name,
        reading.unit,
        None if printed is None else printed.value,
        printed is not None,
        {seed: value for seed, value in values.items() if value is not None},
        {cell.place["seed"]: so_far(cell, reading) for cell in group if values[cell.place["seed"]] is None},
    )


def read(cell: Filled, reading: Reading) -> float | None:
    """A number of a cell in its unit; None before it was measured, or where the result is not finite.

    Args:
        cell: of the table.
        reading: which number.
    """
    found: Any = next(filter(None, map(cell.result, reading.measure.split("|"))), None)
    for key in reading.path_at(cell.place):
        found = None if found is None else found.get(key)
    if found is None:
        return None
    return 100.0 * found if reading.unit == PERCENT else float(found)


def so_far(cell: Filled, reading: Reading) -> str:
    """What is known of a cell that has not come to a number.

    Args:
        cell: of the table.
        reading: which number.
    """
    state = cell.state
    if state.status == "new":
        return "not run"
    if state.status == "failed":
        return f"failed at update {state.update:,}: {state.reason}"
    validated = state.validation.get(reading.validation or "")
    known = "" if validated is None else f"{short(100 * validated if reading.unit == PERCENT else validated)} "
    if state.budget is None or state.is_done:
        return state.status
    return f"{known}at {state.update:,} of {state.budget:,} updates ({state.status})"


@dataclass(frozen=True)
class Grid:
    """A table as in the paper: rows and columns with printed and measured numbers.

    Args:
        head: names of the columns.
        rows: texts.

    Example:
        >>> Grid(("model", "T = 100"), (("LSTM", "97.1 | 82"),)).head[0]
        'model'
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def grid(experiment: Experiment, found: Sequence[Entry]) -> Grid:
    """Lays entries out as the document does, the first axis downwards.

    Args:
        experiment: the table.
        found: of :func:`entries`.
    """
    first, *others = experiment.axes
    columns: dict[tuple[Any, ...], str] = {}
    rows: dict[Any, dict[tuple[Any, ...], str]] = {}
    for entry in found:
        key = (*(entry.place[name] for name in others), entry.reading)
        named = [f"{name} {entry.place[name]}" for name in others]
        columns.setdefault(key, " ".join([*named, _named(entry, experiment)]).strip())
        rows.setdefault(entry.place[first], {})[key] = _beside(entry)
    head = (first, *columns.values())
    return Grid(head, tuple((str(row), *(cells.get(key, "") for key in columns)) for row, cells in rows.items()))


def _named(entry: Entry, experiment: Experiment) -> str:
    """The name of a number where a cell has several, with its unit."""
    name = entry.reading if len(experiment.readings) > 1 else ""
    return f"{name} ({entry.unit})" if entry.unit and name else name or (f"({entry.unit})" if entry.unit else "")


def _beside(entry: Entry) -> str:
    printed = entry.printed_words
    return f"{entry.words} [{printed}]" if printed else entry.words
