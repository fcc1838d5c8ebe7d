"""Distances at which symbols are compared."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from remanence._validate import message, positive_int

from ._symbols import Symbols


def logarithmic_lags(longest: int, count: int = 40) -> np.ndarray:
    """Different whole lags from 1 to ``longest``, as evenly spaced in their logarithm as whole numbers can be.

    Args:
        longest: the last.
        count: at most so many.

    Returns:
        int64 ``(K,)``.

    Example:
        >>> logarithmic_lags(100, 5)
        array([  1,   3,  10,  32, 100])
    """
    positive_int("longest", longest)
    positive_int("count", count)
    return np.unique(np.geomspace(1, longest, count).round().astype(np.int64))


def checked_lags(lags: Iterable[int] | torch.Tensor | None, symbols: Symbols) -> np.ndarray:
    """The given lags as int64, or default ones; refused if the sequences are too short for them."""
    if symbols.longest < 2:
        raise ValueError(message("sequence", "hold at least two symbols", symbols.longest))
    if lags is None:
        return logarithmic_lags(max(symbols.longest // 10, 1))
    if not isinstance(lags, torch.Tensor | np.ndarray):
        lags = np.array(list(lags))
    checked = np.array(lags.tolist())
    if checked.ndim != 1 or len(checked) == 0 or checked.dtype.kind not in "iu" or (checked < 1).any():
        raise ValueError(message("lags", "be a list of whole numbers >= 1", checked.tolist()))
    if (longest := int(checked.max())) >= symbols.longest:
        expected = f"be below the length of the longest sequence, {symbols.longest}"
        raise ValueError(message("lags", expected, longest, "Take shorter lags or longer sequences"))
    return checked.astype(np.int64)
