"""Tasks: seeded recipes for sequences whose memory is known. They know no model."""

from remanence.tasks._recall import Copy, Denoise
from remanence.tasks._registry import list_tasks, make_task, register_task
from remanence.tasks._stream import SPLITS, Split
from remanence.tasks._task import Baseline, Batch, Score, Task

__all__ = [
    "Task",
    "Batch",
    "Baseline",
    "Score",
    "Split",
    "SPLITS",
    "register_task",
    "make_task",
    "list_tasks",
    "Copy",
    "Denoise",
]
