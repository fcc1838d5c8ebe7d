"""``remanence evaluate`` and ``remanence generate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import typer
from rich.console import Console
from rich.table import Table

from remanence._validate import message, one_of
from remanence.cli._errors import exit_codes
from remanence.tasks import SPLITS, Split, Task
from remanence.train import EvaluationConfig, Run, evaluate


def evaluate_run(
    folder: Path, lengths: str | None, split: str, batches: int, batch_size: int, weights: str, *, as_json: bool
) -> None:
    """Does what ``remanence evaluate`` says."""
    with exit_codes():
        one_of("weights", weights, ("best", "last"))
        part: Split = one_of("split", split, SPLITS)
        run = Run.open(folder)
        torch.set_num_threads(run.config.loop.threads)
        model, task = run.load(weights)
        config = EvaluationConfig(batches=batches, batch_size=batch_size)
        rows = []
        for length in numbers("length", lengths) or [None]:
            asked = task if length is None else task.with_length(length)
            rows.append({"length": length or _own_length(task), **evaluate(model, asked, config, part)})
    show_rows(rows, as_json)


def _own_length(task: Task) -> int | None:
    return getattr(task, "length", None)


def numbers(name: str, text: str | None) -> list[int]:
    """Reads whole numbers separated by commas.

    Example:
        >>> numbers("length", "100,200"), numbers("length", None)
        ([100, 200], [])
    """
    if text is None:
        return []
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise ValueError(message(name, "be whole numbers separated by commas", repr(text))) from error


def show_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Prints rows of equal keys, as a table or as JSON.

    Example:
        >>> show_rows([{"length": 5, "loss": 0.5}], as_json=True)
        [
          {
            "length": 5,
            "loss": 0.5
          }
        ]
    """
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in rows[0] if rows else ():
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(shown(value) for value in row.values()))
    Console().print(table)


def shown(value: Any) -> str:
    """A value of a table; numbers with four digits.

    Example:
        >>> shown(0.123456), shown(None), shown(7)
        ('0.1235', '-', '7')
    """
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def generate_from(
    folder: Path, length: int, prompt: str, temperature: float, seed: int, weights: str, *, as_json: bool
) -> None:
    """Does what ``remanence generate`` says."""
    with exit_codes():
        one_of("weights", weights, ("best", "last"))
        run = Run.open(folder)
        torch.set_num_threads(run.config.loop.threads)
        model, task = run.load(weights)
        vocabulary = getattr(task, "vocabulary", None)
        tokens = _prompt_tokens(prompt, vocabulary)
        generator = torch.Generator().manual_seed(seed)
        drawn, _ = model.generate(length, prompt=tokens, temperature=temperature, generator=generator)
    text = " ".join(map(str, drawn.tolist())) if vocabulary is None else vocabulary.decode(drawn)
    prompt += vocabulary.separator if prompt and vocabulary is not None else ""
    typer.echo(json.dumps({"prompt": prompt, "text": text, "tokens": drawn.tolist()}) if as_json else prompt + text)


def _prompt_tokens(prompt: str, vocabulary: Any) -> torch.Tensor | None:
    if not prompt:
        return None
    if vocabulary is None:
        return torch.tensor(numbers("prompt", ",".join(prompt.split())))
    return vocabulary.encode(prompt.split() if vocabulary.separator else prompt)
