"""How many reads and Jacobians lie between two steps."""

from __future__ import annotations

import dataclasses
import heapq
import math
from typing import Any, ClassVar

import numpy as np

from remanence._validate import message, positive_int, real
from remanence.figures import Axis, Curve, Figure, to_plotly

from ._attention import AttentionMap
from ._reach import GradientReach
from ._result import ProbeResult


@dataclasses.dataclass(frozen=True)
class DependencyDepth(ProbeResult):
    """The least number of Jacobians from every step to the last, over reads and recurrent edges.

    Example:
        >>> weights = np.zeros((5, 5))
        >>> weights[4, 1] = 0.5
        >>> dependency_depth(weights, threshold=0.1).depth.tolist()
        [1, 0, 2, 1, 0]
    """

    kind: ClassVar[str] = "dependency_depth"

    depth: np.ndarray
    """``(T,)`` int64: Jacobians from step t to the last; reads are at most one more. -1 where the product of weights
    cannot stay above the threshold."""
    weight: np.ndarray
    """``(T,)``: the greatest product of attention weights at that depth."""
    threshold: float
    kappa: int
    """Most states that one step attends to."""

    @property
    def verdict(self) -> str:
        """Greatest and typical depth, and kappa."""
        reached = self.depth[self.depth >= 0]
        greatest = int(reached.max(initial=0))
        middle = math.nan
        if len(reached):
            middle = float(np.median(reached))
        share = f"{len(reached)} of {len(self.depth)} steps"
        return f"depth at most {greatest}, median {middle:g}, over {share}; kappa {self.kappa}"

    def bound(self, eigenvalue: float) -> np.ndarray:
        """``lambda^d kappa^-(d+1)`` for every step, to plot with gradients; it proves nothing about trained ones."""
        real("eigenvalue", eigenvalue, above=0)
        depth = self.depth.astype(float)
        return np.where(self.depth >= 0, eigenvalue**depth * max(self.kappa, 1) ** -(depth + 1), 0.0)

    def figures(self) -> list[Figure]:
        """Depth against distance from the end."""
        depth = [int(value) if value >= 0 else None for value in self.depth[::-1]]
        curve = Curve("depth", range(len(depth)), depth)
        axes = (Axis("steps before the end"), Axis("Jacobians on the shortest way"))
        return [Figure("Dependency depth", self.verdict, (curve,), *axes)]

    def plot_beside(self, reach: GradientReach, eigenvalue: float) -> Any:
        """The bound for a recurrent matrix's eigenvalue, and a measured gradient, both in natural logarithms."""
        if len(reach.distance) != len(self.depth):
            raise ValueError(message("reach", f"have {len(self.depth)} steps", str(len(reach.distance))))
        with np.errstate(divide="ignore"):
            bound = np.log(self.bound(eigenvalue)[::-1])
        curves = (Curve("measured", reach.distance, reach.log_norm), Curve("bound", reach.distance, bound))
        axes = (Axis("steps before the end"), Axis("ln |gradient|"))
        return to_plotly([Figure("Gradient and bound", self.verdict, curves, *axes)])


def dependency_depth(attention: object, threshold: float = 1e-3, *, last: int | None = None) -> DependencyDepth:
    """Finds, exactly, the fewest Jacobians from each step to the last whose weights multiply to at least a threshold.

    A way goes from h_t to the last macro-state. It enters a macro-state over a read (its weight counts) or over
    ``s = h + c`` itself (weight 1), and goes on to the next step's state over one Jacobian (weight 1). Every step is
    settled in the order of its depth, best weight first, so sparse attention takes near-linear time.

    Args:
        attention: ``(T, T)`` weights, rows are readers; an :class:`AttentionMap` of one sequence (the mean over several
            has ways that lead through all of them), of which the first map is taken; or a pair of ``(T, K)`` arrays,
            the steps that each step reads (-1 for none) and their weights, as a layer's trace has them for one row:
            nothing of size ``T * T`` is then made.
        threshold: least product of weights that counts.
        last: the end of the ways; ``None`` is the last step.

    Example:
        >>> dependency_depth(np.eye(4)).depth.tolist()
        [3, 2, 1, 0]
    """
    real("threshold", threshold, above=0, most=1)
    if isinstance(attention, tuple):
        reads = _listed(*attention)
    else:
        reads = _dense(attention)
    if last is None:
        last = len(reads) - 1
    depth, best = _search(reads, positive_int("last", last, minimum=0), threshold)
    return DependencyDepth(depth, best, threshold, max((len(row) for row in reads), default=0))


def _dense(attention: object) -> list[list[tuple[int, float]]]:
    """What each step reads, from a matrix."""
    if isinstance(attention, AttentionMap):
        if not attention.maps:
            hint = "A model without attention has one way of t' - t Jacobians between two steps"
            raise ValueError(message("attention", "hold a map", "a result without any", hint))
        attention = attention.maps[0]
    weights = np.asarray(attention, dtype=float)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(message("attention", "have shape (T, T)", str(weights.shape)))
    return [[(int(j), float(row[j])) for j in np.flatnonzero(row) if j <= t] for t, row in enumerate(weights)]


def _listed(steps: object, weights: object) -> list[list[tuple[int, float]]]:
    """What each step reads, from lists of steps and weights; a step that stands in two slots counts with both."""
    places = np.asarray(steps)
    shares = np.asarray(weights, dtype=float)
    if places.ndim != 2 or places.shape != shares.shape:
        raise ValueError(message("attention", "be two arrays (T, K)", f"{places.shape} and {shares.shape}"))
    reads = []
    for t, (row, values) in enumerate(zip(places.tolist(), shares.tolist(), strict=True)):
        found: dict[int, float] = {}
        for step, share in zip(row, values, strict=True):
            if 0 <= step <= t and share:
                found[step] = found.get(step, 0.0) + share
        reads.append(list(found.items()))
    return reads


def _search(reads: list[list[tuple[int, float]]], end: int, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """From the end backwards over states: a state at depth d offers its reads' states at d + 1.

    Per depth only the best weight of a state matters, and a greater depth only with a greater weight.
    """
    depth = np.full(len(reads), -1)
    best = np.zeros(len(reads))
    greatest = np.zeros(len(reads))
    queue: list[tuple[int, float, int]] = []

    def offer(macro: int, jacobians: int, weight: float) -> None:
        for state, share in [*reads[macro], (macro, 1.0)]:
            # Rounding lets a softmax, and a step in two slots, add up to a little more than 1.
            product = weight * min(share, 1.0)
            if product >= threshold and product > greatest[state]:
                heapq.heappush(queue, (jacobians, -product, state))

    offer(end, 0, 1.0)
    while queue:
        jacobians, negative, state = heapq.heappop(queue)
        weight = -negative
        if weight <= greatest[state]:
            continue
        greatest[state] = weight
        if depth[state] < 0:
            depth[state] = jacobians
            best[state] = weight
        if state:
            offer(state - 1, jacobians + 1, weight)
    return depth, best
