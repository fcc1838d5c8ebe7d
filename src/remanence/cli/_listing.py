"""``remanence tasks`` and ``remanence runs``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remanence import tasks
from remanence.cli._errors import exit_codes
from remanence.cli._tables import show_rows
from remanence.data import DataError
from remanence.runs import DamagedFileError, Run, RunError, list_runs, tag


def show_tasks(as_json: bool) -> None:
    """Does what ``remanence tasks`` says."""
    show_rows([_task_row(name) for name in tasks.list_tasks()], as_json)


def _task_row(name: str) -> dict[str, Any]:
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


def _run_row(run: Run) -> dict[str, Any]:
    """One line of the list; a folder that cannot be read is shown as damaged, with what is wrong."""
    try:
        return {**tag("run"), "run": str(run.folder), **_facts(run)}
    except (RunError, ValueError, OSError) as error:
        empty = dict.fromkeys(("task", "model", "seed"))
        reason = " ".join(str(error).split())
        known = {"status": "damaged", "update": None, "best": None, "reason": reason}
        return {**tag("run"), "run": str(run.folder), **empty, **known}


def _facts(run: Run) -> dict[str, Any]:
    settings = run.settings
    status = run.status
    task = settings.get("environment") if run.kind == "policy" else _inside(settings, "task", "name")
    return {
        "task": task,
        "model": _inside(settings, "model", "name"),
        "seed": settings.get("seed"),
        "status": status["status"],
        "update": status["update"],
        "best": status.get("mean_return") if run.kind == "policy" else status.get("best"),
        "reason": status.get("reason", ""),
    }


def _inside(settings: dict[str, Any], section: str, key: str) -> Any:
    table = settings.get(section)
    if not isinstance(table, dict) or not isinstance(table.get(key), str):
        raise DamagedFileError(f"the settings name no {section}.{key}")
    return table[key]
