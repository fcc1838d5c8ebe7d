"""``remanence tasks`` and ``remanence runs``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remanence import tasks
from remanence.cli._evaluate import show_rows
from remanence.data import DataError
from remanence.train import Run, list_runs


def show_tasks(as_json: bool) -> None:
    """Does what ``remanence tasks`` says."""
    show_rows([_task_row(name) for name in tasks.list_tasks()], as_json)


def _task_row(name: str) -> dict[str, Any]:
    task = tasks.make_task(name)
    summary = (type(task).__doc__ or "").partition("\n")[0]
    return {"name": name, "memory_free_accuracy": _memory_free(task), "summary": summary}


def _memory_free(task: tasks.Task) -> float | None:
    """What the present input alone gives; unknown while a task's data are not on this machine."""
    if isinstance(task, tasks.Language):
        return None  # reading a whole text for one number would take longer than anyone waits for a list
    try:
        return task.memory_free.accuracy
    except (ValueError, DataError):
        return None


def show_runs(folder: Path, as_json: bool) -> None:
    """Does what ``remanence runs`` says."""
    show_rows([_run_row(run) for run in list_runs(folder)], as_json)


def _run_row(run: Run) -> dict[str, Any]:
    config, status = run.config, run.status
    return {
        "run": str(run.folder),
        "task": config.task.name,
        "model": config.model.name,
        "seed": config.seed,
        "status": status["status"],
        "update": status["update"],
        "best": status.get("best"),
        "reason": status.get("reason", ""),
    }
