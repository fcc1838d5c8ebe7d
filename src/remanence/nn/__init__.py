"""Layers: cells with memories, attention, Transformers, and whole models. No training, no files."""

from remanence.ops import (
    Attention,
    Full,
    Learned,
    MeanAttention,
    Newest,
    Random,
    Screen,
    Screened,
    State,
    Strided,
    Trace,
    ValueWeighted,
    modrelu,
)

from ._attention_state import CacheState, RunningState
from ._backtracking import SABGRU, SABLSTM, SABRNN
from ._baselines import LRU, DeltaRule, MinGRU, MinLSTM, linear_scan
from ._carrying import CarriedState
from ._certificate import LayerCertificate, NotCertifiedError, StabilityCertificate
from ._convolution import CausalConvolution, ConvolutionState
from ._generation import evaluating
from ._layer import RecurrentLayer
from ._linear_attention import (
    orthogonal_gaussian_projection,
    positive_random_features,
    random_feature_attention,
    separable_attention,
)
from ._memory_layers import MemGRU, MemLSTM, MemRNN, RelGRU, RelLSTM, RelRNN
from ._model import SequenceModel, make_core
from ._multi_head_attention import MultiHeadAttention
from ._orthogonal import GORU, ExpRNN, OrthRNN, orthogonal_parameter_groups
from ._recurrent import GRU, LSTM, RNN, HDetachLSTM
from ._registry import ModelInfo, get_model, list_models
from ._screened_delta import ScreenedDeltaRule
from ._stable import StableLSTM, StableRNN
from ._transformer import Transformer, sinusoidal_positions
from ._truncated import TruncatedRNN, TruncatedState
from .cuts import HDetach, TruncatedBPTT

__all__ = [
    "GORU",
    "GRU",
    "LRU",
    "LSTM",
    "RNN",
    "SABGRU",
    "SABLSTM",
    "SABRNN",
    "CacheState",
    "CarriedState",
    "CausalConvolution",
    "ConvolutionState",
    "DeltaRule",
    "ExpRNN",
    "Full",
    "HDetach",
    "HDetachLSTM",
    "LayerCertificate",
    "MemGRU",
    "MemLSTM",
    "MemRNN",
    "MinGRU",
    "MinLSTM",
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
    "ScreenedDeltaRule",
    "SequenceModel",
    "evaluating",
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
    "linear_scan",
    "list_models",
    "make_core",
    "modrelu",
    "orthogonal_gaussian_projection",
    "orthogonal_parameter_groups",
    "positive_random_features",
    "random_feature_attention",
    "separable_attention",
    "sinusoidal_positions",
    "Attention",
    "Learned",
    "MeanAttention",
    "Newest",
    "Random",
    "Screen",
    "ValueWeighted",
]
