"""Copy at any length in constant memory: the blanks between question and answer are streamed, never built."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from remanence.train import Run

SHORT = 2
"""T of the sequences whose gap is filled up with blanks."""


def streamed(run: Path, lengths: Sequence[int], rows: int, chunk: int = 1000, weights: str = "last") -> dict[str, Any]:
    """Accuracy of a trained model on Copy at lengths of which no sequence would fit into memory.

    Args:
        run: folder of a run on Copy.
        lengths: T to ask at.
        rows: sequences.
        chunk: blank steps at a time.
        weights: ``"best"`` by validation, or ``"last"``.

    Returns:
        By length, as text: ``accuracy``, ``state_bytes`` of what is carried from step to step, and ``cpu_seconds``.
    """
    model, task = Run.open(run).load(weights)
    return {str(length): _answered(model, task.with_length(SHORT), length, rows, chunk) for length in lengths}


@torch.no_grad()
def _answered(model: Any, task: Any, length: int, rows: int, chunk: int) -> dict[str, float]:
    batch = task.batch(0, rows, split="test")
    question = int(batch.mask[:, 0].nonzero()[0]) - 1  # the marker stands one step before the first answer
    blank = batch.inputs[question + 1 : question + 2]
    began = time.process_time()
    _, state = model(batch.inputs[:question])
    left = length - SHORT
    while left > 0:
        steps = min(chunk, left)
        _, state = model(blank.expand(steps, -1, -1), state)
        left -= steps
    carried = int(state.nbytes)
    output, _ = model(batch.inputs[question:], state)
    asked = batch._replace(targets=batch.targets[question:], mask=batch.mask[question:])
    return {
        "accuracy": round(task.accuracy(output, asked).item(), 6),
        "state_bytes": carried,
        "cpu_seconds": round(time.process_time() - began, 2),
    }
