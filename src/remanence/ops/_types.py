"""The vocabulary of the scan, from the files that define it."""

from ._buffer import Full, Screened
from ._log import Log, Trace
from ._spec import Memory, ScanSpec
from ._state import BEFORE_START, EMPTY, State
from ._stride import Strided
from ._weights import Weights

__all__ = [
    "BEFORE_START",
    "EMPTY",
    "Full",
    "Log",
    "Memory",
    "ScanSpec",
    "Screened",
    "State",
    "Strided",
    "Trace",
    "Weights",
]
