"""How far symbols tell about each other: in data, and in what trained models say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from remanence import data, probes
from remanence.experiments._curves import POINTS, described, finite, measured
from remanence.experiments._samples import Amount, as_texts, draw_sequences, is_text, symbols_of
from remanence.nn import SequenceModel
from remanence.runs import Settings, Values
from remanence.tasks import BinaryPowerLaw, Repetitive, Task, make_task
from remanence.train import Run

Fits = Mapping[str, Sequence[Any]]
"""``[least lag, greatest lag, threshold]`` by name; a threshold of None is the floor of the estimate."""


def sampled_information(
    run: Path,
    rows: int,
    length: int,
    longest: int,
    fits: Fits,
    seed: int = 0,
    weights: str = "best",
) -> Values:
    """Information in sequences drawn from a trained model.

    Args:
        run: folder of a run on symbols.
        rows: sequences to draw.
        length: symbols of each.
        longest: greatest lag.
        fits: ``[least lag, greatest lag, threshold]`` by name; a threshold of None is the floor of the estimate.
        seed: seed for sampling.
        weights: ``"best"`` by validation, or ``"last"``.

    Returns:
        ``curve`` with its points; ``fits``, by name, both laws, and ``best``, which of them fits better;
        ``parameters`` of the model; of texts a ``sample`` and its ``quality``.
    """
    model, task = Run.open(run).load(weights)
    tokens = draw_sequences(model, task, Amount(rows, length), seed)
    sizes = {"parameters": sum(parameter.numel() for parameter in model.parameters())}
    return {**sizes, **_described(tokens, task, longest, fits), **_quality(tokens, task)}


def data_information(
    run: Path, task: str, options: Settings, split: str, rows: int, length: int, longest: int, fits: Fits
) -> Values:
    """Information in as many pieces of the data themselves, so that the bias is the same."""
    made: Any = make_task(task, **options)
    if not hasattr(made, "corpus"):
        tokens = made.with_length(length).draw(rows, made.stream(split, seed=0)).T
    else:
        text = getattr(made.corpus, split)
        starts = torch.linspace(0, max(0, len(text) - length), rows).long().tolist()
        tokens = torch.stack([text[start : start + length] for start in starts])
    return _described(tokens, made, longest, fits)


def _described(tokens: torch.Tensor, task: Task, longest: int, fits: Fits) -> Values:
    symbols = symbols_of(tokens, task)
    lags = np.arange(1, longest + 1)
    if longest > 200:
        lags = probes.logarithmic_lags(longest, 40)
    curve = measured(symbols, lags)
    laws = {
        name: described(curve, shortest, min(farthest, int(curve.lags.max())), threshold)
        for name, (shortest, farthest, threshold) in fits.items()
    }
    points = next(iter(laws.values()))
    kept = {name: points[name] for name in POINTS}
    return {"curve": kept, "fits": {name: {**law["fits"], "best": law["best"]} for name, law in laws.items()}}


def _quality(tokens: torch.Tensor, task: Task) -> Values:
    if not is_text(task):
        return {}
    texts = as_texts(tokens, task.vocabulary)
    reference = as_texts(task.corpus.train.unsqueeze(0), task.vocabulary)
    return {"sample": texts[0][:400], "quality": finite(probes.text_quality(texts, reference).to_dict())}


def estimator(run: Path, exponent: float, sequences: int, length: int, longest: int, threshold: float) -> Values:
    """The exponent that is found in sequences of a known one."""
    task = BinaryPowerLaw(length=length, exponent=exponent)
    bits = task.draw(sequences, task.stream("test", seed=0)).T
    found = _described(bits, task, longest, {"power": (1, longest, threshold)})
    law = found["fits"]["power"]["power"]
    return {**found, "exponent": exponent, "fitted": law and law["gamma"]}


def repetitive(run: Path, probability: float, sequences: int, length: int, longest: int) -> Values:
    """Information of the repetitive chain and its closed form."""
    task = Repetitive(length=length, probability=probability)
    bits = task.draw(sequences, task.stream("test", seed=0)).T
    curve = measured(bits.numpy(), np.arange(2, longest + 1))
    exact = task.mutual_information([2])[0].item()
    return {"measured": round(float(curve.values.mean()), 6), "exact": round(exact, 6)}


def held_out_information(run: Path, text: str, part: str, longest: int) -> Values:
    """A held-out part, compared with equally long stretches of the training part."""
    training, held_out = _parts(text, part)
    lags = probes.logarithmic_lags(longest, 25)
    found = probes.uniformity(np.frombuffer(training, np.uint8), np.frombuffer(held_out, np.uint8), lags)
    stretches = found.stretches
    curves = {
        "values": found.values,
        "least": stretches.min(0),
        "greatest": stretches.max(0),
        "mean": stretches.mean(0),
    }
    shown = {name: [float(f"{value:.6g}") for value in curve] for name, curve in curves.items()}
    counts = {
        "outside": int(found.outside.sum()),
        "outside_by_chance": found.chance * len(lags),
        "stretches": len(stretches),
        "symbols": found.symbols,
    }
    return {"lags": lags.tolist(), **shown, **counts, "verdict": found.verdict}


def _parts(text: str, part: str) -> tuple[bytes, bytes]:
    if text == "text8":
        whole = data.load_bytes("text8/text8.first74081952.txt")
        first, second = (int(share * len(whole)) for share in (0.9, 0.95))  # the paper's shares
        held_out = {"validation": whole[first:second], "test": whole[second:]}
        return whole[:first], held_out[part]
    stem = {"ptb": "ptb/ptb.", "wikitext-2": "wikitext-2/"}[text]
    name = {"validation": "valid", "test": "test"}[part]
    return data.load_bytes(f"{stem}train.txt"), data.load_bytes(f"{stem}{name}.txt")


@torch.no_grad()
def fresh_loss(model: SequenceModel, task: Task, batches: int, rows: int) -> float:
    """Nats per symbol of the validation text in chunks that start from an empty state, the same for all models.

    A loss with the state carried on, as runs report it, asks a Transformer for positions that it never saw.
    """
    generator = torch.Generator().manual_seed(0)
    drawn = [task.sample(rows, generator, "validation") for _ in range(batches)]  # type: ignore[call-arg]
    return float(torch.stack([task.loss(model(batch.inputs)[0], batch) for batch in drawn]).mean())


def fresh_score(run: Path, batches: int = 20, rows: int = 16, weights: str = "last") -> Values:
    """:func:`fresh_loss` of a run's model."""
    model, task = Run.open(run).load(weights)
    return {"loss": round(fresh_loss(model, task, batches, rows), 6)}
