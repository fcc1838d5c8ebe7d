"""``remanence reproduce``: tables and figures of the papers by their names."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from remanence._validate import message
from remanence.cli._errors import exit_codes
from remanence.experiments import (
    Cell,
    Experiment,
    Failure,
    Stopped,
    adopt,
    entries,
    estimated_seconds,
    find_experiment,
    grid,
    is_url,
    list_experiments,
    make_engine,
    make_page,
    make_record,
    page_parts,
    parse_seeds,
    plan_cells,
    refresh,
    row_of,
    run_cells,
    store_record,
    stored_cells,
    stored_records,
    unique,
)
from remanence.experiments.engines import Engine

SHOWN = 25
"""Cells that a live table shows: those at work first."""
FAILED = 1
ORDER = ("running", "failed", "killed", "interrupted", "trained", "new", "done")

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Asked:
    """What the command line asks for.

    Args:
        id: of the table or figure.
        scale: how much of it.
        only: choices among its cells.
        seeds: as given.
        folder: of the cells.
        engine: who fills them.
        workers: at a time.
        address: of a Ray cluster.
        storage: URL of a storage that mirrors the cells; empty if the folder is all.

    Example:
        >>> Asked("kerg2020/table-2").scale
        'laptop'
    """

    id: str
    scale: str = "laptop"
    only: tuple[str, ...] = ()
    seeds: str | None = None
    folder: Path = Path("runs/reproduce")
    engine: str = "local"
    workers: int | None = None
    address: str | None = None
    storage: str = ""

    @property
    def experiment(self) -> Experiment:
        """The table or figure."""
        return find_experiment(self.id)

    def cells(self) -> list[Cell]:
        """The chosen cells, as they stand on the storage."""
        seeds = parse_seeds(self.seeds)
        cells = plan_cells(self.experiment, self.scale, self.folder, self.only, seeds, self.storage)
        refresh(cells)
        return cells


def show_list(as_json: bool) -> None:
    """Does what ``remanence reproduce --list`` says."""
    stored = stored_records()
    rows = [
        {
            "id": experiment.id,
            "title": experiment.title,
            "cells": len(list(experiment.places("paper"))),
            "needs": ", ".join(experiment.needs) or "nothing",
            "stored": ", ".join(stored.get(experiment.id, [])) or "-",
        }
        for experiment in list_experiments()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    names = [Column("id", no_wrap=True), Column("cells", justify="right"), "stored", "what"]
    table = Table(*names, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for experiment in list_experiments():
        needs = f" (needs {', '.join(experiment.needs)})" if experiment.needs else ""
        cells = str(len(list(experiment.places("paper"))))
        table.add_row(experiment.id, cells, stored_words(experiment.id), Text(f"{experiment.title}{needs}"))
    Console().print(table)


def stored_words(id: str) -> str:
    """How much of a table or figure is stored: cells with the paper's settings and budget, or others.

    Example:
        >>> stored_words("beyond/baselines")
        '-'
    """
    cells = stored_cells(id)
    printed = sum(cell.is_as_printed for cell in cells)
    if printed:
        return f"{printed} as printed"
    return "other settings" if cells else "-"


def adopt_runs(runs: Sequence[Path], folder: Path) -> None:
    """Links finished runs as the cells of their settings."""
    with exit_codes():
        for run in runs:
            typer.echo(f"{run} is {adopt(run, folder)}")


def show_plan(asked: Asked, as_json: bool) -> None:
    """Does what ``--dry-run`` says: the grid, with hours estimated on this machine."""
    with exit_codes():
        cells = list(unique(asked.cells()).values())
        tell = None if as_json else lambda text: typer.echo(text, err=True)
        if tell is not None:
            tell(f"{asked.id} ({asked.scale}): {len(cells)} cells; each kind of cell is tried briefly")
        seconds = estimated_seconds(cells, tell)
    rows = [
        {**row_of(cell), "hours": None if found is None else round(found / 3600, 6)}
        for cell, found in zip(cells, seconds, strict=True)
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    Console().print(_plan_table(asked.experiment, rows))
    _say_total(rows)
    _say_departures(asked)


def _say_total(rows: Rows) -> None:
    total = sum(row["hours"] or 0.0 for row in rows)
    unknown = sum(row["hours"] is None for row in rows)
    more = f"; {unknown} cells could not be tried and are not estimated" if unknown else ""
    typer.echo(f"{len(rows)} cells, at most {math.ceil(100 * total) / 100:.2f} hours of one core{more}")
    if any(row["budget"] for row in rows):
        typer.echo("Runs end earlier once they are solved; what is measured at their end is not counted")
    else:
        typer.echo("Measurements were tried at a smaller size; their hours are scaled up")


def _plan_table(experiment: Experiment, rows: Rows) -> Table:
    names = [*experiment.axes, "seed"]
    table = Table(*names, "status", "budget", "hours", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for row in rows:
        hours = "not estimated" if row["hours"] is None else hours_words(row["hours"])
        table.add_row(*(str(row[name]) for name in names), row["status"], str(row["budget"] or "-"), hours)
    return table


def hours_words(hours: float) -> str:
    """Hours to two places; what is shorter is told as such.

    Example:
        >>> hours_words(1.5), hours_words(0.0004), hours_words(0.0)
        ('1.50', 'less than 0.01', '0')
    """
    if hours == 0.0:
        return "0"
    return f"{hours:.2f}" if hours >= 0.01 else "less than 0.01"


def _say_departures(asked: Asked) -> None:
    """Settings that are not the document's; several with one reason on one line."""
    departures = asked.experiment.scale(asked.scale).departures
    reasons = dict.fromkeys(departure.paper for departure in departures)
    if reasons:
        typer.echo("Not as in the document:")
    for reason in reasons:
        group = [departure for departure in departures if departure.paper == reason]
        words = f"{', '.join(f'{one.key} = {one.value}' for one in group)}: {reason}"
        typer.echo(f"  {group[0].words if len(group) == 1 else words}")


def reproduce(asked: Asked, store: Path | None, *, as_json: bool) -> None:
    """Fills the chosen cells and shows the table."""
    with exit_codes():
        cells = asked.cells()
        engine = make_engine(asked.engine, asked.workers, asked.address, asked.storage or asked.folder)
        failures = _filled(asked, cells, engine, as_json)
        show_results(asked, cells, as_json=as_json)
        if store is not None:
            typer.echo(f"stored: {store_record(make_record(asked.experiment, asked.scale, cells), store)}", err=as_json)
    leave_if_failed(failures)


def _filled(asked: Asked, cells: Sequence[Cell], engine: Engine, as_json: bool) -> list[Failure]:
    try:
        with contextlib.nullcontext() if as_json else live(Console(), [*asked.experiment.axes, "seed"]) as tick:
            return run_cells(cells, engine, tick)
    except Stopped as stop:
        typer.echo("stopped; every cell is saved. The same command resumes them", err=True)
        raise typer.Exit(128 + stop.number) from None


def show_results(asked: Asked, cells: Sequence[Cell], *, as_json: bool) -> None:
    """Prints the table, printed numbers in brackets behind the measured ones."""
    found = entries(asked.experiment, cells)
    if as_json:
        rows = {"cells": [row_of(cell) for cell in cells], "table": [entry.to_dict() for entry in found]}
        typer.echo(json.dumps(rows, indent=1))
        return
    laid = grid(asked.experiment, found)
    typer.echo(f"{asked.id} ({asked.scale}): measured [printed]")
    table = Table(*laid.head, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for row in laid.rows:
        table.add_row(*map(Text, row))  # brackets are no markup
    Console().print(table)


def write_report(asked: Asked, output: Path, store: Path | None) -> None:
    """Does what ``--report`` says: the page of what is there now; nothing is run."""
    with exit_codes():
        cells = asked.cells()
        _write_page(asked, output, cells)
        typer.echo(f"page: {output}")
        if store is not None:
            typer.echo(f"stored: {store_record(make_record(asked.experiment, asked.scale, cells), store)}")


def _write_page(asked: Asked, output: Path, cells: Sequence[Cell]) -> None:
    if output.suffix == ".html":
        from remanence.report import Page, reproduction_section

        section = reproduction_section(page_parts(asked.experiment, asked.scale, cells))
        Page([section], title=section.heading).write(output)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(make_page(asked.experiment, asked.scale, cells), encoding="utf-8")


def leave_if_failed(failures: Sequence[Failure]) -> None:
    """Prints what went wrong, and leaves with an exit code if anything did.

    Example:
        >>> leave_if_failed([])
    """
    for failure in failures:
        typer.echo(f"\n{failure.label} failed; its log is {failure.log}\n{failure.traceback}", err=True)
    if failures:
        raise typer.Exit(FAILED)


@contextlib.contextmanager
def live(console: Console, names: Sequence[str]) -> Iterator[Callable[[Rows], None]]:
    """Shows cells as they go: live on a terminal, elsewhere a line whenever a cell has news.

    Args:
        console: where.
        names: that tell the cells apart, such as ``["model", "seed"]``.

    Example:
        >>> with live(Console(), ["model", "seed"]) as tick:
        ...     tick([])
    """
    if not console.is_terminal:
        yield _Changes(console)
        return
    with Live(console=console, refresh_per_second=4, transient=True) as display:
        yield lambda rows: display.update(live_table(names, rows))


class _Changes:
    """Prints a line for every cell whose state has changed since the last look."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.seen = {}

    def __call__(self, rows: Rows) -> None:
        for row in rows:
            if self.seen.get(row["folder"]) != row["status"] and row["status"] != "new":
                line = f"{Path(row['folder']).name}  {row['status']}  update {row['update']}  {row['reason']}"
                self.console.print(line.rstrip(), markup=False, highlight=False, soft_wrap=True)
            self.seen[row["folder"]] = row["status"]


def live_table(names: Sequence[str], rows: Rows) -> Group:
    """Cells as a table, those at work first, and when all may be done.

    Args:
        names: that tell the cells apart.
        rows: one a cell.

    Example:
        >>> live_table(["model", "seed"], []).renderables[0].row_count
        0
    """
    table = Table(*names, "status", "progress", "validation", "left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for row in sorted(rows, key=lambda row: ORDER.index(row["status"]) if row["status"] in ORDER else 0)[:SHOWN]:
        found = "  ".join(f"{name} {value:.4g}" for name, value in row["validation"].items() if value is not None)
        progress = f"{row['update']:,}/{row['budget']:,}" if row["budget"] else "-"
        left = "" if row["seconds_left"] in (None, 0.0) else _duration(row["seconds_left"])
        table.add_row(*(str(row[name]) for name in names), row["status"], progress, found, left)
    return Group(table, Text(summary(rows)))


def summary(rows: Rows) -> str:
    """One line about all cells.

    Example:
        >>> summary([{"status": "done", "seconds_left": 0.0}, {"status": "running", "seconds_left": 60.0}])
        '1 of 2 cells done, 1 running; those at work need at most 1 min more'
    """
    done, running = (sum(row["status"] == status for row in rows) for status in ("done", "running"))
    left = [row["seconds_left"] for row in rows if row["status"] == "running" and row["seconds_left"]]
    more = f"; those at work need at most {_duration(max(left))} more" if left else ""
    return f"{done} of {len(rows)} cells done, {running} running{more}"


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def cells_folder(engine: str, folder: Path | None, storage: str | None) -> Path:
    """Where the cells are on this machine: ``--folder``, or a folder on a cluster that ``--storage`` names.

    Example:
        >>> cells_folder("local", None, None), cells_folder("local", None, "s3://runs")
        (PosixPath('runs/reproduce'), PosixPath('runs/reproduce'))
    """
    if storage is None or is_url(storage):
        return folder or Path("runs/reproduce")
    if engine != "ray":
        hint = "Use --folder, or a URL such as s3://bucket/runs"
        raise ValueError(message("storage", "be a URL with the engine 'local'", repr(storage), hint))
    return Path(storage).absolute()


def id_and_choices(words: Sequence[str]) -> tuple[str, list[str]]:
    """The id and the choices of ``--only`` among the words of a command, in whatever order they come.

    Example:
        >>> id_and_choices(["length=100", "kerg2020/table-2"])
        ('kerg2020/table-2', ['length=100'])
    """
    ids = [word for word in words if "=" not in word]
    if len(ids) != 1:
        hint = "See `remanence reproduce --list`; choices of cells have the form axis=value,value"
        raise ValueError(message("id", "be one table or figure", " ".join(ids) or "nothing", hint))
    return ids[0], [word for word in words if "=" in word]
