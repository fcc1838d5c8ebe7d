"""WikiText-2 learnt word by word: information between characters, and between words (figures 2b, 3c, 8, 10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from remanence.experiments._curves import described, measured
from remanence.experiments._samples import Amount, as_texts, draw_sequences
from remanence.experiments._trained import Entry, keep, run_entries
from remanence.experiments._wikitext import both_parts, fresh_loss, text_found
from remanence.nn import SequenceModel
from remanence.probes import logarithmic_lags
from remanence.tasks import WikiText2Word

LENGTH, WORDS, UPDATES = 64, 10_000, 4000
SAMPLES = Amount(200, 1000)
WORD_LAGS = logarithmic_lags(500, 12)

RECIPE: dict[str, Any] = {
    "task": {
        "name": "wikitext2-word",
        "batch_size": 16,
        "options": {"length": LENGTH, "words": WORDS, "drop_state": 0.1},
    },
    "model": {"options": {"encoder": "embedding", "embedding_size": 128, "tied": True, "dropout": 0.1}},
    "optimiser": {"name": "adam", "learning_rate": 2e-3},
    "schedule": {"name": "cosine", "fraction": 1 / 32},
    "budget": {"updates": UPDATES},
    "loop": {"clip_norm": 1.0, "log_every": 100, "save_every": 500},
    "evaluation": {"every": 1000, "batches": 10, "batch_size": 16},
}
_SHAPE = {"heads": 8, "depth": 2, "feedforward": 256}
_REL = {"embedding_size": 124, "hidden_size": 124, "num_layers": 2, "recent": 10, "relevant": 10}
MODELS = (
    Entry("LSTM 128x2", "LSTM", {"hidden_size": 128, "num_layers": 2}),
    Entry("Transformer 128x2", "Transformer", _SHAPE, {"drop_state": 1.0}),
    Entry("RelLSTM 124x2", "RelLSTM", _REL),
)
"""About 1.6 million parameters each, 1.3 of them in the embedding, which is the readout too. A Transformer starts
afresh in every chunk, as in the document."""


def run_wikitext2_words(out: Path, updates: int = UPDATES) -> None:
    """Trains all models and keeps the record after every one.

    Args:
        out: where runs and record go; what is there already is not run again.
        updates: batches that each model learns from.
    """
    recipe = RECIPE | {"budget": {"updates": updates}}
    data, results = both_parts(WikiText2Word(length=LENGTH, words=WORDS), SAMPLES, _found), []
    for entry in MODELS:
        results += run_entries([entry], recipe, _measure, out, weights="last")
        keep("information_wikitext2-words", _WHAT, _SCALED, {"recipe": recipe, "data": data, "models": results}, out)


_WHAT = "WikiText-2 learnt word by word, and the information in 200,000 words drawn from each model."
_SCALED = (
    "The 10,000 most frequent words, <unk> standing for the others (7 % of the text more), not 33,278; width 128, "
    "where the document goes from 16 to 2048; 4,000 updates of 16 chunks of 64 words, two passes, by Adam, where the "
    "document trains by gradient descent until nothing is gained; dropout 0.1, not 0.4; a million characters drawn, "
    "not two million; one run of each, not the best of three or five."
)


def _measure(model: SequenceModel, task: Any, seed: int) -> dict[str, Any]:
    tokens = draw_sequences(model, task, SAMPLES, seed)
    sample = as_texts(tokens[:1, :100], task.vocabulary)[0]
    return {"validation": fresh_loss(model, task), "sample": sample} | _found(tokens, task)


def _found(tokens: torch.Tensor, task: Any) -> dict[str, Any]:
    words = described(measured(tokens.numpy(), WORD_LAGS), 1, int(WORD_LAGS.max()), None)
    return text_found(tokens, task) | {"words": words}
