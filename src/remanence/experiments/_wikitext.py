"""WikiText-2 learnt character by character: information in samples and in the text (figures 2a, 3b, 8, 10)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from remanence.experiments._curves import described, finite, measured
from remanence.experiments._samples import Amount, as_texts, draw_sequences, symbols_of
from remanence.experiments._trained import Entry, keep, run_entries
from remanence.nn import SequenceModel
from remanence.probes import logarithmic_lags, text_quality
from remanence.tasks import WikiText2Char

LENGTH, UPDATES = 256, 5400
SAMPLES = Amount(400, 2500)
LAGS = logarithmic_lags(1000, 40)
FAR = (50, 1000)  # where the document finds a power law

# A state that is never dropped does not learn how a text begins, and drawing starts there.
RECIPE: dict[str, Any] = {
    "task": {"name": "wikitext2-char", "batch_size": 16, "options": {"length": LENGTH, "drop_state": 0.1}},
    "model": {"options": {"encoder": "embedding", "embedding_size": 64}},
    "optimiser": {"name": "adam", "learning_rate": 2e-3},
    "schedule": {"name": "cosine", "fraction": 1 / 32},
    "budget": {"updates": UPDATES},
    "loop": {"clip_norm": 1.0, "log_every": 250, "save_every": 500},
    "evaluation": {"every": 1000, "batches": 20, "batch_size": 16},
}
_SHAPE = {"embedding_size": 128, "heads": 8, "depth": 2, "feedforward": 417}
MODELS = (
    Entry("LSTM 256", "LSTM", {"hidden_size": 256}),
    Entry("RelLSTM 217", "RelLSTM", {"hidden_size": 217, "recent": 10, "relevant": 10}),
    Entry("Transformer 128x2", "Transformer", _SHAPE, {"drop_state": 1.0}),
)
"""About 421,000 parameters each. A Transformer starts afresh in every chunk, as in the document."""


def run_wikitext2(out: Path, updates: int = UPDATES) -> None:
    """Trains all models and keeps the record after every one.

    Args:
        out: where runs and record go; what is there already is not run again.
        updates: batches that each model learns from.
    """
    recipe = RECIPE | {"budget": {"updates": updates}}
    data, results = both_parts(WikiText2Char(length=LENGTH), SAMPLES, text_found), []
    for entry in MODELS:
        results += run_entries([entry], recipe, _measure, out, weights="last")
        keep("information_wikitext2", _WHAT, _SCALED, {"recipe": recipe, "data": data, "models": results}, out)


_WHAT = "WikiText-2 learnt character by character, and the information in a million characters drawn from each model."
_SCALED = (
    "421,000 parameters, where the document has LSTMs up to width 2048 and Transformers up to 512; 5,400 updates of "
    "16 chunks of 256 characters, two passes over the text, where the document trains until nothing is gained; a "
    "million characters drawn, not two; one run of each, not the best of three or five."
)


def _measure(model: SequenceModel, task: Any, seed: int) -> dict[str, Any]:
    tokens = draw_sequences(model, task, SAMPLES, seed)
    sample = as_texts(tokens[:1, :400], task.vocabulary)[0]
    return {"validation": fresh_loss(model, task), "sample": sample} | text_found(tokens, task)


@torch.no_grad()
def fresh_loss(model: SequenceModel, task: Any, batches: int = 20) -> float:
    """Nats per character of the validation text in chunks that start from an empty state, the same for all models.

    A loss with the state carried on, as runs report it, asks a Transformer for positions that it never saw.
    """
    generator = torch.Generator().manual_seed(0)
    drawn = [task.sample(16, generator, "validation") for _ in range(batches)]
    return float(torch.stack([task.loss(model(batch.inputs)[0], batch) for batch in drawn]).mean())


def text_found(tokens: torch.Tensor, task: Any) -> dict[str, Any]:
    """What is kept of tokens of a text: their curve as characters, the laws of its ranges, and the quality.

    Args:
        tokens: ``(rows, length)``.
        task: whose tokens they are.
    """
    curve = measured(symbols_of(tokens, task), LAGS)
    reference = as_texts(task.corpus.train.unsqueeze(0), task.vocabulary)
    quality = text_quality(as_texts(tokens, task.vocabulary), reference)
    return {
        "curve": described(curve, *FAR, None),
        "short": described(curve, 1, 10, None)["fits"],
        "middle": described(curve, 1, 1000, 2e-3)["fits"],
        "quality": finite(quality.to_dict()),
    }


def both_parts(task: Any, amount: Amount, found: Callable[[torch.Tensor, Any], dict[str, Any]]) -> dict[str, Any]:
    """Pieces of the training and the validation text, as many and as long as the samples: the bias is the same.

    Args:
        task: the text.
        amount: of pieces.
        found: takes their tokens and the task; gives what is kept.
    """
    parts = {"train": task.corpus.train, "validation": task.corpus.validation}
    return {split: found(_pieces(text, amount), task) for split, text in parts.items()}


def _pieces(text: torch.Tensor, amount: Amount) -> torch.Tensor:
    starts = torch.linspace(0, len(text) - amount.length, amount.rows).long()
    return torch.stack([text[start : start + amount.length] for start in starts.tolist()])
