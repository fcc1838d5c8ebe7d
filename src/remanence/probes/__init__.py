"""Measurements on any torch sequence model: how far gradient and information reach, and what that costs.

Each probe is one verb. It returns a frozen result with a one-line ``verdict``, ``to_dict()`` and ``plot()``, and leaves
the model, the random numbers and torch as it found them, even when the model throws.
"""

from ._attention import AttentionMap, attention_map
from ._context import ContextUse, context_use
from ._cost import Cost, cost
from ._demand import MemoryDemand, memory_demand
from ._depth import DependencyDepth, dependency_depth
from ._entropy import Estimator, information_from_counts
from ._fit import Decay, Growth
from ._held import share_held
from ._huggingface import load_language_model, sample_texts, sample_tokens
from ._information import MutualInformation, mutual_information
from ._lags import logarithmic_lags
from ._laws import InformationLaw, Regime, best_law
from ._layout import Layout
from ._meter import peak_bytes
from ._paths import GradientPaths, gradient_paths
from ._perturbation import PerturbationReach, perturbation_reach
from ._quality import TextQuality, text_quality
from ._reach import GradientReach, gradient_reach
from ._result import ProbeResult
from ._stability import Stability, stability
from ._survey import NotMeasured, probe_model
from ._symbols import SymbolKind, Symbols, as_symbols, read_symbols
from ._tradeoff import Tradeoff, tradeoff
from ._truncation import TruncationGap, truncation_gap
from ._uniformity import Uniformity, uniformity

__all__ = [
    "probe_model",
    "NotMeasured",
    "Layout",
    "gradient_reach",
    "GradientReach",
    "perturbation_reach",
    "PerturbationReach",
    "context_use",
    "ContextUse",
    "attention_map",
    "AttentionMap",
    "share_held",
    "dependency_depth",
    "DependencyDepth",
    "gradient_paths",
    "GradientPaths",
    "cost",
    "Cost",
    "peak_bytes",
    "tradeoff",
    "Tradeoff",
    "stability",
    "Stability",
    "truncation_gap",
    "TruncationGap",
    "memory_demand",
    "MemoryDemand",
    "mutual_information",
    "MutualInformation",
    "InformationLaw",
    "Regime",
    "best_law",
    "Estimator",
    "information_from_counts",
    "logarithmic_lags",
    "read_symbols",
    "as_symbols",
    "Symbols",
    "SymbolKind",
    "uniformity",
    "Uniformity",
    "load_language_model",
    "sample_texts",
    "sample_tokens",
    "text_quality",
    "TextQuality",
    "ProbeResult",
    "Decay",
    "Growth",
]
