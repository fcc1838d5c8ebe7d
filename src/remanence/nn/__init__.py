"""Layers: cells with memories, and what stands beside them. No training, no files."""

from remanence.ops import Full, Screened, State, Strided, Trace, modrelu

from ._attention_state import CacheState, RunningState
from ._certificate import LayerCertificate, NotCertifiedError, StabilityCertificate
from ._core import make_core
from ._layer import RecurrentLayer
from ._registry import ModelInfo, get_model, list_models
from .attention import MultiHeadAttention
from .attentive import MemGRU, MemLSTM, MemRNN, RelGRU, RelLSTM, RelRNN
from .backtracking import SABGRU, SABLSTM, SABRNN
from .convolution import CausalConvolution, ConvolutionState
from .cuts import HDetach, TruncatedBPTT
from .linear_attention import (
    orthogonal_gaussian_projection,
    positive_random_features,
    random_feature_attention,
    separable_attention,
)
from .model import SequenceModel
from .orthogonal import GORU, ExpRNN, OrthRNN, orthogonal_parameter_groups
from .recurrent import GRU, LSTM, RNN, HDetachLSTM
from .stable import StableLSTM, StableRNN
from .transformer import Transformer, sinusoidal_positions
from .truncated import TruncatedRNN, TruncatedState

__all__ = [
    "GORU",
    "GRU",
    "LSTM",
    "RNN",
    "SABGRU",
    "SABLSTM",
    "SABRNN",
    "CacheState",
    "CausalConvolution",
    "ConvolutionState",
    "ExpRNN",
    "Full",
    "HDetach",
    "HDetachLSTM",
    "LayerCertificate",
    "MemGRU",
    "MemLSTM",
    "MemRNN",
    "ModelInfo",
    "MultiHeadAttention",
    "NotCertifiedError",
    "OrthRNN",
    "RecurrentLayer",
    "RelGRU",
    "RelLSTM",
    "RelRNN",
    "RunningState",
    "Screened",
    "SequenceModel",
    "StabilityCertificate",
    "StableLSTM",
    "StableRNN",
    "State",
    "Strided",
    "Trace",
    "Transformer",
    "TruncatedBPTT",
    "TruncatedRNN",
    "TruncatedState",
    "get_model",
    "list_models",
    "make_core",
    "modrelu",
    "orthogonal_gaussian_projection",
    "orthogonal_parameter_groups",
    "positive_random_features",
    "random_feature_attention",
    "separable_attention",
    "sinusoidal_positions",
]
