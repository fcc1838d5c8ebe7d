"""``remanence generate``."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import typer

from remanence.cli._errors import exit_codes
from remanence.cli._tables import numbers
from remanence.data import Vocabulary
from remanence.runs import tag, trusting
from remanence.train import Run


def generate_from(
    folder: Path, length: int, prompt: str, temperature: float, seed: int, weights: str, *, trust: bool, as_json: bool
) -> None:
    """Does what ``remanence generate`` says."""
    with exit_codes(), trusting(trust):
        run = Run.open(folder)
        chosen = run.weights(weights)
        torch.set_num_threads(run.config.loop.threads)
        model, task = run.load(chosen)
        vocabulary = getattr(task, "vocabulary", None)
        tokens = _prompt_tokens(prompt, vocabulary)
        generator = torch.Generator().manual_seed(seed)
        drawn, _ = model.generate(length, prompt=tokens, temperature=temperature, generator=generator)
    if vocabulary is None:
        text = " ".join(map(str, drawn.tolist()))
    else:
        text = vocabulary.decode(drawn)
    if prompt and vocabulary is not None:
        prompt += vocabulary.separator
    if not as_json:
        typer.echo(prompt + text)
        return
    used = {"weights": chosen.name, "update": chosen.update}
    typer.echo(json.dumps({**tag("sample"), "prompt": prompt, "text": text, "tokens": drawn.tolist(), **used}))


def _prompt_tokens(prompt: str, vocabulary: Vocabulary | None) -> torch.Tensor | None:
    if not prompt:
        return None
    if vocabulary is None:
        return torch.tensor(numbers("prompt", ",".join(prompt.split())))
    if vocabulary.separator:
        return vocabulary.encode(prompt.split())
    return vocabulary.encode(prompt)
