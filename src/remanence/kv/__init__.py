"""Screens as a bounded key-value cache for the decoders of Hugging Face's transformers.

The screens are plain functions of tensors; `ScreenedCache` needs transformers: ``pip install 'remanence[hf]'``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from remanence.kv._screens import SCREENS, TOVA, HeavyHitter, Window
from remanence.ops import Attention, MeanAttention, Screen, ValueWeighted

if TYPE_CHECKING:
    from remanence.kv._cache import ScreenedCache as ScreenedCache
    from remanence.kv._compare import CacheComparison as CacheComparison
    from remanence.kv._compare import CacheScore as CacheScore
    from remanence.kv._compare import compare_caches as compare_caches
    from remanence.kv._compare import text_loss as text_loss

__all__ = [
    "ScreenedCache",
    "Screen",
    "Attention",
    "MeanAttention",
    "ValueWeighted",
    "Window",
    "HeavyHitter",
    "TOVA",
    "SCREENS",
    "compare_caches",
    "text_loss",
    "CacheComparison",
    "CacheScore",
]

_NEED_TRANSFORMERS = {"ScreenedCache": "_cache"}
_NEED_TRANSFORMERS |= dict.fromkeys(("compare_caches", "text_loss", "CacheComparison", "CacheScore"), "_compare")


def __getattr__(name: str) -> Any:
    if name not in _NEED_TRANSFORMERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_NEED_TRANSFORMERS[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise
        raise ImportError(f"{name} needs transformers: pip install 'remanence[hf]'") from error
