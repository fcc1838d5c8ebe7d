"""The functional scans under all layers: one signature, several backends, the reference as the specification."""

from ._around import around_scans
from ._backend import Backend, backend_report, scan
from ._saving import saving
from ._types import (
    Combine,
    Full,
    Log,
    Memory,
    Nonlinearity,
    ScanSpec,
    Screened,
    State,
    Strided,
    Trace,
    Weights,
)
from .cells import modrelu
from .generation import generate
from .pairs import count_pairs
from .steps import reverse_reset, reverse_rows, row_positions
from .stream import step

__all__ = [
    "Backend",
    "Combine",
    "Full",
    "Log",
    "Memory",
    "Nonlinearity",
    "ScanSpec",
    "Screened",
    "State",
    "Strided",
    "Trace",
    "Weights",
    "around_scans",
    "backend_report",
    "count_pairs",
    "generate",
    "modrelu",
    "reverse_reset",
    "reverse_rows",
    "row_positions",
    "saving",
    "scan",
    "step",
]
