"""The page of a table or figure: printed and measured numbers, curves, settings with sources, what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from remanence.experiments._cell import TableCell
from remanence.experiments._departures import departure_lines
from remanence.experiments._experiment import Experiment, Recipe
from remanence.experiments._record import Record
from remanence.experiments._results import entries, figures_of, grid
from remanence.experiments._stored import StoredCell, cells_in, records_of
from remanence.experiments._stored_runs import coverage, not_stored, runs_by_settings
from remanence.figures import Figure

AS_PRINTED = "Stored runs at the scale paper"
BRACKETS = "Measured numbers, printed ones in brackets. Only these runs can say whether a printed number holds."
OTHERS = "Elsewhere, the stored runs nearest to the scale paper"


@dataclass(frozen=True)
class Part:
    """One part of the page, without any markup.

    Args:
        heading: above it.
        words: paragraphs.
        head: names of a table's columns.
        rows: of the table.
        figures: curves.
        folded: whether it is shown when asked for.

    Example:
        >>> Part("Settings", ("All as printed.",)).is_empty
        False
    """

    heading: str
    words: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    figures: tuple[Figure, ...] = ()
    folded: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return not (self.words or self.rows or self.figures)


def page_parts(experiment: Experiment, scale: str, cells: Sequence[TableCell]) -> list[Part]:
    """The page, from cells that are finished or not and from all stored records.

    First comes its heading, with what there is in one sentence.

    Example:
        >>> from remanence.experiments import find_experiment, plan_cells
        >>> table = find_experiment("ke2017/table-1")
        >>> page_parts(table, "paper", plan_cells(table, "paper", "no such folder"))[0].words[0]
        '... 0 of ... cells are done here at the scale paper'
    """
    records = records_of(experiment.id)
    told = (_headline(experiment, records, scale, cells), experiment.note)
    parts = [
        Part(f"{experiment.id}: {experiment.title}", tuple(filter(None, told))),
        *_here(experiment, scale, cells),
        *stored_parts(experiment, records),
        *_settings(experiment, scale, cells),
    ]
    return [part for part in parts if not part.is_empty]


def _headline(experiment: Experiment, records: Sequence[Record], scale: str, cells: Sequence[TableCell]) -> str:
    stored = [cell for record in records for cell in cells_in(record) if cell.state.is_done]
    as_printed = sum(cell.is_as_printed for cell in stored)
    kept = "No stored runs"
    if stored:
        kept = f"{len(stored)} stored runs, {as_printed} of them at the scale paper"
    return f"{kept}; {_counted(cells)} here at the scale {scale}"


def _counted(cells: Sequence[TableCell]) -> str:
    return f"{sum(cell.state.is_done for cell in cells)} of {len(cells)} cells are done"


def _here(experiment: Experiment, scale: str, cells: Sequence[TableCell]) -> Iterator[Part]:
    heading = f"Measured here, at the scale {scale}"
    states = [(cell, cell.state) for cell in cells]
    if all(state.status == "new" for _, state in states):
        command = f"`remanence reproduce {experiment.id} --scale {scale}`"
        yield Part(heading, (f"{_counted(cells)}; {command} runs them in {cells[0].root}.",))
        return
    words = (f"{_counted(cells)}. Measured numbers, printed ones in brackets.",)
    laid = grid(experiment, entries(experiment, cells))
    yield Part(heading, words, laid.head, laid.rows, tuple(figures_of(experiment, cells)))
    begun = [(cell, state) for cell, state in states if not state.is_done and state.status != "new"]
    others = sum(state.status == "new" for _, state in states)
    rows = tuple((cell.label, state.status, state.reason or "-") for cell, state in begun)
    words = (f"{others} cells were not begun.",) if others else ()
    yield Part("Not done here", words, ("cell", "status", "why"), rows)


def stored_parts(experiment: Experiment, records: Sequence[Record]) -> list[Part]:
    """The stored records of a table or figure: next to the printed numbers, what is missing, and each record."""
    cells = [cell for record in records for cell in cells_in(record)]
    found = coverage(experiment, cells)
    drawn = [cell for cell in found.as_printed if isinstance(cell, StoredCell)]
    printed = grid(experiment, entries(experiment, found.as_printed))
    others = runs_by_settings(experiment, found.nearest)
    missing = not_stored(experiment, found, cells)
    words = (BRACKETS,) if experiment.printed else ()
    parts = [
        Part(AS_PRINTED, words, printed.head, printed.rows, tuple(figures_of(experiment, drawn))),
        Part(OTHERS, (), others.head, others.rows, tuple(figures_of(experiment, found.nearest))),
        Part("Not stored", (), missing.head, missing.rows),
    ]
    if not (drawn or words):
        del parts[0]  # a table of nothing but "not run"
    return [part for part in (*parts, *(_record(experiment, one) for one in records)) if part.rows]


def _record(experiment: Experiment, record: Record) -> Part:
    """All runs of one record with their settings, curves, and where they were made."""
    cells = [cell for cell in cells_in(record) if cell.state.is_done]
    laid = runs_by_settings(experiment, cells)
    where = f"Made on {record.machine or 'an unnamed machine'} by remanence {record.facts.get('remanence', '')}"
    if record.facts.get("commit"):
        where += f" at {record.facts['commit'][:12]}"
    told = [f"{where}.", *(f"Different there: {words}." for words in record.labels)]
    heading = f"Record: {record.scale}, {len(cells)} runs"
    return Part(heading, tuple(told), laid.head, laid.rows, tuple(figures_of(experiment, cells)), folded=True)


def _settings(experiment: Experiment, scale: str, cells: Sequence[TableCell]) -> Iterator[Part]:
    """Departures of the scale, and settings with their sources: those of all cells, then what a row has of its own."""
    named = tuple(departure_lines(experiment.scale(scale).departures))
    heading = f"Departures from the paper at the scale {scale}"
    yield Part(heading, named or ("None: the settings are the paper's.",))
    rows: dict[str, list[Recipe]] = {}
    first = next(iter(experiment.axes))
    for cell in cells:
        rows.setdefault(str(cell.place[first]), []).append(experiment.recipe_at(scale, cell.place))
    described = {name: _described(recipes) for name, recipes in rows.items()}
    common = [line for line in next(iter(described.values())) if all(line in lines for lines in described.values())]
    yield _settings_part("Settings of all cells", common)
    for name, lines in described.items():
        yield _settings_part(f"Settings of {first} {name}", [line for line in lines if line not in common])


def _settings_part(heading: str, lines: Sequence[tuple[str, str, str]]) -> Part:
    return Part(heading, (), ("setting", "value", "source"), tuple(lines), folded=True)


def _described(recipes: Iterable[Recipe]) -> list[tuple[str, str, str]]:
    """Key, value and source of every setting; values that differ along a row of the table are all named."""
    found: dict[tuple[str, str], list[str]] = {}
    for recipe in recipes:
        told = [(one.key, one.source, str(one.value)) for one in recipe.settings]
        told += [
            (f"measured: {measure.name}.{key}", "", str(value))
            for measure in recipe.measures
            for key, value in (measure.settings or {"": ""}).items()
        ]
        for key, source, value in told:
            values = found.setdefault((key, source), [])
            if value not in values:
                values.append(value)
    return [(key, ", ".join(values), source) for (key, source), values in found.items()]


def make_page(experiment: Experiment, scale: str, cells: Sequence[TableCell]) -> str:
    """The page in Markdown, from cells that are finished or not and from all stored records."""
    first, *others = page_parts(experiment, scale, cells)
    texts = [f"# {first.heading}", *first.words]
    for part in others:
        texts += [f"## {part.heading}", *part.words]
        if part.rows:
            texts.append(markdown_table(part.head, part.rows))
    return "\n\n".join(texts) + "\n"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    Example:
        >>> print(markdown_table(("a",), (("1",),)))
        | a |
        | --- |
        | 1 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(text.replace('|', '/') for text in line)} |" for line in lines)
