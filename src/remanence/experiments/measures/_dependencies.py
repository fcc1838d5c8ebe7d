"""Theorem 2 and Remark 6 of Kerg et al. 2020, looked at in trained models."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from remanence import probes
from remanence.experiments.measures._attention import before_and_after, maps_by_row
from remanence.experiments.measures._recalled import needed_steps
from remanence.nn import RecurrentLayer, SequenceModel
from remanence.runs import Values
from remanence.tasks import Batch, Task
from remanence.theory import dependency_bound

READ = 0.01
"""A weight from which on a state counts as read: a softmax is nowhere zero."""
WAY = 1e-3
"""Least product of weights along a way that counts."""
MOST = 0.5
"""Share of the later steps that must read a state at an even share or more, for it to be relevant."""
ALMOST_ALL = 0.9
"""Share of the later steps that must hardly read a state, for it not to be relevant."""
HARDLY = 0.1
"""Of an even share."""
DRAWS = 8
"""Random directions that estimate the norm of a Jacobian."""


def dependencies(run: Path, rows: int, weights: str = "last") -> Values:
    """How sparse attention is, how deep the ways are from answers to what they ask for, and what Theorem 2 bounds.

    Returns:
        ``kappa``: median number of states that an answering step reads; ``depth`` and ``deepest``: median and greatest
        number of Jacobians from an asked state to its answer; ``reached``: share of answers with any way. ``bound``:
        natural logarithm of Theorem 2's bound at those medians, with the greatest positive real eigenvalue of the
        recurrent matrix (``None`` for gated cells, or without one); ``jacobian``: median logarithm of
        the Frobenius norm of dh_T/dh_t over asked states t. ``relevant``, ``irrelevant`` and
        ``neither``: shares of the states by Remark 6; ``untrained_relevant`` and
        ``untrained_irrelevant``: the same before training.
    """
    model, fresh, task = before_and_after(run, weights)
    batch = task.batch(0, rows, split="test")
    before = kinds_of_states(maps_by_row(fresh, batch))
    facts = {
        **_ways(model, task, batch),
        "jacobian": _jacobian(model, task, batch),
        **kinds_of_states(maps_by_row(model, batch)),
        "untrained_relevant": before["relevant"],
        "untrained_irrelevant": before["irrelevant"],
    }
    return {name: None if value is None else round(float(value), 4) for name, value in facts.items()}


def kinds_of_states(maps: list[np.ndarray]) -> dict[str, float]:
    """Shares of states that most later steps read, that almost none reads, and of the others.

    Example:
        >>> first_alone = np.zeros((4, 4))
        >>> first_alone[:, 0] = 1.0
        >>> kinds_of_states([first_alone])
        {'relevant': 0.25, 'irrelevant': 0.75, 'neither': 0.0}
    """
    relevant = []
    irrelevant = []
    for weights in maps:
        # Over what a step does read: a bounded memory offers fewer states than there are.
        even = 1 / np.maximum((weights > 0).sum(axis=1), 1)
        for state in range(len(weights)):
            share = weights[state:, state] / even[state:]
            relevant.append(np.mean(share >= 1) > MOST)
            irrelevant.append(np.mean(share < HARDLY) >= ALMOST_ALL)
    kinds = {"relevant": float(np.mean(relevant)), "irrelevant": float(np.mean(irrelevant))}
    return {**kinds, "neither": 1 - sum(kinds.values())}


def _ways(model: SequenceModel, task: Task, batch: Batch) -> dict[str, float | None]:
    """Kappa, depths and the bound over all answers of all rows."""
    needed = needed_steps(task, batch)
    kappas = []
    depths = []
    for row, weights in enumerate(maps_by_row(model, batch)):
        for answer in batch.mask[:, row].nonzero()[:, 0].tolist():
            kappas.append(int((weights[answer] >= READ).sum()))
            ways = probes.dependency_depth(weights, WAY, last=answer)
            depths.append(int(ways.depth[int(needed[answer, row])]))
    reached = [depth for depth in depths if depth >= 0]
    facts: dict[str, float | None] = {"kappa": float(np.median(kappas)), "reached": len(reached) / len(depths)}
    if not reached:
        return {**facts, "depth": None, "deepest": None, "bound": None}
    depth = float(np.median(reached))
    bound = _log_bound(_eigenvalue(model), round(depth), max(1, round(float(np.median(kappas)))))
    return {**facts, "depth": depth, "deepest": float(max(reached)), "bound": bound}


def _eigenvalue(model: SequenceModel) -> float | None:
    """The greatest positive real eigenvalue of the recurrent matrix of a cell without gates."""
    core = cast(RecurrentLayer, model.core)
    matrix = core.state_dict()["weight_hh_l0"].double()
    if matrix.shape[0] != matrix.shape[1]:
        return None
    values = torch.linalg.eigvals(matrix)
    real = values.real[(values.imag == 0) & (values.real > 0)]
    if not len(real):
        return None
    return float(real.max())


def _log_bound(eigenvalue: float | None, depth: int, kappa: int) -> float | None:
    if eigenvalue is None:
        return None
    return float(np.log(dependency_bound(eigenvalue, depth, kappa)))


class _States(torch.nn.Module):
    """What the core of a model puts out, before the head."""

    def __init__(self, model: SequenceModel) -> None:
        super().__init__()
        self.encoder = model.encoder
        self.core = model.core

    def forward(self, inputs: Tensor) -> Tensor:
        return self.core(self.encoder(inputs))[0]


def _jacobian(model: SequenceModel, task: Task, batch: Batch) -> float | None:
    """Median of ln |dh_T/dh_t| over asked states: a random projection's squared norm is the squared norm on average."""
    states = _States(model)
    generator = torch.Generator().manual_seed(0)
    needed = needed_steps(task, batch)
    logs = []
    for row in range(batch.inputs.shape[1]):
        inputs = batch.inputs[:, row : row + 1]
        asked = needed[batch.mask[:, row], row].numpy()
        squares = []
        for _ in range(DRAWS):
            direction = torch.randn(model.core.hidden_size, generator=generator)  # type: ignore[arg-type]
            reach = probes.gradient_reach(states, inputs, lambda output, _, aim=direction: (output[-1] @ aim).sum())
            # Norms are by distance from the end, the asked states by step.
            squares.append(np.exp(2 * reach.log_norm[::-1][asked]))
        logs.extend(np.log(np.maximum(np.mean(squares, axis=0), np.finfo(float).tiny)) / 2)
    return float(np.median(logs))
