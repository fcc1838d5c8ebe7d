"""How well the estimator finds a known law: binary sequences of ten exponents (document 003, figure 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from remanence.experiments._curves import described, measured
from remanence.experiments._trained import keep
from remanence.tasks import BinaryPowerLaw

SEQUENCES, LENGTH = 10_000, 1000
LAGS = np.arange(1, 501)
EXPONENTS = tuple(number / 10 for number in range(1, 11))
THRESHOLD = 2e-4
"""Of the fit: the standard error of an estimate is a few 1e-5 here."""


def run_estimator(out: Path, sequences: int = SEQUENCES) -> None:
    """Measures and fits ten sets of sequences, of the document's size unless told.

    Args:
        out: where the record goes.
        sequences: of each exponent.
    """
    results = {f"{exponent:g}": _found(exponent, sequences) for exponent in EXPONENTS}
    out.mkdir(parents=True, exist_ok=True)
    smaller = "" if sequences == SEQUENCES else f"{sequences:,} sequences, not {SEQUENCES:,}"
    what = "Exponent fitted to sequences of bits with I(lag) = 0.1 lag^-gamma, for gamma from 0.1 to 1."
    keep("information_estimator", what, smaller, {"exponents": results}, out)


def _found(exponent: float, sequences: int) -> dict[str, Any]:
    task = BinaryPowerLaw(length=LENGTH, exponent=exponent)
    bits = task.draw(sequences, task.stream("test", seed=0)).T
    return {"exponent": exponent, "curve": described(measured(bits, LAGS), 1, int(LAGS.max()), THRESHOLD)}
