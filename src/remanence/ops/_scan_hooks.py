"""Standing around scans: what a probe puts about every scan of its own thread, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import torch

Wrapper: TypeAlias = Callable[..., Any]
"""Called as ``wrapper(scan, x, weights, state, **options)``; it calls ``scan`` and returns what that returns."""

_wrappers: ContextVar[tuple[Wrapper, ...]] = ContextVar("wrappers around scans", default=())


def wrappers() -> tuple[Wrapper, ...]:
    """What stands around scans here and now, the innermost first; nothing inside a compiled graph."""
    if torch.compiler.is_compiling():
        return ()
    return _wrappers.get()


@contextmanager
def around_scans(wrapper: Wrapper) -> Iterator[None]:
    """Inside, every scan of this thread goes through a function; other threads see nothing of it.

    A graph that ``torch.compile`` made keeps to itself.

    Args:
        wrapper: is called as ``wrapper(scan, x, weights, state, **options)`` with the arguments of :func:`scan`, calls
            its first argument to run it, and returns what that returns. Of several, the latest runs first.

    Example:
        >>> import torch, remanence
        >>> def count(scan, x, *args, **options):
        ...     print(len(x), "steps")
        ...     return scan(x, *args, **options)
        >>> with around_scans(count):
        ...     output, state = remanence.nn.LSTM(3, 4)(torch.randn(7, 2, 3))
        7 steps
    """
    token = _wrappers.set((*_wrappers.get(), wrapper))
    try:
        yield
    finally:
        _wrappers.reset(token)
