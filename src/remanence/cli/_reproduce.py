"""``remanence reproduce``: tables and figures of the papers by their names."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from remanence import experiments
from remanence._validate import message, one_of
from remanence._wording import number_of
from remanence.cli._cells import leave_if_failed, watching
from remanence.cli._live import Rows
from remanence.cli._tables import json_text, plain_table
from remanence.experiments import Experiment, Grid, TableCell
from remanence.runs import available_cores, tag

REFUSED_TOGETHER = {
    "--list": ("ID", "--dry-run", "--report", "--only", "--seeds", "--store", "--output"),
    "--dry-run": ("--report", "--store", "--output"),
    "--report": ("--json",),
}
"""Options beside which others would be ignored."""
NEEDED = {"--output": "--report", "--address": "--engine ray"}
"""Options that would be ignored without another one."""
PAGES = (".html", ".md")


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
        return experiments.find_experiment(self.id)

    def cells(self) -> list[TableCell]:
        """The chosen cells, as they stand on the storage."""
        seeds = experiments.parse_seeds(self.seeds)
        cells = experiments.plan_cells(self.experiment, self.scale, self.folder, self.only, seeds, self.storage)
        experiments.refresh(cells)
        return cells


def show_list(as_json: bool) -> None:
    """Does what ``remanence reproduce --list`` says."""
    stored = experiments.stored_records()
    rows = [
        {
            **tag("experiment"),
            "id": experiment.id,
            "title": experiment.title,
            "cells": len(list(experiment.places("paper"))),
            "needs": ", ".join(experiment.needs) or "nothing",
            "stored": ", ".join(stored.get(experiment.id, [])) or "-",
        }
        for experiment in experiments.list_experiments()
    ]
    if as_json:
        typer.echo(json_text(rows))
        return
    names = [Column("id", no_wrap=True), Column("cells", justify="right"), "stored", "what"]
    table = plain_table(*names)
    for row in rows:
        title = row["title"]
        if row["needs"] != "nothing":
            title += f" (needs {row['needs']})"
        table.add_row(row["id"], str(row["cells"]), stored_words(row["id"]), Text(title))
    Console().print(table)


def stored_words(id: str) -> str:
    """How much of a table or figure is stored: cells with the settings and budget of the paper, or of scale ``paper``.

    Example:
        >>> stored_words("beyond/baselines")
        '-'
    """
    cells = experiments.stored_cells(id)
    printed = sum(cell.is_as_printed for cell in cells)
    if printed and id.startswith("beyond/"):
        return f"{printed} at full scale"  # no paper prints it
    if printed:
        return f"{printed} as printed"
    if cells:
        return "other settings"
    return "-"


def adopt_runs(runs: Sequence[Path], folder: Path) -> None:
    """Links finished runs as the cells of their settings."""
    for run in runs:
        typer.echo(f"{run} is {experiments.adopt(run, folder)}")


def show_plan(asked: Asked, as_json: bool) -> None:
    """Does what ``--dry-run`` says: the grid, with hours estimated on this machine."""
    cells = list(experiments.unique(asked.cells()).values())
    tell = None
    if not as_json:
        tell = partial(typer.echo, err=True)
        tell(f"{asked.id} ({asked.scale}): {number_of(len(cells), 'cell')}; each kind of cell is tried briefly")
    rows = []
    for cell, found in zip(cells, experiments.estimated_seconds(cells, tell), strict=True):
        hours = found and round(found / 3600, 6)
        rows.append({**tag("planned-cell"), **experiments.row_of(cell), "hours": hours})
    if as_json:
        typer.echo(json_text(rows))
        return
    Console().print(_plan_table(asked.experiment, rows))
    _say_total(rows)
    _say_threads(cells)
    _say_departures(asked)


def _say_total(rows: Rows) -> None:
    total = sum(row["hours"] or 0.0 for row in rows)
    unknown = sum(row["hours"] is None for row in rows)
    words = f"{number_of(len(rows), 'cell')}, at most {math.ceil(100 * total) / 100:.2f} hours of one core"
    if unknown:
        words += f"; {number_of(unknown, 'cell')} could not be tried and thus not estimated"
    typer.echo(words)
    if any(row["budget"] for row in rows):
        typer.echo("Runs end earlier once they are solved; what is measured at their end is not counted")
    else:
        typer.echo("Measurements were tried at a smaller size; their hours are scaled up")


def _say_threads(cells: Sequence[TableCell]) -> None:
    cores = available_cores()
    gain = None
    if cores > 1:
        gain = experiments.gain_of_threads(cells, cores)
    if gain is not None:
        typer.echo(f"One thread per cell: with {cores} threads the longest one would learn {gain:.1f} times as fast")


def _plan_table(experiment: Experiment, rows: Rows) -> Table:
    names = [*experiment.axes, "seed"]
    table = plain_table(*names, "status", "budget", "hours")
    for row in rows:
        hours = "not estimated"
        if row["hours"] is not None:
            hours = hours_words(row["hours"])
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
    if hours < 0.01:
        return "less than 0.01"
    return f"{hours:.2f}"


def _say_departures(asked: Asked) -> None:
    lines = experiments.departure_lines(asked.experiment.scale(asked.scale).departures)
    if lines:
        typer.echo("Departures from the paper:")
    for line in lines:
        typer.echo(f"  {line}")


def reproduce(asked: Asked, store: Path | None, *, as_json: bool) -> None:
    """Fills the chosen cells and shows the table."""
    cells = asked.cells()
    if store is not None:
        _store(asked, cells, store)  # what is wrong with the file is said now, and not after hours
    engine = experiments.make_engine(asked.engine, asked.workers, asked.address, asked.storage or asked.folder)
    try:
        with watching([*asked.experiment.axes, "seed"], cells, as_json, "every cell is saved") as tick:
            failures = experiments.run_cells(cells, engine, tick)
        show_results(asked, cells, as_json=as_json)
    finally:  # a signal may have ended it: what there is by then is worth keeping too
        if store is not None:
            _store_and_say(asked, cells, store, err=as_json)
    leave_if_failed(failures)


def show_results(asked: Asked, cells: Sequence[TableCell], *, as_json: bool) -> None:
    """Prints the table, printed numbers in brackets behind the measured ones."""
    found = experiments.entries(asked.experiment, cells)
    if as_json:
        rows = {"cells": [experiments.row_of(cell) for cell in cells], "table": [entry.to_dict() for entry in found]}
        typer.echo(json_text({**tag("reproduced"), "experiment": asked.id, "scale": asked.scale, **rows}))
        return
    laid = experiments.grid(asked.experiment, found)
    typer.echo(f"{asked.id} ({asked.scale}): measured [printed]")
    console = Console()
    upright = _table_of(laid)
    turned = _table_of(laid.turned())
    width = _width(upright, console)
    if width > console.width and _width(turned, console) < width:
        console.print(turned)
    else:
        console.print(upright)


def _width(table: Table, console: Console) -> int:
    """That it would like to have."""
    return console.measure(table, options=console.options.update_width(sys.maxsize)).maximum


def _table_of(laid: Grid) -> Table:
    table = plain_table(*laid.head)
    for row in laid.rows:
        table.add_row(*map(Text, row))  # brackets are no markup
    return table


def write_report(asked: Asked, output: Path, store: Path | None) -> None:
    """Does what ``--report`` says: the page of what is there now; nothing is run."""
    cells = asked.cells()
    _write_page(asked, output, cells)
    typer.echo(f"page: {output}")
    if store is not None:
        _store_and_say(asked, cells, store, err=False)


def _store(asked: Asked, cells: Sequence[TableCell], path: Path) -> Path:
    return experiments.store_record(experiments.make_record(asked.experiment, asked.scale, cells), path)


def _store_and_say(asked: Asked, cells: Sequence[TableCell], path: Path, *, err: bool) -> None:
    place = _store(asked, cells, path)
    typer.echo(f"stored: {place}" if place.is_file() else "stored nothing: no cell has begun", err=err)


def _write_page(asked: Asked, output: Path, cells: Sequence[TableCell]) -> None:
    if one_of("ending of output", output.suffix, PAGES) == ".html":
        from remanence.report import Page, reproduction_section

        section = reproduction_section(experiments.page_parts(asked.experiment, asked.scale, cells))
        Page([section], title=section.heading).write(output)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(experiments.make_page(asked.experiment, asked.scale, cells), encoding="utf-8")


def check_options(given: Mapping[str, object]) -> None:
    """Refuses options that contradict each other, or would be ignored.

    Args:
        given: what the command line says, by option; what is empty was not given.

    Example:
        >>> check_options({"--dry-run": True, "--report": True})
        Traceback (most recent call last):
        ValueError: `--dry-run` must be given without --report; got both. Leave one of them out
    """
    asked = [name for name, value in given.items() if value]
    for name in asked:
        for other in REFUSED_TOGETHER.get(name, ()):
            if other in asked:
                raise ValueError(message(name, f"be given without {other}", "both", "Leave one of them out"))
        if NEEDED.get(name, name) not in asked:
            raise ValueError(message(name, f"be given with {NEEDED[name]}", f"{name} without it"))


def cells_folder(engine: str, folder: Path | None, storage: str | None) -> Path:
    """Where the cells are on this machine: ``--folder``, or a folder on a cluster that ``--storage`` names.

    Example:
        >>> cells_folder("local", None, None), cells_folder("local", None, "s3://runs")
        (PosixPath('runs/reproduce'), PosixPath('runs/reproduce'))
    """
    if storage is None or experiments.is_url(storage):
        place = folder or Path("runs/reproduce")
        if place.exists() and not place.is_dir():
            raise ValueError(message("folder", "be a folder, or a name for a new one", f"{str(place)!r}, a file"))
        return place
    if engine != "ray":
        hint = "Use --folder, or a URL such as s3://bucket/runs"
        raise ValueError(message("storage", "be a URL with the engine 'local'", repr(storage), hint))
    if folder is not None:
        raise ValueError(message("folder", "be left out where --storage names the folder", repr(str(folder))))
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
