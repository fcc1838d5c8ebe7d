"""Names of the version before, which still work and say what they are called now."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """A module's ``__getattr__`` that still knows the old ``names`` of what is public there.

    Example:
        >>> renamed("remanence.rl", {"Score": "EpisodeResults"})("Scores")
        Traceback (most recent call last):
        AttributeError: module 'remanence.rl' has no attribute 'Scores'
    """

    def __getattr__(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"`{module}.{name}` is now called `{names[name]}`", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return __getattr__
