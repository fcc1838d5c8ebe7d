"""The command about the papers' tables and figures: its options. What it does is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remanence.cli._training import Json


def reproduce(
    words: Annotated[
        list[str] | None,
        typer.Argument(help="A table or figure, such as kerg2020/table-2, and further values of --only.", metavar="ID"),
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List all tables and figures.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the cells and estimate their hours. Run nothing.")
    ] = False,
    scale: Annotated[
        str, typer.Option(help="smoke (seconds), laptop (hours on two cores) or paper (the printed settings).")
    ] = "laptop",
    only: Annotated[
        list[str] | None, typer.Option(help="Run some cells only: --only model=RelRNN,LSTM length=100,300")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="How many seeds, such as 3, or which, such as 0,4,7.")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Folder of the cells (default: runs/reproduce).", show_default=False)
    ] = None,
    engine: Annotated[str, typer.Option(help="local (this machine) or ray (a cluster).")] = "local",
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster. auto finds one.")] = None,
    storage: Annotated[
        str | None,
        typer.Option(help="Where a cluster keeps the cells: a folder that all nodes see, or s3://bucket/runs."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Cells that run at a time (default: as many as fit).")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Write a page about your cells and the stored runs. Run nothing.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File of the page, .html or .md.")] = None,
    store: Annotated[
        Path | None, typer.Option(help="Also write the results to this JSON file, or to a file in this folder.")
    ] = None,
    adopt: Annotated[list[Path] | None, typer.Option(help="Link a finished run as a cell.", hidden=True)] = None,
    json: Json = False,
) -> None:
    """Run a table or figure of the papers and compare its numbers with the printed ones.

    Run the same command again to resume. Ctrl-C saves every cell.
    """
    from remanence.cli import _reproduce as command
    from remanence.cli._errors import exit_codes
    from remanence.experiments import is_url

    options = {
        "ID": words,
        "--list": list_all,
        "--dry-run": dry_run,
        "--report": report,
        "--json": json,
        "--only": only,
        "--seeds": seeds,
        "--store": store,
        "--output": output,
        "--address": address,
        "--engine ray": engine == "ray",
    }
    with exit_codes():
        command.check_options(options)
        if list_all:
            command.show_list(as_json=json)
            return
        place = command.cells_folder(engine, folder, storage)
        if adopt:
            command.adopt_runs(adopt, place)
            return
        id, more = command.id_and_choices(words or [])
        choices = (*(only or []), *more)
        mirror = ""
        if storage is not None and is_url(storage):
            mirror = storage
        asked = command.Asked(id, scale, choices, seeds, place, engine, workers, address, mirror)
        if dry_run:
            command.show_plan(asked, as_json=json)
        elif report:
            command.write_report(asked, output or Path(f"{id.replace('/', '_')}.html"), store)
        else:
            command.reproduce(asked, store, as_json=json)
