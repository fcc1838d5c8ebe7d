"""Recurrent and truncated models: gradients, weights, and loss by context (Miller and Hardt 2018)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from remanence import probes
from remanence.experiments._work import SEED
from remanence.experiments.measures._attention import before_and_after
from remanence.nn import SequenceModel
from remanence.runs import Result, Settings, Values, nested_table, unsealed, write_result
from remanence.train import Run, RunConfig, config_from, resume, train


def gaussian_truncation(
    run: Path,
    norm: float,
    width: int,
    steps: int,
    windows: Sequence[int],
    updates: int,
    rate: float,
    instances: int,
    seed: int = 0,
) -> Values:
    """Gradient gaps by window and weight gaps by update on random Gaussian instances.

    Args:
        run: not looked at.
        norm: spectral norm of the recurrent matrix, lambda.
        width: hidden units.
        steps: of the sequence.
        windows: k, rising.
        updates: of projected gradient descent.
        rate: alpha; steps are alpha / t, or alpha throughout.
        instances: to take the mean over.
        seed: of the first instance.

    Returns:
        ``gradient_gap`` by window; ``weight_gap``, by update at the middle window, with ``decaying`` and ``constant``
        steps; ``slope`` of the logarithm of the gradient gap, divided by k, in k.
    """
    drawn = [_Instance(norm, width, steps, seed + number) for number in range(instances)]
    gaps = [sum(one.gradient_gap(k) for one in drawn) / instances for k in windows]
    window = windows[len(windows) // 2]
    weights = {
        name: [
            sum(values) / instances
            for values in zip(*(one.descend(window, updates, rate, name) for one in drawn), strict=True)
        ]
        for name in ("decaying", "constant")
    }
    ends = [math.log(max(gaps[place], 1e-300) / windows[place]) for place in (0, -1)]
    slope = (ends[1] - ends[0]) / (windows[-1] - windows[0])
    return {
        "windows": list(windows),
        "gradient_gap": gaps,
        "updates": list(range(1, updates + 1)),
        "weight_gap": weights,
        "slope": slope,
        "last_weight_gap": {name: values[-1] for name, values in weights.items()},
    }


class _Instance:
    """h_t = tanh(W h + U x), p = |h_T - y|^2 / 2, with Gaussian W of a given norm, U, x and y."""

    def __init__(self, norm: float, width: int, steps: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        self.norm = norm
        self.weight = _projected(1e6 * draw(width, width), norm)
        self.inputs = draw(steps, width) @ draw(width, width).T / width
        self.target = draw(width) / math.sqrt(width)

    def gradient(self, weight: Tensor, window: int = 0) -> Tensor:
        """Of the loss, seeing only the last steps; all of them by default."""
        free = weight.clone().requires_grad_()
        state = torch.zeros_like(self.target)
        for x in self.inputs[-window:]:
            state = torch.tanh(free @ state + x)
        (found,) = torch.autograd.grad(0.5 * (state - self.target).square().sum(), free)
        return found

    def gradient_gap(self, window: int) -> float:
        return (self.gradient(self.weight) - self.gradient(self.weight, window)).norm().item()

    def descend(self, window: int, updates: int, rate: float, schedule: str) -> list[float]:
        whole = self.weight
        part = self.weight
        gaps = []
        for update in range(1, updates + 1):
            step = rate / update if schedule == "decaying" else rate
            whole = _projected(whole - step * self.gradient(whole), self.norm)
            part = _projected(part - step * self.gradient(part, window), self.norm)
            gaps.append((whole - part).norm().item())
        return gaps


def _projected(weight: Tensor, limit: float) -> Tensor:
    """The nearest matrix whose singular values are at most `limit`."""
    u, values, v = torch.linalg.svd(weight)
    return u @ torch.diag(values.clamp(max=limit)) @ v


@dataclass(frozen=True)
class WeightDistances(Result):
    """What :func:`weight_distance` has measured so far, one table a stage."""

    kind: ClassVar[str] = "weight-distances"

    stages: tuple[dict[str, float], ...]


def weight_distance(run: Path, settings: Settings, truncated: Settings, stages: Sequence[int], seed: int = 0) -> Values:
    """Distance between the weights of a recurrent and of a truncated training that begin alike and see the same data.

    Both are runs of their own, so a stop loses nothing.

    Args:
        run: its parent gets both runs.
        settings: of the recurrent training, by dotted keys.
        truncated: what the truncated one has otherwise.
        stages: updates after which the distance is taken, rising.
        seed: of both.

    Returns:
        ``updates``; ``distance``, the norm of the difference of all weights; ``moved``, that of how far the recurrent
        ones have come; and ``share``, the last distance over the last way.
    """
    folder = run.parent / "pair"
    kept = run.parent / "distances.json"
    found = _stages_before(kept)
    for updates in stages[len(found) :]:
        ends = []
        for name, own in (("recurrent", {}), ("truncated", truncated)):
            config = nested_table({**settings, **own, "budget.updates": updates, SEED: seed})
            ends.append(_weights(config_from(config), folder / name))
        _, fresh, _ = before_and_after(folder / "recurrent", "last")
        found.append({"distance": (ends[0] - ends[1]).norm().item(), "moved": (ends[0] - _flat(fresh)).norm().item()})
        write_result(kept, WeightDistances(tuple(found)))
    columns = {name: [one[name] for one in found] for name in ("distance", "moved")}
    return {"updates": list(stages), **columns, "share": columns["distance"][-1] / columns["moved"][-1]}


def _stages_before(kept: Path) -> list[dict[str, float]]:
    """Those of a measurement that was stopped: the two trainings are past them and cannot go back."""
    if not kept.is_file():
        return []
    found = json.loads(kept.read_text())
    if isinstance(found, list):  # files of before there were kinds
        return found
    return list(WeightDistances.from_dict(unsealed(found)).stages)


def _weights(config: RunConfig, folder: Path) -> Tensor:
    if Run(folder).exists:
        outcome = resume(folder, config=config)
    else:
        outcome = train(config, folder)
    if outcome.signal is not None:
        raise SystemExit(128 + outcome.signal)
    return _flat(outcome.run.load("last")[0])


def _flat(model: SequenceModel) -> Tensor:
    return torch.cat([parameter.detach().double().flatten() for parameter in model.parameters()])


def context_loss(run: Path, windows: Sequence[int], length: int, rows: int, ends: int, weights: str = "best") -> Values:
    """Perplexity of a language model that sees only its last k words."""
    model, task = Run.open(run).load(weights)
    batch = task.with_length(length).sample(rows, torch.Generator().manual_seed(0), "test")  # type: ignore[call-arg]
    found = probes.truncation_gap(model, batch, windows, _cross_entropy, ends=ends, batch_first=False)
    return {
        "windows": list(found.ks),
        "perplexity": [round(value, 4) for value in found.perplexity],
        "whole": round(math.exp(found.full_loss), 4),
        "gradient_gap": [round(value, 6) for value in found.gradient],
    }


def _cross_entropy(output: Tensor, target: Tensor | None) -> Tensor:
    assert target is not None
    return torch.nn.functional.cross_entropy(output, target)
