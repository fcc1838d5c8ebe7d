"""Tasks by name, for the command line and for users' own tasks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from remanence import _validate
from remanence.tasks._task import Task

_TASKS: dict[str, type[Task]] = {}

TaskClass = TypeVar("TaskClass", bound=type[Task])


def register_task(name: str) -> Callable[[TaskClass], TaskClass]:
    """Registers a task class under a name.

    Args:
        name: What `make_task` and the command line call it.

    Raises:
        ValueError: If the name belongs to another class already.
        TypeError: If the class is not a `Task` made with `dataclass(frozen=True)`.

    Example:
        >>> from dataclasses import dataclass
        >>> from remanence.tasks import Copy, make_task, register_task
        >>> @register_task("short-copy")
        ... @dataclass(frozen=True)
        ... class ShortCopy(Copy):
        ...     length: int = 5
        >>> make_task("short-copy").length
        5
    """

    def register(cls: TaskClass) -> TaskClass:
        known = _TASKS.get(name)
        # The same class defined again (a notebook cell run twice) replaces itself.
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(_validate.message("name", "be new", f"{name!r}, which is {known.__qualname__} already"))
        if not (issubclass(cls, Task) and _is_frozen(cls)):
            raise TypeError(_validate.message("cls", "be a Task made with dataclass(frozen=True)", cls.__qualname__))
        cls.name = name
        _TASKS[name] = cls
        return cls

    return register


def _is_frozen(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) and getattr(cls, "__dataclass_params__").frozen  # noqa: B009


def make_task(name: str, **options: Any) -> Task:
    """Makes a task by its name.

    Args:
        name: One of `list_tasks()`.
        **options: Fields of the task's recipe.

    Raises:
        ValueError: If the name or an option is unknown; the nearest known one is proposed.

    Example:
        >>> make_task("copy", length=50).length
        50
        >>> make_task("cpy", length=50)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: `task` must be one of ...; got 'cpy'. Did you mean 'copy'?
    """
    cls = _TASKS[_validate.one_of("task", name, list_tasks())]
    fields = [field.name for field in dataclasses.fields(cls) if field.init]  # pyright: ignore[reportArgumentType]
    for option in options:
        _validate.one_of(f"option of task {name!r}", option, fields)
    return cls(**options)


def list_tasks() -> list[str]:
    """Lists the registered names in alphabetical order.

    Example:
        >>> "copy" in list_tasks()
        True
    """
    return sorted(_TASKS)
