"""Which code may run: a run folder is data. Code that a stored file names runs only if the user says so.

The user says so in one of two ways: with ``--trust`` (in Python :func:`trusting`), or by having named that very code in
a command of their own. The second is remembered outside the run folder, by the digest of the code's file, so that a
changed or foreign file of the same name is not taken for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from importlib.machinery import PathFinder
from pathlib import Path

from remanence.runs._errors import UntrustedCodeError

STORE_VARIABLE = "REMANENCE_TRUST"

_TRUSTING: ContextVar[bool] = ContextVar("trusting", default=False)
_REMEMBERED: set[str] = set()


@contextlib.contextmanager
def trusting(yes: bool = True) -> Iterator[None]:
    """Lets stored settings run the code that they name, as ``--trust`` does; False changes nothing.

    Example:
        >>> with trusting():
        ...     require_trust(["this_module_of_a_stranger"])
    """
    before = _TRUSTING.set(yes or _TRUSTING.get())
    try:
        yield
    finally:
        _TRUSTING.reset(before)


def remember_code(names: Iterable[str]) -> None:
    """Notes that the user's own command named this code: the same code may run again for its run.

    Example:
        >>> remember_code(["math"])
        >>> require_trust(["math"])
    """
    for name in names:
        digest = code_digest(name)
        _REMEMBERED.add(digest)
        with contextlib.suppress(OSError):  # a home that cannot be written: remembered for this process only
            _store().mkdir(mode=0o700, parents=True, exist_ok=True)
            (_store() / digest).write_text(f"{name}\n", encoding="utf-8")


def require_trust(names: Iterable[str]) -> None:
    """Refuses code that the user has neither named nor said to trust: modules, or paths of Python files.

    Raises:
        UntrustedCodeError: If there is such code.

    Example:
        >>> require_trust(["this_module_of_a_stranger"])
        Traceback (most recent call last):
        remanence.runs._errors.UntrustedCodeError: the settings name code to run, 'this_module_of_a_stranger', ...
    """
    refused = [name for name in names if not is_trusted(name)]
    if refused:
        raise _untrusted(refused)


def require_trusted_source(name: str, source: bytes) -> None:
    """Refuses the contents of a file of code, unless the user has named or trusts them.

    Example:
        >>> with trusting():
        ...     require_trusted_source("mine.py", b"")
    """
    if not _TRUSTING.get() and not _is_remembered(hashlib.sha256(source).hexdigest()):
        raise _untrusted([name])


def _untrusted(names: Iterable[str]) -> UntrustedCodeError:
    named = ", ".join(map(repr, names))
    return UntrustedCodeError(
        f"the settings name code to run, {named}, which no command of yours has named, or which has changed since; "
        "read it, and if you trust it add --trust"
    )


def is_trusted(name: str) -> bool:
    """Tells whether code may run.

    Example:
        >>> is_trusted("this_module_of_a_stranger")
        False
    """
    return _TRUSTING.get() or _is_remembered(code_digest(name))


def _is_remembered(digest: str) -> bool:
    return digest in _REMEMBERED or (_store() / digest).is_file()


def code_digest(name: str) -> str:
    """SHA-256 of the files behind a module or a path; of the name where there is none, as for built-in modules.

    Example:
        >>> len(code_digest("json")), code_digest("json") == code_digest("math")
        (64, False)
    """
    parts = [b"name:" + name.encode()]
    with contextlib.suppress(OSError):
        parts = [source.read_bytes() for source in _sources(name) if source.is_file()] or parts
    if len(parts) == 1:
        return hashlib.sha256(parts[0]).hexdigest()
    # Of digests: no line can move from one file into the next.
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _sources(name: str) -> list[Path]:
    """The file of a module and, before it, those of its packages, which an import runs too; nothing is run here."""
    if name.endswith(".py"):
        return [Path(name)]
    parts = name.split(".")
    places = None
    found: list[Path] = []
    for count in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:count]), places)
        if spec is None:
            return []
        places = spec.submodule_search_locations
        if spec.origin:  # a package without an __init__.py has none, and runs nothing
            found.append(Path(spec.origin))
    return found


def _store() -> Path:
    named = os.environ.get(STORE_VARIABLE)
    if named:
        return Path(named)
    return Path.home() / ".config" / "remanence" / "trusted"
