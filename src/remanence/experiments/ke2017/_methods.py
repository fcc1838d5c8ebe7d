"""The methods that the tables compare, by the names of their rows."""

from __future__ import annotations

import re

from remanence.experiments._declaring import options, told
from remanence.experiments._experiment import Setting

PAPER = "section 4"
CODE = "authors' code (copying only)"
ROW = "the row"
BPTT = "LSTM (full BPTT)"


def lstm(truncate: int) -> str:
    """Name of the row of truncated back-propagation.

    Example:
        >>> lstm(5)
        'LSTM (TBPTT 5)'
    """
    return f"LSTM (TBPTT {truncate})"


def sab(truncate: int, top_k: int, every: int = 2) -> str:
    """Name of a row of sparse attentive backtracking: k_trunc, k_top and k_att.

    Example:
        >>> sab(5, 10)
        'SAB (5, 10, 2)'
    """
    return f"SAB ({truncate}, {top_k}, {every})"


def method_settings(name: str) -> tuple[Setting, ...]:
    """Settings of a row, named by :func:`lstm` or :func:`sab`, or ``BPTT``; SAB normalises, as the authors' code does.

    Example:
        >>> [setting.value for setting in method_settings(lstm(5))]
        ['LSTM', {'truncate': 5}]
    """
    numbers = list(map(int, re.findall(r"\d+", name)))
    if name == BPTT:
        return told(ROW, model__name="LSTM")
    if name.startswith("LSTM"):
        return (*told(ROW, model__name="LSTM"), *options(ROW, cuts={"truncate": numbers[0]}))
    truncate, top_k, every = numbers
    own = (*told(ROW, model__name="SABLSTM"), *options(ROW, truncate=truncate, top_k=top_k, every=every))
    return (*own, *options(CODE, score="tanh", normalise=True, underfull="raw", start="zero", output="summary"))


ADAM = told(PAPER, optimiser__name="adam", optimiser__learning_rate=1e-3, loop__clip_norm=1.0)
NORMS = {"to norm 1": 1.0, "none": "none"}
"""Values of ``loop.clip_norm`` by their words (section 7.2)."""
