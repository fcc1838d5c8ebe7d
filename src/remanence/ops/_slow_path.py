"""Never slow in silence: one warning per process and reason where the reference runs though the kernel was wanted."""

from __future__ import annotations

import sys
import warnings

import torch

from ._kernel_config import DTYPES
from ._library import library

OURS = ("remanence", "torch")
"""Packages whose lines tell a user nothing about where a slow call comes from."""


class SlowPathWarning(UserWarning):
    """A scan runs on the reference path, many times slower than the compiled kernel, and could do otherwise.

    It is shown once per process and reason. ``backend="reference"`` asks for that path and silences it, and so does
    ``warnings.simplefilter("ignore", remanence.ops.SlowPathWarning)``.

    Example:
        >>> issubclass(SlowPathWarning, UserWarning)
        True
    """


_told: set[str] = set()


def warn_of_device_and_dtype(dtype: torch.dtype, device: torch.device) -> None:
    """Says so if the kernel is left out because it is not there, or because of where or what the numbers are."""
    if device.type == "meta":  # shapes without data are no slow path
        return
    found = library()
    if found.problem is not None:
        warn_once(found.problem, found.remedy)
    elif device.type != "cpu":
        remedy = "Keep layer and input on the CPU: there the kernel is often faster than steps one by one elsewhere."
        warn_once(f"the kernel runs on the CPU, not on {device.type!r}", remedy)
    elif dtype not in DTYPES:
        warn_once(f"the kernel does not take {dtype}", "Use float32, float64, bfloat16 or float16.")


def warn_without_kernel() -> None:
    """Warns if there is no kernel, for a process whose workers' own warnings nobody sees.

    Example:
        >>> from remanence.ops import backend_report
        >>> if backend_report()["active"] == "fused":
        ...     warn_without_kernel()
    """
    found = library()
    if found.problem is not None:
        warn_once(found.problem, found.remedy)


def warn_once(reason: str, remedy: str) -> None:
    """Warns, but never twice for one reason, and not inside a graph that is being compiled."""
    if reason in _told or torch.compiler.is_compiling():
        return
    _told.add(reason)
    text = f"remanence runs on its slow reference path: {reason}. {remedy} backend='reference' silences this warning."
    warnings.warn(text, SlowPathWarning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """The level at which :func:`warn_once` names the line of the user's own code: above this package and torch."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OURS:
        level += 1
        frame = frame.f_back
    return level
