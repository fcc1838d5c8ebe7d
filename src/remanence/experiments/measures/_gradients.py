"""How far gradients reach in a trained model, and what training it costs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from remanence import probes
from remanence.experiments.measures._memory import training_bytes
from remanence.nn import SABLSTM, RecurrentLayer
from remanence.ops import Strided
from remanence.tasks import Batch, Task
from remanence.train import Run


def gradients(
    run: Path, lengths: Sequence[int], rows: int, points: int = 200, traded: Sequence[int] = (), weights: str = "last"
) -> dict[str, Any]:
    """Norms of dL/dh_t by the distance from the last step, L being the cross-entropy of the answers.

    Args:
        run: folder of a run that is done.
        lengths: T to look at.
        rows: sequences.
        points: of a curve, at most.
        traded: T at which the mean norm is compared with the memory that training takes.
        weights: ``"best"`` by validation, or ``"last"``.

    Returns:
        ``reach``: by length, as text, ``distance`` and ``log_norm`` (None where nothing arrives), and ``change``: the
        mean logarithm over the farthest tenth less that over the nearest. ``tradeoff``: by length ``mean_log_norm`` and
        ``peak_bytes`` of a forward and a backward pass over one sequence in plain torch.
    """
    model, task = Run.open(run).load(weights)
    reached = {str(length): reach(model, task.with_length(length), rows, points) for length in lengths}
    costs = {str(length): _traded(model, task.with_length(length), rows) for length in traded}
    return {"reach": reached, "tradeoff": costs}


def _batch(task: Task, rows: int) -> Batch:
    return task.sample(rows, task.stream("test", seed=0))


def answer_loss(output: Tensor, batch: Batch) -> Tensor:
    """Mean cross-entropy of the answers alone: gradients of other steps' losses would hide how far it reaches.

    Args:
        output: ``(T, B, classes)``.
        batch: with ``mask`` ``(T, B)``.
    """
    return torch.nn.functional.cross_entropy(output[batch.mask], batch.targets[batch.mask])


def reach(model: torch.nn.Module, task: Task, rows: int, points: int) -> dict[str, Any]:
    """Log norm of dL/dh_t at some distances from the last step.

    Args:
        model: trained.
        task: at the length to look at.
        rows: sequences.
        points: at most.
    """
    found = probes.gradient_reach(model, _batch(task, rows), answer_loss)
    chosen = np.unique(np.linspace(0, len(found.distance) - 1, points).round().astype(int))
    norms = [round(float(value), 4) if np.isfinite(value) else None for value in found.log_norm[chosen]]
    return {"distance": found.distance[chosen].tolist(), "log_norm": norms, "change": _change(norms)}


def _change(norms: list[float | None]) -> float | None:
    tenth = max(1, len(norms) // 10)
    ends = [[value for value in part if value is not None] for part in (norms[:tenth], norms[-tenth:])]
    if not all(ends):
        return None
    return round(sum(ends[1]) / len(ends[1]) - sum(ends[0]) / len(ends[0]), 4)


def _traded(model: Any, task: Any, rows: int) -> dict[str, float]:
    norms = probes.gradient_reach(model, _batch(task, rows), answer_loss).log_norm
    mean = float(norms[np.isfinite(norms)].mean())
    return {"mean_log_norm": round(mean, 4), "peak_bytes": training_bytes(plain(model.core), task.total_steps)}


def plain(layer: RecurrentLayer) -> RecurrentLayer:
    """A layer of the same kind and size as the authors' code runs it: plain torch, SAB scoring all that is stored.

    Args:
        layer: trained; it stays as it is.
    """
    memory = layer.spec.memory
    if isinstance(memory, Strided):
        options: dict[str, Any] = {"top_k": memory.top_k, "every": memory.every, "backend": "reference"}
        return SABLSTM(layer.input_size, layer.hidden_size, score="mlp", **options)
    made = copy.deepcopy(layer)
    made.backend = "reference"
    return made


def text_gradients(
    run: Path, length: int, rows: int, points: int = 200, weights: str = "best", batches: int = 1
) -> dict[str, Any]:
    """The same for a language model: norms of the gradient of the last step's loss, averaged over held-out text.

    Args:
        run: folder of a run on a text.
        length: steps back.
        rows: stretches side by side.
        points: of the curve, at most.
        weights: ``"best"`` by validation, or ``"last"``.
        batches: of such stretches.
    """
    model, task = Run.open(run).load(weights)
    generator = torch.Generator().manual_seed(0)
    drawn = [task.with_length(length).sample(rows, generator, "test") for _ in range(batches)]  # type: ignore[call-arg]
    found = [probes.gradient_reach(model, batch, _last_loss) for batch in drawn]
    norms = np.mean([one.log_norm for one in found], axis=0)
    chosen = np.unique(np.linspace(0, len(norms) - 1, points).round().astype(int))
    values = [round(float(value), 4) if np.isfinite(value) else None for value in norms[chosen]]
    return {"distance": found[0].distance[chosen].tolist(), "log_norm": values, "change": _change(values)}


def _last_loss(output: Tensor, batch: Batch) -> Tensor:
    return torch.nn.functional.cross_entropy(output[-1], batch.targets[-1])
