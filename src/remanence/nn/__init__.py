"""Layers: cells with memories, and what stands beside them. No training, no files."""

from remanence.ops import Full, Screened, State, Strided, Trace, modrelu

from ._layer import RecurrentLayer
from .attentive import MemGRU, MemLSTM, MemRNN, RelGRU, RelLSTM, RelRNN
from .backtracking import SABGRU, SABLSTM, SABRNN
from .cuts import HDetach, TruncatedBPTT
from .orthogonal import GORU, ExpRNN, OrthRNN, orthogonal_parameter_groups
from .recurrent import GRU, LSTM, RNN, HDetachLSTM

__all__ = [
    "GORU",
    "GRU",
    "LSTM",
    "RNN",
    "ExpRNN",
    "Full",
    "HDetach",
    "HDetachLSTM",
    "MemGRU",
    "MemLSTM",
    "MemRNN",
    "OrthRNN",
    "RecurrentLayer",
    "RelGRU",
    "RelLSTM",
    "RelRNN",
    "SABGRU",
    "SABLSTM",
    "SABRNN",
    "Screened",
    "State",
    "Strided",
    "Trace",
    "TruncatedBPTT",
    "modrelu",
    "orthogonal_parameter_groups",
]
