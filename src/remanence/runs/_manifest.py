"""Facts about where and how a run was made."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import numpy
import torch

import remanence
from remanence import ops
from remanence.runs._plain import Values
from remanence.runs._result import tag

# What decides the last bits of a sum; a change of one of these is worth a warning on resuming.
DECIDES_BITS = ("torch", "threads", "cpu_capability", "instruction_set", "machine", "backend", "world_size")


class Configuration(Protocol):
    """What a manifest tells of a configuration of any kind."""

    @property
    def seed(self) -> int:
        """Of everything random."""
        ...

    @property
    def digest(self) -> str:
        """Its name."""
        ...


def make_manifest(config: Configuration, world_size: int = 1) -> Values:
    """Collects versions, commit, seed, threads, processes, backend, host facts and the command, for JSON.

    Example:
        >>> from types import SimpleNamespace
        >>> make_manifest(SimpleNamespace(seed=3, digest="1a2b3c4d"))["seed"]
        3
    """
    backend = ops.backend_report()
    return {
        **tag("manifest"),
        "remanence": remanence.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
        "git": git_commit(),
        "config_digest": config.digest,
        "seed": config.seed,
        "threads": torch.get_num_threads(),
        "world_size": world_size,
        "backend": backend["active"],
        "backend_reason": backend["reason"],
        "instruction_set": backend.get("instruction_set", ""),
        "host": platform.node(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "command": sys.argv,
    }


def git_commit() -> Values | None:
    """The commit that the package's source stands at, and whether it was changed since; None outside a checkout."""
    folder = Path(remanence.__file__).parent
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", ".")
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "changed": bool(changed)}


def _git(folder: Path, *arguments: str) -> str:
    # Without locks: a run that is killed here would else leave the user's checkout locked.
    command = ["git", "--no-optional-locks", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10, check=True).stdout.strip()


def changed_facts(before: Values, now: Values) -> list[str]:
    """Words what has changed since a run began and may change its last bits.

    Example:
        >>> changed_facts({"torch": "1"}, {"torch": "2"})
        ["torch was '1' and is '2'"]
    """
    return [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in DECIDES_BITS
        if before.get(name) != now.get(name)
    ]


def available_cores() -> int:
    """Cores that this process may use.

    Example:
        >>> available_cores() >= 1
        True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
