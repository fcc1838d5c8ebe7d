"""Finding and loading the compiled kernel, and saying why if that fails."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

PACKAGE = Path(__file__).resolve().parent.parent
SOURCES = PACKAGE / "csrc"
BUILD_RECORD = PACKAGE / "_build.json"
REBUILD = "pip install --no-build-isolation ."


@dataclass(frozen=True)
class Library:
    """What became of the compiled kernel."""

    path: Path | None
    problem: str | None
    """Why it is not in use, or ``None`` if it is."""
    remedy: str
    build: dict[str, Any]
    """What the build recorded (compiler, error)."""
    stale: bool = False
    """Whether it was built from other sources: it would give other numbers, so this is no reason to fall back."""


def source_hash(folder: Path = SOURCES) -> str | None:
    """Short hash of all kernel sources, or ``None`` where they were not installed.

    Example:
        >>> source_hash(Path("no such folder")) is None
        True
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if not files:
        return None
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(folder).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def library() -> Library:
    """What became of the compiled kernel when this module was imported."""
    return LIBRARY


def _load() -> Library:
    build = _build_record()
    path = next(iter(sorted(PACKAGE.glob("_kernel*.so"))), None)
    if path is None:
        reason = build.get("error", "the package was installed without being built")
        remedy = f"Install a C++ compiler (g++ or clang++) and run `{REBUILD}`."
        return Library(None, f"there is no compiled kernel ({reason})", remedy, build)
    remedy = f"Build it again: `{REBUILD}`, or delete it to use the reference."
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        return Library(path, f"{path.name} cannot be loaded ({error})", remedy, build)
    built = torch.ops.remanence.source_hash()
    present = source_hash()
    if present is not None and built != present:
        problem = f"{path} was built from other sources ({built}) than those beside it ({present})"
        return Library(path, problem, remedy, build, stale=True)
    return Library(path, None, "", build)


def _build_record() -> dict[str, Any]:
    try:
        return json.loads(BUILD_RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


LIBRARY = _load()
