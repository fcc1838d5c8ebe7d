"""Sequences eight times as long as those that models were trained on: does the law go on?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from remanence._validate import message
from remanence.experiments._binary import EQUAL, LENGTH
from remanence.experiments._curves import described, measured
from remanence.experiments._samples import Amount, draw_sequences
from remanence.experiments._trained import keep
from remanence.probes import logarithmic_lags
from remanence.tasks import BinaryPowerLaw
from remanence.train import Run

SAMPLES = Amount(500, 8 * LENGTH)
LAGS = logarithmic_lags(4 * LENGTH, 40)
LABELS = tuple(label for label in EQUAL if label.split()[0] not in ("Transformer", "MemLSTM"))
"""Those of bounded memory; a Transformer has no positions beyond those that it was trained on."""


def run_binary_far(out: Path) -> None:
    """Draws long sequences from the first run of each model of equal size and bounded memory.

    Args:
        out: where the experiment ``binary`` has left its runs; the record goes there too.

    Raises:
        ValueError: the runs are not there.
    """
    if not (out / "runs").is_dir():
        raise ValueError(message("out", "hold the runs of the experiment `binary`", str(out), "Run that first"))
    task = BinaryPowerLaw(length=SAMPLES.length)
    drawn = task.draw(SAMPLES.rows, task.stream("test", seed=0)).T
    results = {"data": _described(drawn)} | {label: _found(label, out) for label in LABELS}
    what = "Bits drawn from models that were trained on sequences of 256, eight times as long as those."
    keep("information_binary-far", what, "", {"models": results, "trained on": LENGTH}, out)


def _found(label: str, out: Path) -> dict[str, Any]:
    kept = out / f"far-{label.replace(' ', '-')}.json"
    if not kept.exists():
        model, task = Run.open(out / "runs" / f"{label.replace(' ', '-')}-seed-0").load()
        kept.write_text(json.dumps(_described(draw_sequences(model, task, SAMPLES))), encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


def _described(bits: Any) -> dict[str, Any]:
    return described(measured(bits, LAGS), 1, int(LAGS.max()), None)
