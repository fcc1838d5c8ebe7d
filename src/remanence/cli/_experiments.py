"""The command about the papers' tables and figures: its options. What it does is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remanence.cli._training import Json


def reproduce(
    id: Annotated[
        str | None, typer.Argument(help="A table or figure, such as kerg2020/table-2; see --list.", metavar="ID")
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(help="Further choices of --only.", metavar="AXIS=VALUES")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List all tables and figures.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the cells and estimate their hours.")] = False,
    scale: Annotated[str, typer.Option(help="smoke, laptop or paper.")] = "laptop",
    only: Annotated[list[str] | None, typer.Option(help="Choose cells: model=RelRNN,LSTM length=100,300.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Number of seeds, such as 3, or a list, such as 0,4,7.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Folder for the runs (default: runs/reproduce).")] = None,
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster; auto finds one.")] = None,
    storage: Annotated[str | None, typer.Option(help="A folder that all nodes see, or s3://bucket/runs, ...")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Cells to run in parallel.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Write the page from stored results; run nothing.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The page to write, .html or .md.")] = None,
    store: Annotated[Path | None, typer.Option(help="Also store the results in this JSON file or folder.")] = None,
    adopt: Annotated[list[Path] | None, typer.Option(help="Link a finished run as a cell.", hidden=True)] = None,
    json: Json = False,
) -> None:
    """Run or resume a table or figure of the papers, and compare measured with printed numbers."""
    from remanence.cli import _reproduce as command
    from remanence.cli._errors import exit_codes

    if list_all:
        command.show_list(as_json=json)
        return
    with exit_codes():
        place = command.cells_folder(engine, folder, storage)
    if adopt:
        command.adopt_runs(adopt, place)
        return
    with exit_codes():
        wanted = command.check_request(id)
    choices = (*(only or []), *(more or []))
    mirror = storage if storage is not None and command.is_url(storage) else ""
    asked = command.Asked(wanted, scale, choices, seeds, place, engine, workers, address, mirror)
    if dry_run:
        command.show_plan(asked, as_json=json)
    elif report:
        command.write_report(asked, output or Path(f"{wanted.replace('/', '_')}.html"), store)
    else:
        command.reproduce(asked, store, as_json=json)
