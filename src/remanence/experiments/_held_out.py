"""Are validation and test sets like training sets? Beside stretches of the same size (document 003, figure 6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from remanence import data, probes
from remanence.experiments._trained import keep

LAGS = probes.logarithmic_lags(1000, 25)


def run_held_out(out: Path) -> None:
    """Compares the held-out parts of three texts with stretches of their training parts.

    Args:
        out: where the record goes.
    """
    results = {}
    for name, (training, *others) in _texts():
        whole = np.frombuffer(training, np.uint8)
        for part, symbols in zip(("validation", "test"), others, strict=True):
            results[f"{name}, {part}"] = _compared(whole, np.frombuffer(symbols, np.uint8))
    out.mkdir(parents=True, exist_ok=True)
    what = "Information in validation and test sets beside that in stretches of the training set that are as long."
    scaled = "The first 74 MB of text8, not 100; WikiText-103 is not among the texts."
    keep("information_held-out", what, scaled, {"lags": LAGS.tolist(), "texts": results}, out)


def _texts() -> Iterator[tuple[str, list[bytes]]]:
    for name, stem in (("Penn Treebank", "ptb/ptb."), ("WikiText-2", "wikitext-2/")):
        yield name, [data.load_bytes(f"{stem}{part}.txt") for part in ("train", "valid", "test")]
    whole = data.load_bytes("text8/text8.first74081952.txt")
    cuts = [int(share * len(whole)) for share in (0.9, 0.95)]  # the document's shares
    yield "text8", [whole[: cuts[0]], whole[cuts[0] : cuts[1]], whole[cuts[1] :]]


def _compared(whole: np.ndarray, part: np.ndarray) -> dict[str, Any]:
    found = probes.uniformity(whole, part, LAGS)
    stretches = found.stretches
    curves = {
        "values": found.values,
        "least": stretches.min(0),
        "mean": stretches.mean(0),
        "greatest": stretches.max(0),
    }
    shown = {name: [float(f"{value:.6g}") for value in curve] for name, curve in curves.items()}
    counts = {"symbols": found.symbols, "stretches": len(stretches), "outside": int(found.outside.sum())}
    return shown | counts | {"outside by chance": found.chance * len(LAGS), "verdict": found.verdict}
