"""Sequence models with a bounded long memory, and measurements of how far any model's memory reaches.

Subpackages are loaded when they are first named, so that ``import remanence`` and the command line start at once:

>>> import remanence
>>> remanence.nn.RelLSTM
<class 'remanence.nn...RelLSTM'>
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remanence import claims as claims
    from remanence import data as data
    from remanence import experiments as experiments
    from remanence import kv as kv
    from remanence import nn as nn
    from remanence import ops as ops
    from remanence import probes as probes
    from remanence import rl as rl
    from remanence import tasks as tasks
    from remanence import testing as testing
    from remanence import theory as theory
    from remanence import train as train

__version__ = "0.1.0"
__all__ = ["nn", "ops", "tasks", "data", "train", "rl", "kv", "probes", "theory", "claims", "experiments", "testing"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
