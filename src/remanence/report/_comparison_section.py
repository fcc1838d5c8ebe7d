"""The section of a comparison: table, pictures, printed numbers, runs and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from remanence._wording import all_of, number_of
from remanence.figures import Look
from remanence.report._blocks import (
    Block,
    Code,
    Column,
    Details,
    Entry,
    Facts,
    Figures,
    Finding,
    Heading,
    Section,
    Switches,
    Table,
    Text,
)
from remanence.report._comparison import SeedRuns, TaskComparison, seeds_of
from remanence.report._comparison_figures import comparison_figures
from remanence.report._numbers import ABSENT, count, duration, if_known, only_if, percent, plain, points
from remanence.report._page import link_from
from remanence.report._run_record import RunRecord
from remanence.report._sentences import findings, headline, in_unit, state_words, with_range

MOST_COMMANDS = 20
"""Commands that are shown; a hundred runs may have as many."""


def comparison_section(found: TaskComparison, styles: Mapping[str, Look], folder: Path, number: int) -> Section:
    """A comparison: table, pictures, printed numbers, runs and settings; links are relative to the page's folder."""
    view = _View(found, styles, folder)
    colours = {"": ""} | {label: look.colour for label, look in styles.items()}
    said = [Finding(sentence, colours[label]) for sentence, label in findings(found)]
    return Section(f"comparison-{number}", found.title, list(view.blocks()), headline(found), said)


class _View:
    """The blocks of one comparison."""

    def __init__(self, found: TaskComparison, styles: Mapping[str, Look], folder: Path) -> None:
        self.found = found
        self.styles = styles
        self.folder = folder

    def blocks(self) -> Iterator[Block]:
        """From top to bottom."""
        yield Text(_about(self.found), "lead")
        yield from _versions(self.found)
        yield from self._cells()
        pictures = comparison_figures(self.found, self.styles)
        if pictures:
            yield Switches({label: self.styles[label] for label in self.found.labels})
        for heading, figures in pictures.items():
            yield Heading(heading)
            yield Figures(figures)
        yield from _unmeasured(self.found)
        yield from self._printed()
        yield Heading("Every run")
        rows = [self._run_row(cell, run) for cell in self.found.cells for run in cell.runs]
        yield Table(_RUN_COLUMNS, rows, f"{self.found.title}: every run", "runs")
        yield from how_it_was_made(self.found)

    def _named(self, cell: SeedRuns) -> Entry:
        return Entry(cell.label, colour=self.styles[cell.label].colour)

    def _link(self, target: str | Path) -> str:
        return link_from(self.folder, target)

    def _cells(self) -> Iterator[Block]:
        rows = [self._cell_row(cell) for cell in self.found.cells]
        yield Table(_CELL_COLUMNS, rows, f"{self.found.title}: the models")
        note = (
            "Accuracy is that of the best weights by validation; the range is over the seeds. "
            "Times were measured on the machine below, under the load that it had."
        )
        if any(run.has_curriculum for run in self.found.runs):
            note += " No speed is given for runs whose length grew during training."
        yield Text(note, "small")

    def _cell_row(self, cell: SeedRuns) -> list[Entry]:
        updates = sorted(update for update, _ in cell.solved)
        seconds = sorted(seconds for _, seconds in cell.solved if seconds is not None)
        middle = _middle(updates)
        took = _middle(seconds)
        reached = count(middle) + only_if(len(updates) < len(cell.runs), f" ({len(updates)} of {len(cell.runs)})")
        if not updates:
            reached = only_if(cell.can_be_solved, "not reached") or ABSENT
        weights = cell.weights
        link = ""
        if cell.probed is not None:
            link = self._link(cell.probed.folder)
        return [
            self._named(cell),
            Entry(count(cell.length), cell.length),
            Entry(with_range(cell), cell.accuracy.mean),
            Entry(in_unit(cell), cell.in_unit.mean),
            Entry(reached, middle),
            Entry(duration(took), took),
            Entry(count(weights.parameters), weights.parameters, link),
            Entry(state_words(cell), weights.state_bytes, link),
            Entry(plain(cell.steps_per_second), cell.steps_per_second),
            Entry(seeds_of(cell)),
        ]

    def _printed(self) -> Iterator[Block]:
        """Where a paper prints a number for a cell: that number, and the difference."""
        rows = []
        for cell in self.found.cells:
            rows += self._printed_row(cell, cell.length, cell.accuracy.mean, "")
            for point in cell.transfer:
                rows += self._printed_row(cell, point.length, point.accuracy, self._link(point.run))
        if rows:
            yield Heading("Beside the paper")
            yield Table(_PRINTED_COLUMNS, rows, "Measured and printed accuracies")

    def _printed_row(self, cell: SeedRuns, length: int | None, here: float | None, link: str) -> list[list[Entry]]:
        printed = cell.printed(length)
        if printed is None:
            return []
        told = "out of memory"
        difference = None
        if printed.accuracy is not None:
            told = f"{100 * printed.accuracy:.0f} %"
            if here is not None:
                difference = here - printed.accuracy
        return [
            [
                self._named(cell),
                Entry(count(cell.length), cell.length),
                Entry(count(length), length),
                Entry(percent(here), here, link),
                Entry(told, printed.accuracy),
                Entry(if_known(difference, points), difference),
                Entry(printed.place),
            ]
        ]

    def _run_row(self, cell: SeedRuns, run: RunRecord) -> list[Entry]:
        ended = run.status
        if ended in ("failed", "interrupted") and run.state.get("reason"):
            ended = f"{ended}: {run.state['reason']}"
        made = ", ".join(f"{name} {run.manifest[name]}" for name in ("remanence", "torch") if name in run.manifest)
        solved, _ = run.solved_at or (None, None)
        loss = plain(run.loss, 4)
        if run.best is not None and run.loss is None:
            loss = "not finite"
        return [
            Entry(run.folder.name, link=self._link(run.folder)),
            self._named(cell),
            Entry(count(run.length), run.length),
            Entry(if_known(run.seed), run.seed),
            Entry(ended, kind=only_if(run.status.isalpha(), f"status-{run.status}")),
            Entry(count(run.update), run.update),
            Entry(percent(run.accuracy), run.accuracy),
            Entry(loss, run.loss),
            Entry(count(solved), solved),
            Entry(plain(run.updates_per_second), run.updates_per_second),
            Entry(made or "unknown versions"),
        ]


_CELL_COLUMNS = (
    Column("model", numeric=False),
    Column("T", "steps"),
    Column("accuracy", "validation, mean (range)"),
    Column("in its unit", "validation, mean (range)"),
    Column("to 99 %", "updates, median"),
    Column("to 99 %", "time, median"),
    Column("parameters"),
    Column("state", "one sequence"),
    Column("speed", "steps per second"),
    Column("runs", numeric=False),
)
_PRINTED_COLUMNS = (
    Column("model", numeric=False),
    Column("trained at", "T"),
    Column("measured at", "T"),
    Column("here"),
    Column("printed"),
    Column("difference", "points"),
    Column("where", numeric=False),
)
_RUN_COLUMNS = (
    Column("run", numeric=False),
    Column("model", numeric=False),
    Column("T"),
    Column("seed"),
    Column("status", numeric=False),
    Column("update"),
    Column("accuracy"),
    Column("loss"),
    Column("to 99 %", "updates"),
    Column("updates", "per second"),
    Column("made with", numeric=False),
)


def _about(found: TaskComparison) -> str:
    lengths = [f"{length:,}" for length in found.lengths if length is not None]
    updates = sorted({cell.budget for cell in found.cells if cell.budget is not None})
    at = only_if(lengths, f" at T = {', '.join(lengths)}")
    budget = only_if(updates, f"; up to {' or '.join(map(count, updates))} updates each")
    return f"{number_of(len(found.runs), 'run')} of {number_of(len(found.labels), 'model')}{at}{budget}."


def _versions(found: TaskComparison) -> Iterator[Text]:
    if found.mixed:
        told = "; ".join(f"{name}: {', '.join(values)}" for name, values in found.mixed.items())
        yield Text(f"These runs were not all made with the same versions. {told}", "note")


def _middle(values: Sequence[float]) -> float | None:
    if not values:
        return None
    return values[(len(values) - 1) // 2]


def _unmeasured(found: TaskComparison) -> Iterator[Text]:
    """Says which models the pictures of weights leave out, and why; once where it is the same for several."""
    told: dict[str, list[str]] = {}
    for cell in found.cells:
        for reason in _reasons(cell):
            told.setdefault(reason, []).append(cell.name)
    for reason, names in told.items():
        which = "; ".join(names)
        if len(names) == len(found.cells) > 1:
            which = all_of(len(names), "model")
        yield Text(f"{which}: {reason}.", "note")


def _reasons(cell: SeedRuns) -> Iterator[str]:
    if cell.probed is None:
        yield "weights have not been measured"
        return
    if not cell.probed.is_measured:
        yield f"measured at update {cell.weights.update}, and better weights came later"
    yield from (f"{name}: {text.rstrip('.')}" for name, text in cell.weights.errors.items())


def how_it_was_made(found: TaskComparison) -> Iterator[Block]:
    """Commands, versions, machine and settings."""
    yield Heading("How it was made")
    if found.commands:
        yield Text("Command" + only_if(len(found.commands) > 1, "s"))
        yield from (Code(command) for command in found.commands[:MOST_COMMANDS])
    yield Text("Versions and machine")
    yield Facts(machines([run.manifest for run in found.runs]))
    yield Text("Settings of every model")
    settings: dict[str, list[str]] = {}
    for cell in found.cells:
        if cell.runs:
            settings.setdefault(cell.runs[0].settings, []).append(_settings_of(cell))
    yield from (Details("; ".join(names), [Code(text)]) for text, names in settings.items() if text)


def _settings_of(cell: SeedRuns) -> str:
    seeds = [if_known(run.seed) for run in cell.runs]
    if len(seeds) == 1:
        return f"{cell.name}, seed {seeds[0]}"
    return f"{cell.name}, seeds {', '.join(seeds)}; shown is the first"


_MACHINE = ("platform", "machine", "cores", "cpu_capability", "backend", "instruction_set", "threads", "world_size")
_MADE = ("remanence", "torch", "numpy", "python", "git")


def machines(manifests: Sequence[Mapping[str, object]]) -> list[tuple[str, str]]:
    """Every fact about versions and machine; where runs differ, all its values.

    Example:
        >>> machines([{"torch": "2.13"}, {"torch": "2.14"}])
        [('torch', '2.13; 2.14')]
    """
    values: dict[str, dict[str, None]] = {}
    for manifest in manifests:
        for name, value in _identity(manifest).items():
            values.setdefault(name.replace("_", " "), {})[value] = None
    return [(name, "; ".join(several)) for name, several in values.items()] or [("versions", "unknown")]


def _identity(manifest: Mapping[str, object]) -> dict[str, str]:
    found = {name: str(manifest[name]) for name in (*_MADE, *_MACHINE) if manifest.get(name) not in (None, "")}
    git = manifest.get("git")
    if isinstance(git, dict):
        found["git"] = str(git.get("commit", ""))[:12] + only_if(git.get("changed"), ", changed since")
    return found
