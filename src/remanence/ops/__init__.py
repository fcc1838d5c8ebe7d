"""The functional scans under all layers: one signature, several backends, the reference as the specification."""

from ._backend import BACKENDS, Backend, backend_report
from ._backward_memory import saving
from ._buffer import Full, Screened
from ._cells import Cell, GORUCell, GRUCell, LSTMCell, Nonlinearity, RNNCell, modrelu
from ._log import Log, Trace
from ._memory import MemoryRule, MemoryRun, SlotCounts
from ._pairs import count_pairs
from ._reads import Combine, Held, Read, Reading, SoftmaxRead, ThresholdRead
from ._row_steps import reverse_reset, reverse_rows, row_positions
from ._scan import scan, stays_packed
from ._scan_hooks import around_scans
from ._screens import Attention, Judged, Learned, MeanAttention, Newest, Random, Screen, ValueWeighted
from ._slow_path import SlowPathWarning, warn_without_kernel
from ._spec import Memory, ScanSpec, find_cell
from ._stack import walk_stack
from ._state import State
from ._stride import Strided
from ._weights import PARAMETER_NAMES, OwnParameter, Weights
from .generation import generate
from .stream import step

__all__ = [
    "Attention",
    "BACKENDS",
    "Backend",
    "Cell",
    "Combine",
    "Full",
    "GORUCell",
    "GRUCell",
    "Held",
    "Judged",
    "LSTMCell",
    "Learned",
    "Log",
    "MeanAttention",
    "Memory",
    "MemoryRule",
    "MemoryRun",
    "Newest",
    "Nonlinearity",
    "OwnParameter",
    "PARAMETER_NAMES",
    "RNNCell",
    "Random",
    "Read",
    "Reading",
    "ScanSpec",
    "Screen",
    "Screened",
    "SlotCounts",
    "SlowPathWarning",
    "SoftmaxRead",
    "State",
    "Strided",
    "ThresholdRead",
    "Trace",
    "ValueWeighted",
    "Weights",
    "around_scans",
    "backend_report",
    "count_pairs",
    "find_cell",
    "generate",
    "modrelu",
    "reverse_reset",
    "reverse_rows",
    "row_positions",
    "saving",
    "scan",
    "stays_packed",
    "step",
    "walk_stack",
    "warn_without_kernel",
]
