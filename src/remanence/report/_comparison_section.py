"""The section of a comparison: table, pictures, printed numbers, runs and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remanence.report._comparison import Cell, Comparison, seeds_of
from remanence.report._figures import comparison_figures
from remanence.report._findings import findings, headline, in_unit, state_words, with_range
from remanence.report._parts import Page, Section
from remanence.report._runs import RunRecord
from remanence.report._tables import Column, Entry, details, escape, facts, table, without_empty
from remanence.report._words import ABSENT, count, duration, number_of, percent, plain, points


def comparison_section(page: Page, found: Comparison, number: int) -> Section:
    """A comparison: table, pictures, printed numbers, runs and settings."""
    parts = [f'<p class="lead"><bdi>{escape(_about(found))}</bdi></p>', _versions(found), _cells(page, found)]
    pictures = comparison_figures(found, page.styles)
    if pictures:
        parts.append(page.legend(found.labels))
    for heading, figures in pictures.items():
        parts.append(f"<h3>{escape(heading)}</h3>{page.plots(figures)}")
    parts += [_unmeasured(found), _printed(page, found), _runs(page, found), _settings(found)]
    by_label = {cell.label: page.styles[cell.label].colour for cell in found.cells}
    said = [(sentence, _colour_of(sentence, by_label)) for sentence in findings(found)]
    return Section(f"comparison-{number}", found.heading, headline(found), said, "".join(parts))


def _colour_of(sentence: str, by_label: Mapping[str, str]) -> str:
    fitting = [label for label in by_label if sentence.startswith(label)]
    return by_label[max(fitting, key=len)] if fitting else ""


def _about(found: Comparison) -> str:
    lengths = [f"{length:,}" for length in found.lengths if length is not None]
    at = f" at T = {', '.join(lengths)}" if lengths else ""
    updates = sorted({cell.budget for cell in found.cells if cell.budget is not None})
    budget = f"; up to {' or '.join(map(count, updates))} updates each" if updates else ""
    runs = number_of(len(found.runs), "run")
    return f"{runs} of {number_of(len(found.labels), 'model')}{at}{budget}."


def _versions(found: Comparison) -> str:
    if not found.mixed:
        return ""
    told = "; ".join(f"{name}: {', '.join(values)}" for name, values in found.mixed.items())
    return f'<p class="note">These runs were not all made with the same versions. {escape(told)}</p>'


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


def _cells(page: Page, found: Comparison) -> str:
    columns, rows = without_empty(_CELL_COLUMNS, [_cell_row(page, cell) for cell in found.cells])
    note = (
        "Accuracy is that of the best weights by validation; the range is over the seeds. "
        "Times are those of the machine below, with whatever else it did."
    )
    if any(run.has_curriculum for run in found.runs):
        note += " No speed is given for runs whose length grew during training."
    return table(columns, rows, f"{found.title}: the models", "cells") + f'<p class="small">{note}</p>'


def _cell_row(page: Page, cell: Cell) -> list[Entry]:
    updates = sorted(update for update, _ in cell.solved)
    seconds = sorted(seconds for _, seconds in cell.solved if seconds is not None)
    reached = "" if len(updates) == len(cell.runs) else f" ({len(updates)} of {len(cell.runs)})"
    missed = "not reached" if cell.can_be_solved else ABSENT
    middle, took = _middle(updates), _middle(seconds)
    link = page.link(cell.probed.folder) if cell.probed else ""
    return [
        Entry(cell.label, colour=page.styles[cell.label].colour),
        Entry(count(cell.length), cell.length),
        Entry(with_range(cell), cell.accuracy.mean),
        Entry(f"{in_unit(cell)} {cell.unit.replace('_', ' ')}" if cell.unit else ABSENT, cell.in_unit.mean),
        Entry(count(middle) + reached if middle is not None else missed, middle),
        Entry(ABSENT if took is None else duration(took), took),
        Entry(count(cell.parameters), cell.parameters, link),
        Entry(state_words(cell), cell.state_bytes, link),
        Entry(plain(cell.steps_per_second), cell.steps_per_second),
        Entry(seeds_of(cell)),
    ]


def _middle(values: Sequence[float]) -> float | None:
    return values[(len(values) - 1) // 2] if values else None


def _unmeasured(found: Comparison) -> str:
    """Says which models the pictures of weights leave out, and why."""
    told = []
    for cell in found.cells:
        if cell.probed is None and not found.source:
            told.append(f"{cell.name}: its weights have not been measured")
        elif cell.probed is not None and cell.probed.probes_are_stale:
            told.append(f"{cell.name}: measured at update {cell.probes.get('update')}, and better weights came later")
        errors = cell.probes.get("errors")
        told += [f"{cell.name}, {name}: {text}" for name, text in errors.items()] if isinstance(errors, dict) else []
    return "".join(f'<p class="note"><bdi>{escape(text)}.</bdi></p>' for text in told[:20])


def _printed(page: Page, found: Comparison) -> str:
    """Where a document prints a number for a cell: that number, and the difference."""
    columns = (
        Column("model", numeric=False),
        Column("trained at", "T"),
        Column("measured at", "T"),
        Column("here"),
        Column("printed"),
        Column("difference", "points"),
        Column("where", numeric=False),
    )
    rows = []
    for cell in found.cells:
        rows += _printed_row(page, cell, cell.length, cell.accuracy.mean, "")
        for point in cell.transfer:
            rows += _printed_row(page, cell, point.length, point.accuracy, page.link(point.run))
    if not rows:
        return ""
    return "<h3>Beside the document</h3>" + table(columns, rows, "Measured and printed accuracies", "cells")


def _printed_row(page: Page, cell: Cell, length: int | None, here: float | None, link: str) -> list[list[Entry]]:
    printed = cell.printed(length)
    if printed is None:
        return []
    told = "out of memory" if printed.accuracy is None else f"{100 * printed.accuracy:.0f} %"
    difference = None if printed.accuracy is None or here is None else here - printed.accuracy
    return [
        [
            Entry(cell.label, colour=page.styles[cell.label].colour),
            Entry(count(cell.length), cell.length),
            Entry(count(length), length),
            Entry(percent(here), here, link),
            Entry(told, printed.accuracy),
            Entry(ABSENT if difference is None else points(difference), difference),
            Entry(printed.place),
        ]
    ]


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


def _runs(page: Page, found: Comparison) -> str:
    rows = [_run_row(page, cell, run) for cell in found.cells for run in cell.runs]
    return "<h3>Every run</h3>" + table(_RUN_COLUMNS, rows, f"{found.title}: every run", "runs")


def _run_row(page: Page, cell: Cell, run: RunRecord) -> list[Entry]:
    reason = run.state.get("reason")
    ended = f"{run.status}: {reason}" if reason and run.status in ("failed", "interrupted") else run.status
    made = ", ".join(f"{name} {run.manifest[name]}" for name in ("remanence", "torch") if name in run.manifest)
    solved = run.solved_at[0] if run.solved_at else None
    finite = "not finite" if run.best is not None and run.loss is None else plain(run.loss, 4)
    return [
        Entry(run.folder.name, link=page.link(run.folder)),
        Entry(cell.label, colour=page.styles[cell.label].colour),
        Entry(count(run.length), run.length),
        Entry(ABSENT if run.seed is None else str(run.seed), run.seed),
        Entry(ended, kind=f"status-{run.status}" if run.status.isalpha() else ""),
        Entry(count(run.update), run.update),
        Entry(percent(run.accuracy), run.accuracy),
        Entry(finite, run.loss),
        Entry(count(solved), solved),
        Entry(plain(run.updates_per_second), run.updates_per_second),
        Entry(made or "unknown versions"),
    ]


_MACHINE = ("platform", "machine", "cores", "cpu_capability", "backend", "instruction_set", "threads", "world_size")
_MADE = ("remanence", "torch", "numpy", "python", "git")


def _settings(found: Comparison) -> str:
    """Commands, versions, machine and settings."""
    commands = "".join(f"<pre><code>{escape(command)}</code></pre>" for command in found.commands[:20])
    made = facts(_machines(found))
    tables = {}
    for cell in found.cells:
        if cell.runs:
            tables.setdefault(cell.runs[0].settings, []).append(
                f"{cell.name}, seeds {_seeds(cell)}; shown is the first"
            )
    settings = "".join(
        details("; ".join(names), f"<pre>{escape(text)}</pre>") for text, names in tables.items() if text
    )
    return (
        "<h3>How it was made</h3>"
        + (f"<p>Command</p>{commands}" if commands else "")
        + f"<p>Versions and machine</p>{made}<p>Settings of every model</p>{settings}"
    )


def _seeds(cell: Cell) -> str:
    return ", ".join(ABSENT if run.seed is None else str(run.seed) for run in cell.runs)


def _machines(found: Comparison) -> list[tuple[str, str]]:
    """Every fact about versions and machine; where runs differ, all its values."""
    values: dict[str, dict[str, None]] = {}
    for run in found.runs:
        for name, value in _identity(run).items():
            values.setdefault(name.replace("_", " "), {})[value] = None
    return [(name, "; ".join(several)) for name, several in values.items()] or [("versions", "unknown")]


def _identity(run: RunRecord) -> dict[str, str]:
    git = run.manifest.get("git")
    found = {name: str(run.manifest[name]) for name in (*_MADE, *_MACHINE) if run.manifest.get(name) not in (None, "")}
    if isinstance(git, dict):
        found["git"] = str(git.get("commit", ""))[:12] + (", changed since" if git.get("changed") else "")
    return found
