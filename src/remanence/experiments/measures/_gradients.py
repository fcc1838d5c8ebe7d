"""How far gradients reach in a trained model, and what training it costs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from remanence import nn, probes
from remanence.experiments._work import SEED
from remanence.experiments.measures._attention import untrained
from remanence.nn import SABLSTM, RecurrentLayer, SequenceModel
from remanence.ops import Strided
from remanence.runs import Settings, Values, nested_table
from remanence.tasks import Batch, Task
from remanence.train import Run, build_task, config_from

FEATURES = 10
"""Of the input that the memory of training is measured with."""


def gradients(
    run: Path, lengths: Sequence[int], rows: int, points: int = 200, traded: Sequence[int] = (), weights: str = "last"
) -> Values:
    """Norms of dL/dh_t by the distance from the last step, L being the cross-entropy of the answers.

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
    """Mean cross-entropy of the answers alone: gradients of other steps' losses would hide how far it reaches."""
    return torch.nn.functional.cross_entropy(output[batch.mask], batch.targets[batch.mask])


def reach(model: torch.nn.Module, task: Task, rows: int, points: int) -> Values:
    """Log norm of dL/dh_t at some distances from the last step."""
    found = probes.gradient_reach(model, _batch(task, rows), answer_loss, batch_first=False)
    return _thinned(found.distance, found.log_norm, points)


def _thinned(distance: np.ndarray, log_norm: np.ndarray, points: int) -> Values:
    chosen = np.unique(np.linspace(0, len(distance) - 1, points).round().astype(int))
    norms = [_rounded(value) for value in log_norm[chosen].tolist()]
    return {"distance": distance[chosen].tolist(), "log_norm": norms, "change": _change(norms)}


def _rounded(log_norm: float) -> float | None:
    """JSON has no minus infinity: None is where no gradient arrives."""
    return round(log_norm, 4) if np.isfinite(log_norm) else None


def _change(norms: list[float | None]) -> float | None:
    tenth = max(1, len(norms) // 10)
    nearest = [value for value in norms[:tenth] if value is not None]
    farthest = [value for value in norms[-tenth:] if value is not None]
    if not nearest or not farthest:
        return None
    return round(sum(farthest) / len(farthest) - sum(nearest) / len(nearest), 4)


def _traded(model: SequenceModel, task: Task, rows: int) -> dict[str, float]:
    batch = _batch(task, rows)
    norms = probes.gradient_reach(model, batch, answer_loss, batch_first=False).log_norm
    mean = float(norms[np.isfinite(norms)].mean())
    layer = plain(cast(RecurrentLayer, model.core))
    return {"mean_log_norm": round(mean, 4), "peak_bytes": training_bytes(layer, len(batch.inputs))}


def plain(layer: RecurrentLayer) -> RecurrentLayer:
    """A layer of the same kind and size as the authors' code runs it: plain torch, SAB scoring all that is stored."""
    memory = layer.spec.memory
    if isinstance(memory, Strided):
        options: Values = {"top_k": memory.top_k, "every": memory.every, "backend": "reference"}
        return SABLSTM(layer.input_size, layer.hidden_size, score="mlp", **options)
    made = copy.deepcopy(layer)
    made.backend = "reference"
    return made


def text_gradients(
    run: Path, length: int, rows: int, points: int = 200, weights: str = "best", batches: int = 1
) -> Values:
    """The same for a language model: norms of the gradient of the last step's loss, averaged over held-out text."""
    return _text_reach(*Run.open(run).load(weights), length, rows, points, batches)


def fresh_text_gradients(
    run: Path, settings: Settings, length: int, rows: int, points: int = 200, batches: int = 1, seed: int = 0
) -> Values:
    """:func:`text_gradients` of the weights that a run of these settings, by dotted keys, begins with."""
    config = config_from(nested_table({**settings, SEED: seed}))
    task = build_task(config)
    return _text_reach(untrained(config, task), task, length, rows, points, batches)


def _text_reach(model: SequenceModel, task: Task, length: int, rows: int, points: int, batches: int) -> Values:
    generator = torch.Generator().manual_seed(0)
    drawn = [task.with_length(length).sample(rows, generator, "test") for _ in range(batches)]  # type: ignore[call-arg]
    found = [probes.gradient_reach(model, batch, _last_loss, batch_first=False) for batch in drawn]
    return _thinned(found[0].distance, np.mean([one.log_norm for one in found], axis=0), points)


def _last_loss(output: Tensor, batch: Batch) -> Tensor:
    return torch.nn.functional.cross_entropy(output[-1], batch.targets[-1])


def training_bytes(layer: RecurrentLayer, length: int) -> int:
    """Most bytes of tensors alive at once in a forward and a backward pass over one sequence.

    Example:
        >>> layer = nn.RNN(10, 4)
        >>> training_bytes(layer, 200) > training_bytes(layer, 100)
        True
    """
    # The growth that a cost tells of takes two lengths.
    return probes.cost(layer, [max(1, length // 2), length], repeats=1).peak_bytes[-1]


def training_memory(run: Path, model: str, options: Settings, width: int, lengths: Sequence[int]) -> Values:
    """Peak memory of a forward and a backward pass by the length of the sequence.

    Returns:
        ``lengths``, ``peak_bytes`` (they depend on no chance and on no machine), ``megabytes`` at the last length,
        ``state_bytes``, and the ``order`` of growth.
    """
    found = probes.cost(nn.get_model(model)(FEATURES, width, **options), lengths, repeats=1)
    facts = {"peak_bytes": list(found.peak_bytes), "state_bytes": list(found.state_bytes)}
    return {
        "lengths": list(lengths),
        **facts,
        "megabytes": found.peak_bytes[-1] / 1e6,
        "exponent": round(found.growth["peak_bytes"].exponent, 3),
        "order": found.order("peak_bytes"),
    }
