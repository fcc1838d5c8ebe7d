"""Finding and loading the compiled kernel, and saying why if that fails."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from remanence._require import is_required

PACKAGE = Path(__file__).resolve().parent.parent
SOURCES = PACKAGE / "csrc"
BUILD_RECORD = PACKAGE / "_build.json"
REBUILD = "pip install --no-build-isolation ."


@dataclass(frozen=True)
class Library:
    """What became of the compiled kernel.

    Args:
        path: the library that was found, if any.
        problem: why it is not in use, or ``None`` if it is.
        remedy: how to change that.
        build: what the build recorded (compiler, flags, error).
    """

    path: Path | None
    problem: str | None
    remedy: str
    build: dict[str, Any]


def source_hash(folder: Path = SOURCES) -> str | None:
    """Short hash of all kernel sources, or ``None`` where they were not installed.

    Example:
        >>> source_hash(Path("no such folder")) is None
        True
    """
    files = sorted(folder.glob("*"))
    if not files:
        return None
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def library() -> Library:
    """Loads the compiled kernel once per process.

    Raises:
        RuntimeError: if the library is older than its sources, or if ``REMANENCE_REQUIRE`` names the kernel and it is
            not there.

    Example:
        >>> isinstance(library(), Library)
        True
    """
    found = _load()
    if found.problem is not None and is_required("kernel"):
        raise RuntimeError(f"REMANENCE_REQUIRE names the kernel, but {found.problem}. {found.remedy}")
    return found


def _load() -> Library:
    build = _build_record()
    path = next(iter(sorted(PACKAGE.glob("_kernel*.so"))), None)
    if path is None:
        reason = build.get("error", "the package was installed without being built")
        remedy = f"Install a C++ compiler (g++ or clang++) and run `{REBUILD}`; `backend='reference'` works without."
        return Library(None, f"there is no compiled kernel ({reason})", remedy, build)
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        return Library(path, f"{path.name} cannot be loaded ({error})", f"Build it again: `{REBUILD}`.", build)
    _refuse_stale(path)
    return Library(path, None, "", build)


def _refuse_stale(path: Path) -> None:
    """A kernel of other sources would give other numbers without a word: an error, not a fall-back."""
    built, present = torch.ops.remanence.source_hash(), source_hash()
    if present is not None and built != present:
        raise RuntimeError(
            f"{path} was built from other sources ({built}) than those beside it ({present}). "
            f"Build it again: `{REBUILD}`, or delete it to use the reference."
        )


def _build_record() -> dict[str, Any]:
    try:
        return json.loads(BUILD_RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
