"""Code that a configuration names: it registers users' own tasks and environments."""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from remanence._validate import message
from remanence.runs._trust import require_trust, require_trusted_source

_HAS_RUN: dict[str, bytes] = {}
"""The source of every file that this process has imported, by its path."""


def import_all(names: Iterable[str]) -> None:
    """Imports what registers users' own tasks and environments, if it is trusted.

    Raises:
        UntrustedCodeError: If no command of the user's has named this code, and ``--trust`` was not given.
        ValueError: If there is no such file or module.

    Example:
        >>> from remanence.runs import trusting
        >>> with trusting():
        ...     import_all(["math"])
    """
    wanted = list(names)
    for name in wanted:
        _check_exists(name)
    require_trust(wanted)
    for name in wanted:
        _import(name)


def _check_exists(name: str) -> None:
    if name.endswith(".py") and not Path(name).is_file():
        raise ValueError(message("imports", "name modules or existing Python files", repr(name)))


def _import(name: str) -> None:
    if not name.endswith(".py"):
        _import_module(name)
        return
    spec = importlib.util.spec_from_file_location(Path(name).stem, name)
    if spec is None or spec.loader is None:
        raise ValueError(message("imports", "name modules or existing Python files", repr(name)))
    # The very bytes that are trusted run: the loader would read the file again, or compiled code that lies beside it.
    source = Path(name).read_bytes()
    require_trusted_source(name, source)
    if _HAS_RUN.get(os.path.abspath(name)) == source:
        return  # what it registers is registered; Gymnasium warns of a second time
    module = importlib.util.module_from_spec(spec)
    with _listed(module):
        exec(compile(source, name, "exec", dont_inherit=True), vars(module))
    _HAS_RUN[os.path.abspath(name)] = source


@contextlib.contextmanager
def _listed(module: ModuleType) -> Iterator[None]:
    """The module under its name while its code runs: dataclasses look there. What had the name has it again after."""
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        if before is None:
            del sys.modules[module.__name__]
        else:
            sys.modules[module.__name__] = before


def _import_module(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise  # the module is there, and something that it needs is not
        hint = ""
        if Path(f"{name}.py").is_file():
            hint = f"For a file write {name}.py"
        raise ValueError(
            message("imports", "name modules that are installed, or Python files", repr(name), hint)
        ) from None


def absolute_imports(names: Iterable[str]) -> tuple[str, ...]:
    """The same code, named so that it is found from any folder.

    Example:
        >>> absolute_imports(["math"]), Path(absolute_imports(["mine.py"])[0]).is_absolute()
        (('math',), True)
    """
    return tuple(map(_absolute, names))


def _absolute(name: str) -> str:
    if name.endswith(".py"):
        return str(Path(name).expanduser().resolve())
    if _is_module_of_this_folder(name):
        return str(Path(f"{name}.py").resolve())
    return name


def _is_module_of_this_folder(name: str) -> bool:
    """Whether the current folder has this module, so that a command from another folder would not find it."""
    path = Path(f"{name}.py")
    if "." in name or not path.is_file():
        return False
    found = importlib.machinery.PathFinder.find_spec(name)
    return found is not None and found.origin is not None and Path(found.origin).resolve() == path.resolve()
