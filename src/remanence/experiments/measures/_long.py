"""Recall at any length in constant memory: sequences are streamed, never built."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from remanence.train import EvaluationConfig, Run, evaluate


def streamed(run: Path, lengths: Sequence[int], rows: int, chunk: int = 1000, weights: str = "last") -> dict[str, Any]:
    """Accuracy of a trained model at lengths of which no sequence would fit into memory.

    Args:
        run: folder of a run on Copy, or another task that can be streamed.
        lengths: T to ask at.
        rows: sequences.
        chunk: steps at a time.
        weights: ``"best"`` by validation, or ``"last"``.

    Returns:
        By length, as text: ``accuracy``, ``state_bytes`` of what is carried from step to step, and ``cpu_seconds``.
    """
    model, task = Run.open(run).load(weights)
    return {str(length): _answered(model, task.with_length(length), rows, chunk) for length in lengths}


def _answered(model: Any, task: Any, rows: int, chunk: int) -> dict[str, float]:
    began = time.process_time()
    found = evaluate(model, task, EvaluationConfig(batches=1, batch_size=rows), "test", chunk=chunk)
    seconds = time.process_time() - began
    first = task.with_length(min(task.length, chunk)).batch(0, rows, split="test")  # a chunk fills every memory
    return {
        "accuracy": round(found["accuracy"], 6),
        "state_bytes": int(model(first.inputs)[1].nbytes),
        "cpu_seconds": round(seconds, 2),
    }
