"""Binary sequences with a power law, learnt by models with and without memory (document 003, figures 1, 3a, 7, 9)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from remanence.experiments._curves import described, measured
from remanence.experiments._samples import Amount, draw_sequences
from remanence.experiments._trained import Entry, keep, run_entries
from remanence.nn import SequenceModel
from remanence.tasks import BinaryPowerLaw, Task

LENGTH, SAMPLES, SEEDS = 256, 2000, 3
LAGS = np.arange(1, 201)
THRESHOLD = 1e-3  # the document's

RECIPE: dict[str, Any] = {
    "task": {"name": "binary-power-law", "batch_size": 25, "options": {"length": LENGTH, "train_sequences": 10_000}},
    "optimiser": {"name": "adam", "learning_rate": 3e-3},
    "schedule": {"name": "cosine", "fraction": 1 / 32},
    "budget": {"updates": 2000},
    "loop": {"clip_norm": 1.0, "log_every": 200, "save_every": 1000},
    "evaluation": {"every": 500, "batches": 8, "batch_size": 250},
}


def _transformer(label: str, width: int, **options: Any) -> Entry:
    shape = {"encoder": "embedding", "embedding_size": width, "heads": 4, "depth": 1}
    return Entry(f"Transformer {label}", "Transformer", shape | options)


EQUAL = ("RNN 66", "LSTM 32", "RelLSTM 26", "SABLSTM 32", "Transformer 16", "MemLSTM 26")
"""About 4,700 parameters each. SAB reads a mean: the sum of the document overflows here within twenty updates."""
MODELS = (
    *(Entry(f"RNN {width}", "RNN", {"hidden_size": width}) for width in (8, 32, 66)),
    *(Entry(f"LSTM {width}", "LSTM", {"hidden_size": width}) for width in (4, 8, 32)),
    Entry("RelLSTM 26", "RelLSTM", {"hidden_size": 26, "recent": 10, "relevant": 10}),
    Entry("SABLSTM 32", "SABLSTM", {"hidden_size": 32, "top_k": 10, "every": 2, "normalise": True}),
    _transformer("16", 16, feedforward=104),
    Entry("RNN 8x2", "RNN", {"hidden_size": 8, "num_layers": 2}),
    Entry("LSTM 8x2", "LSTM", {"hidden_size": 8, "num_layers": 2}),
    Entry("MemLSTM 26", "MemLSTM", {"hidden_size": 26}),
    _transformer("16 context 32", 16, feedforward=104, context=32),
    _transformer("4", 4),
    Entry("RNN 8x4", "RNN", {"hidden_size": 8, "num_layers": 4}),
    Entry("LSTM 8x4", "LSTM", {"hidden_size": 8, "num_layers": 4}),
    Entry("RelLSTM 26 memory 64", "RelLSTM", {"hidden_size": 26, "recent": 32, "relevant": 32}),
    _transformer("16x2", 16, feedforward=40, depth=2),
)


def run_binary(out: Path, updates: int = 2000) -> None:
    """Trains all models, first one seed of each, then the others, and keeps the record after every model.

    Args:
        out: where runs and record go; what is there already is not run again.
        updates: batches that each model learns from.
    """
    recipe = RECIPE | {"budget": {"updates": updates}}
    data, results = _data(), []
    for seed in range(SEEDS):
        for entry in MODELS:
            results += run_entries([replace(entry, seed=seed)], recipe, _measure, out)
            keep("information_binary", _WHAT, _SCALED, {"recipe": recipe, "data": data, "models": results}, out)


_WHAT = "Bits with I(lag) = 0.1 lag^-0.4 learnt by models of several widths and depths, and the information in samples."
_SCALED = (
    "Sequences have 256 bits, half of the document's 512; as there, 10,000 are learnt from and 2,000 drawn from each "
    "model. All models share one recipe: Adam, 2,000 updates of 25 sequences, cosine schedule, where the document "
    "trains RNN and LSTM by RMSprop and Transformers by Adam until nothing is gained, and keeps the best of five runs."
)


def _measure(model: SequenceModel, task: Task, seed: int) -> dict[str, Any]:
    return {"curve": curve_of(draw_sequences(model, task, Amount(SAMPLES, LENGTH), seed))}


def curve_of(bits: torch.Tensor) -> dict[str, Any]:
    """The record of a curve; the first and the last lags of the fits are those of the document."""
    return described(measured(bits, LAGS), 1, int(LAGS.max()), THRESHOLD)


def _data() -> dict[str, Any]:
    """What the models learn from, and as many sequences of its law as are drawn from a model."""
    task = BinaryPowerLaw(length=LENGTH)
    curves = {"training set": 10_000, "as many as samples": SAMPLES}
    return {
        name: {"curve": curve_of(task.draw(rows, task.stream("test", seed=number)).T)}
        for number, (name, rows) in enumerate(curves.items())
    }
