"""Code that a configuration names: it registers users' own tasks and environments."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path

from remanence._validate import message


def import_all(names: Iterable[str]) -> None:
    """Imports what registers users' own tasks and environments.

    Args:
        names: Modules, or paths of Python files.

    Example:
        >>> import_all(["math"])
    """
    for name in names:
        _import(name)


def _import(name: str) -> None:
    if not name.endswith(".py"):
        importlib.import_module(name)
        return
    spec = importlib.util.spec_from_file_location(Path(name).stem, name)
    if spec is None or spec.loader is None or not Path(name).is_file():
        raise ValueError(message("imports", "name modules or existing Python files", repr(name)))
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
