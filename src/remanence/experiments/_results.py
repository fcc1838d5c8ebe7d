"""What a table or a figure shows of its cells, finished or not: printed and measured numbers, and lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from remanence import figures
from remanence.experiments._cell_state import CellState
from remanence.experiments._experiment import OUT_OF_MEMORY, Curve, Experiment, Key, Place, Reading, without_seed
from remanence.runs import Settings, Values

PERCENT = "%"
OF_THE_RUN = ("validation", "train")


class Filled(Protocol):
    """What a table asks of a cell: a folder, or what a record keeps of one."""

    @property
    def place(self) -> Settings:
        """Where it stands, with its seed."""
        ...

    @property
    def state(self) -> CellState:
        """How far it is."""
        ...

    def result(self, name: str) -> Values | None:
        """What a measurement found, None before it was made."""
        ...

    def learning_curve(self, source: str, name: str) -> Sequence[float | None]:
        """One column of what its run measured while it learnt: of its validations or of its training."""
        ...


@dataclass(frozen=True)
class TableNumber:
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
        >>> TableNumber({"model": "LSTM"}, "accuracy", "%", 82.0, True, {0: 97.1}, {}).words
        '97.1'
    """

    place: Place
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
        waiting = [_counted(words, seeds) for words, seeds in told.items()]
        return "; ".join(filter(None, (self._measured(), *waiting))) or "not run"

    def _measured(self) -> str:
        values = list(self.values.values())
        if not values:
            return ""
        mean = short(sum(values) / len(values))
        if len(values) == 1:
            return mean
        least = short(min(values))
        most = short(max(values))
        if least == most:
            return f"{mean} ({len(values)} seeds)"
        return f"{mean} ({least} to {most}, {len(values)} seeds)"

    @property
    def printed_words(self) -> str:
        """What the document has."""
        if not self.is_printed:
            return ""
        if self.printed is None:
            return OUT_OF_MEMORY
        return f"{self.printed:g}"

    def to_dict(self) -> Values:
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
    def from_dict(cls, values: Settings, axes: Iterable[str]) -> TableNumber:
        """What :meth:`to_dict` gave of a table with these axes."""
        printed = values["printed"]
        number = None
        if printed not in (None, OUT_OF_MEMORY):
            number = float(printed)
        return cls(
            {name: values[name] for name in axes},
            values["reading"],
            values["unit"],
            number,
            printed is not None,
            {int(seed): value for seed, value in values["measured"].items()},
            {int(seed): words for seed, words in values["unfinished"].items()},
        )


def _counted(words: str, seeds: int) -> str:
    if seeds == 1:
        return words
    return f"{words} ({seeds} seeds)"


def short(value: float) -> str:
    """A number with as many digits as a table shows.

    Example:
        >>> short(97.123), short(0.00041), short(1.0)
        ('97.1', '0.00041', '1')
    """
    if abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}"


def entries(experiment: Experiment, cells: Iterable[Filled]) -> list[TableNumber]:
    """All numbers of a table, in the order of its cells."""
    grouped: dict[Key, list[Filled]] = {}
    for cell in cells:
        grouped.setdefault(tuple(cell.place[name] for name in experiment.axes), []).append(cell)
    return [
        _entry(experiment, reading, group)
        for group in grouped.values()
        for reading in experiment.readings_at(group[0].place)
    ]


def _entry(experiment: Experiment, reading: Reading, group: Sequence[Filled]) -> TableNumber:
    place = {name: group[0].place[name] for name in experiment.axes}
    values = {cell.place["seed"]: read(cell, reading) for cell in group}
    printed = experiment.printed_at(place, reading.name)
    return TableNumber(
        place,
        reading.name,
        reading.unit,
        # None both where nothing is printed and where the model did not fit; `is_printed` tells them apart.
        printed and printed.value,
        printed is not None,
        {seed: value for seed, value in values.items() if value is not None},
        {cell.place["seed"]: so_far(cell, reading) for cell in group if values[cell.place["seed"]] is None},
    )


def read(cell: Filled, reading: Reading) -> float | None:
    """A number of a cell in its unit; None before it was measured, or where the result is not finite."""
    found = look_up(cell, reading.measure, reading.path_at(cell.place))
    if found is None:
        return None
    return in_unit(found, reading)


def look_up(cell: Filled, measure: str, path: Iterable[str]) -> Any:
    """What lies at a path in the first of the measurements ``"a|b"`` that the cell has; None if nothing does."""
    found: Any = next(filter(None, map(cell.result, measure.split("|"))), None)
    for key in path:
        if found is None:
            return None
        found = found.get(key)
    return found


def in_unit(number: float, reading: Reading) -> float:
    """A number as the table shows it."""
    if reading.unit == PERCENT:
        return 100.0 * number
    return float(number)


def so_far(cell: Filled, reading: Reading) -> str:
    """What is known of a cell that has not come to a number."""
    state = cell.state
    if state.status == "new":
        return "not run"
    if state.status == "failed":
        return f"failed at update {state.update:,}"  # why is told below the table
    if state.is_done:
        return "no number"  # smaller scales do not measure all, and a result may not be finite
    if state.budget is None:
        return state.status
    words = f"at {state.update:,} of {state.budget:,} updates ({state.status})"
    validated = state.validation.get(reading.validation or "")
    if validated is None:
        return words
    return f"{short(in_unit(validated, reading))} {words}"


@dataclass(frozen=True)
class Grid:
    """A table as in the paper, in words: rows and columns with printed and measured numbers.

    Example:
        >>> Grid(("model", "length 100", "length 200"), (("LSTM", "82", "51"),)).turned()
        Grid(head=('model', 'LSTM'), rows=(('length 100', '82'), ('length 200', '51')))
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def turned(self) -> Grid:
        """The same with rows as columns."""
        head, *rows = zip(self.head, *self.rows, strict=True)
        return Grid(head, tuple(rows))


def grid(experiment: Experiment, found: Sequence[TableNumber]) -> Grid:
    """Lays entries out as the document does, the first axis downwards."""
    first, *others = experiment.axes
    columns: dict[Key, str] = {}
    rows: dict[str, dict[Key, str]] = {}
    for entry in found:
        key = (*(entry.place[name] for name in others), entry.reading)
        named = [_told(name, entry.place[name]) for name in others]
        columns.setdefault(key, " ".join([*named, _named(entry, experiment)]).strip() or entry.reading)
        rows.setdefault(entry.place[first], {})[key] = _beside(entry)
    head = (first, *columns.values())
    return Grid(head, tuple((str(row), *(cells.get(key, "") for key in columns)) for row, cells in rows.items()))


def _told(axis: str, value: Any) -> str:
    """A value at the head of a column: a word says by itself what it is, a number does not."""
    return value if isinstance(value, str) else f"{axis} {value}"


def _named(entry: TableNumber, experiment: Experiment) -> str:
    """The name of a number where a cell has several, with its unit."""
    parts = []
    if len(experiment.readings) > 1:
        parts.append(entry.reading)
    if entry.unit:
        parts.append(f"({entry.unit})")
    return " ".join(parts)


def _beside(entry: TableNumber) -> str:
    if not entry.is_printed:
        return entry.words
    return f"{entry.words} [{entry.printed_words}]"


def figures_of(experiment: Experiment, cells: Sequence[Filled]) -> list[figures.Figure]:
    """One picture for each kind of line that an experiment declares, with a line for every cell that has points."""
    drawn = (_figure(experiment, curve, cells) for curve in experiment.curves)
    return [figure for figure in drawn if not figure.is_empty]


def _figure(experiment: Experiment, curve: Curve, cells: Sequence[Filled]) -> figures.Figure:
    parts = []
    has_seeds = len({cell.place["seed"] for cell in cells}) > 1
    for cell in cells:
        x, y = points(cell, curve)
        # The seeds of a place share a group, and with it their colour.
        group = name = ", ".join(map(str, without_seed(cell.place).values()))
        if has_seeds:
            name = f"{group}, seed {cell.place['seed']}"
        if x:
            parts.append(figures.Curve(name, x, y, group=group))
    x_axis = figures.Axis(curve.x.rpartition(".")[2])
    y_axis = figures.Axis(curve.name, curve.scale)
    return figures.Figure(curve.name.capitalize(), experiment.title, tuple(parts), x_axis, y_axis, legend=True)


def points(cell: Filled, curve: Curve) -> tuple[Sequence[float], Sequence[float]]:
    """The points of a cell's line, none before there are any."""
    if curve.source in OF_THE_RUN:
        columns = (cell.learning_curve(curve.source, name) for name in (curve.x, curve.y))
        kept = [(x, y) for x, y in zip(*columns, strict=True) if x is not None and y is not None]
        return [x for x, _ in kept], [y for _, y in kept]
    x, y = (look_up(cell, curve.source, path.split(".")) or [] for path in (curve.x, curve.y))
    return x, y
