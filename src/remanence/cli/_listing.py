"""``remanence models``, ``remanence tasks`` and ``remanence runs``: what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import UnionType

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from remanence import nn, tasks
from remanence._documents import DOCUMENTS
from remanence.cli._errors import exit_codes
from remanence.cli._tables import show_rows
from remanence.data import DataError
from remanence.runs import DamagedFileError, Run, RunError, Values, list_runs, tag

COLUMNS = ("name", "cell", "memory", "document", "summary")
"""Of the list of models."""
MOST_BITS = 64
"""Of a number in the list of runs."""


def show_tasks(as_json: bool) -> None:
    """Does what ``remanence tasks`` says."""
    show_rows([_task_row(name) for name in tasks.list_tasks()], as_json)


def _task_row(name: str) -> Values:
    task = tasks.make_task(name)
    summary = (type(task).__doc__ or "").partition("\n")[0]
    return {**tag("task"), "name": name, "memory_free_accuracy": _memory_free(task), "summary": summary}


def _memory_free(task: tasks.Task) -> float | None:
    """What the present input alone gives; unknown while a task's data are not on this machine."""
    if isinstance(task, tasks.Language):
        return None  # reading a whole text for one number would take longer than anyone waits for a list
    try:
        return task.memory_free.accuracy
    except (ValueError, DataError):
        return None


def show_runs(folder: Path, as_json: bool) -> None:
    """Does what ``remanence runs`` says; nothing that a run names is imported or built."""
    with exit_codes():
        show_rows([_run_row(run) for run in list_runs(folder)], as_json)


def _run_row(run: Run) -> Values:
    """One line of the list; a folder that cannot be read is shown as damaged, with what is wrong."""
    try:
        return {**tag("run"), "run": str(run.folder), **_facts(run)}
    except (RunError, ValueError, OSError) as error:
        empty = dict.fromkeys(("task", "model", "seed"))
        reason = " ".join(str(error).split())
        known = {"status": "damaged", "update": None, "best": None, "reason": reason}
        return {**tag("run"), "run": str(run.folder), **empty, **known}


def _facts(run: Run) -> Values:
    settings = run.settings
    status = run.status
    _check(run.config_path, settings, "seed", int, "a whole number")
    for name in ("best", "mean_return"):
        _check(run.folder / "status.json", status, name, int | float, "a number")
    if run.kind == "policy":
        _check(run.config_path, settings, "environment", str, "a text")
        task = settings.get("environment")
        best = status.get("mean_return")
    else:
        task = _name_in(settings, "task")
        best = status.get("best")
    return {
        "task": task,
        "model": _name_in(settings, "model"),
        "seed": settings.get("seed"),
        "status": status["status"],
        "update": status["update"],
        "best": best,
        "reason": status.get("reason", ""),
    }


def _check(path: Path, table: Values, name: str, kind: type | UnionType, expected: str) -> None:
    """Refuses what a file says in the place of a text or a number: one such file would spoil the rows of all others."""
    value = table.get(name)
    if value is None:
        return
    got = type(value).__name__
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        got = f"one of {value.bit_length():,} bits"  # which Python may refuse to write down
    elif isinstance(value, kind) and not isinstance(value, bool):
        return
    raise DamagedFileError(f"{path} is damaged: `{name}` must be {expected}; got {got}")


def _name_in(settings: Values, section: str) -> str:
    table = settings.get(section)
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise DamagedFileError(f"the settings name no {section}.name")
    return table["name"]


def show_models(as_json: bool) -> None:
    """Prints one row per model, as a table or as JSON.

    Example:
        >>> show_models(as_json=True)
        [
          {
            "kind": "model",
            ...
    """
    rows = [{column: getattr(model, column) for column in COLUMNS} for model in nn.list_models()]
    if as_json:
        print(json.dumps([{**tag("model"), **row} for row in rows], indent=2))
        return
    headings = ["paper" if name == "document" else name for name in COLUMNS]
    table = Table(*headings, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for row in rows:
        table.add_row(*(Text(_plain(value)) for value in row.values()))
    console = Console()
    console.print(table)
    for key, reference in DOCUMENTS.items():
        console.print(f"{key:<10}  {reference}", style="dim", highlight=False)


def _plain(text: str) -> str:
    """Takes the marks for code and emphasis out of a line of documentation."""
    return re.sub(r"``|\*\*", "", text)
