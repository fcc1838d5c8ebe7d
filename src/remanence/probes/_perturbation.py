"""How far back a change of one step is felt in the output: for models without gradients too."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from remanence._validate import message, one_of, positive_int
from remanence.figures import Axis, Curve, Figure, log_axis

from ._result import ProbeResult
from ._steps import HALF, HARDLY, farthest, seen_words
from ._subject import Model, Subject, subject_of

Measure = Literal["total variation", "norm"]
Change = Callable[[Tensor], Tensor]
Effect = Callable[[Sequence[int]], float]
"""Size of the effect if the steps at some distances are changed together."""
DRAWS = 4
ROUNDING = 8.0
"""Multiples of the resolution of floats that rounding alone may reach."""


@dataclasses.dataclass(frozen=True)
class PerturbationReach(ProbeResult):
    """Change of the last output against the distance of the step that was changed.

    Example:
        >>> found = perturbation_reach(lambda x: x.cumsum(dim=0), torch.randn(8, 2, 1))
        >>> found.distance.tolist(), found.horizon
        ([0, 1, 2, 3, 4, 5, 6, 7], 7)
    """

    kind: ClassVar[str] = "perturbation_reach"

    distance: np.ndarray
    """``(K,)``: 0 is the last step."""
    change: np.ndarray
    """``(K,)``: mean over rows and draws."""
    measure: Measure
    """Total variation between output distributions (0: the same, 1: nothing in common), or the norm of a difference."""
    floor: float
    """What rounding alone changes."""

    @property
    def horizon(self) -> int:
        """The greatest distance at which a change moves the output by more than rounding; -1 if none does."""
        return int(self.distance[self.change > self.floor].max(initial=-1))

    def steps_left(self, share: float) -> int:
        """The farthest distance whose change has a share, above 0, of the last step's effect; -1 if none has any."""
        return farthest(self._log_change(), share, self.distance)

    def _log_change(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(np.where(self.change > self.floor, self.change, 0.0))

    @property
    def verdict(self) -> str:
        """How many steps it reacts to, in words, and how much the last one moves the output."""
        if not np.isfinite(self.change).all():
            return "Cannot say how far it reacts: the output is not finite"
        if self.horizon < 0 and self.change.any():
            return f"Cannot say how far it reacts: rounding alone may move the output by {self.floor:.2g}, too"
        if self.horizon < 0:
            return "Reacts to nothing: no change of a step moves the output"
        if self.horizon == 0:
            return f"Reacts to the present step only; it moves the output by {self._moved()}"
        what = "the strongest effect"
        if self.change[0] > self.floor:
            what = "the effect of the last step"
        words = seen_words(self._log_change(), what, "is left", self.distance)
        if self.horizon < int(self.distance[-1]):
            words += f". Beyond {self.horizon} it is rounding"
        if HARDLY * self.change[0] < self.floor < self.change[0]:
            words += f"; rounding hides what is below {100 * self.floor / self.change[0]:.2g} %"
        return f"Reacts to {words}. The last step moves the output by {self._moved()}"

    def _moved(self) -> str:
        return f"{self.change[0]:.3g} in {self.measure}"

    def figures(self) -> list[Figure]:
        """Change against distance, with what rounding reaches; none if the output is not finite."""
        if not np.isfinite(self.change).all():
            return []
        shown = [value or None for value in self.change.tolist()]  # a logarithmic axis has no 0
        curves = [Curve("change of the output", self.distance, shown, "both")]
        if self.floor > 0:
            ends = [int(self.distance[0]), int(self.distance[-1])]
            curves.append(Curve("rounding", ends, [self.floor, self.floor], faint=True))
        y = log_axis(self.measure, [value for value in (*shown, self.floor) if value])
        x = Axis("steps before the end")
        return [Figure("Perturbation reach", self.verdict, tuple(curves), x, y, wide=True)]


def perturbation_reach(
    model: Model,
    batch: object,
    *,
    distances: Sequence[int] | None = None,
    draws: int = DRAWS,
    measure: Literal["auto", "total variation", "norm"] = "auto",
    batch_first: bool | None = None,
    training: bool = False,
    seed: int = 0,
) -> PerturbationReach:
    """Changes one step at a time and measures how far the last output moves: no gradient is needed.

    A token is replaced by another that occurs in the batch. A step of numbers is moved by the difference of two steps
    of the batch, the same for all distances. Not every distance is tried, but none is missed: the steps between two
    distances are changed together, and one of them that matters is searched for by halves.

    Args:
        model: any callable on sequences.
        batch: the input: a tensor ``(T, B, ...)``, a dictionary of tensors, a tuple that starts with either, or
            anything with ``inputs``.
        distances: from the last step, rising; ``None`` for all up to 8, 20 more in equal ratios, and those at which
            half and a hundredth of the effect is left and the last effect ends.
        draws: changes of each step over which the mean is taken.
        measure: ``"total variation"`` takes outputs for logits and compares their distributions; ``"norm"`` compares
            the outputs themselves; ``"auto"`` takes the first for token inputs with an output over classes.
        batch_first: whether time is the second dimension; ``None`` asks the model, or measures it.
        training: whether to keep training mode, with its dropout; by default the model is probed in evaluation mode.
        seed: for the draws.

    Example:
        >>> perturbation_reach(torch.nn.Identity(), torch.randn(9, 1, 2)).horizon
        0
    """
    one_of("measure", measure, ("auto", "total variation", "norm"))
    positive_int("draws", draws)
    subject = subject_of(model, batch, batch_first=batch_first, training=training)
    chosen = _distances(subject.layout.steps, distances)
    generator = torch.Generator().manual_seed(positive_int("seed", seed, 0))
    with subject.untouched(), torch.no_grad():
        base = _last(subject, subject.inputs)
        how = _measure(subject, base, measure)
        changes = _changes(subject, draws, generator)

        def effect(steps: Sequence[int], ways: Sequence[Change] = changes) -> float:
            moved = [_moved(_last(subject, _changed(subject, steps, way)), base, how) for way in ways]
            return float(np.mean(moved))

        floor = max(effect([], changes[:1]), _rounding(base, how, subject.resolution))
        found = {distance: effect([distance]) for distance in chosen}
        if distances is None:
            fill_gaps(found, floor, effect)
    order = sorted(found)
    return PerturbationReach(np.array(order), np.array([found[distance] for distance in order]), how, floor)


def _distances(steps: int, given: Sequence[int] | None) -> list[int]:
    if given is None:
        if steps <= 9:
            return list(range(steps))
        return sorted({*range(9), *np.geomspace(8, steps - 1, 20).round().astype(int).tolist()})
    found = [positive_int("distances", distance, 0) for distance in given]
    if not found or found != sorted(set(found)) or found[-1] >= steps:
        raise ValueError(message("distances", f"rise and stay below {steps}", repr(list(given))))
    return found


def _last(subject: Subject, inputs: Tensor) -> Tensor:
    """The output at the last step: ``(B, C)``; the same random numbers every time."""
    torch.manual_seed(0)
    return subject.by_row(subject.last(subject.output(inputs))).double()


def _measure(subject: Subject, output: Tensor, asked: Literal["auto", "total variation", "norm"]) -> Measure:
    if asked != "auto":
        return asked
    if subject.is_tokens and output.shape[1] > int(subject.inputs.max()):
        return "total variation"
    return "norm"


def _moved(output: Tensor, base: Tensor, measure: Measure) -> float:
    """Mean over rows of the change between two outputs ``(B, C)``."""
    if measure == "norm":
        return float((output - base).norm(dim=1).mean())
    return float((output.softmax(dim=1) - base.softmax(dim=1)).abs().sum(dim=1).mean() / 2)


def _rounding(base: Tensor, measure: Measure, resolution: float) -> float:
    """What rounding alone may change: a norm by its size, a distribution no more than the logits that count in it."""
    if measure == "norm":
        size = float(base.norm(dim=1).mean())
    else:
        size = min(1.0, float((base.softmax(dim=1) * base.abs()).sum(dim=1).mean()))
    if not math.isfinite(size):
        return 0.0
    return ROUNDING * resolution * size


def _changes(subject: Subject, draws: int, generator: torch.Generator) -> list[Change]:
    """Ways to change a step of all rows, ``(B, ...)`` to ``(B, ...)``, whichever step it is."""
    if subject.is_tokens:
        return [_other_tokens(subject.inputs.unique(), generator) for _ in range(draws)]
    return [_moved_step(subject, generator) for _ in range(draws)]


def _other_tokens(known: Tensor, generator: torch.Generator) -> Change:
    """Every token becomes another that occurs in the batch."""
    if len(known) < 2:
        raise ValueError(message("batch", "hold two different tokens", f"only {known.tolist()}"))
    turn = int(torch.randint(1, len(known), (1,), generator=generator))
    return lambda tokens: known[(torch.searchsorted(known, tokens.contiguous()) + turn) % len(known)]


def _moved_step(subject: Subject, generator: torch.Generator) -> Change:
    """A step moves by the difference of two steps of the batch, or by 1 where they do not differ."""
    one, other = torch.randint(subject.layout.steps, (2,), generator=generator).tolist()
    difference = _step(subject.inputs, subject, one) - _step(subject.inputs, subject, other)
    if not bool(difference.any()):
        difference = torch.ones_like(difference)
    return lambda step: step + difference


def _step(inputs: Tensor, subject: Subject, index: int) -> Tensor:
    return inputs.select(subject.layout.time, index)


def _changed(subject: Subject, distances: Sequence[int], change: Change) -> Tensor:
    """The inputs with the steps at some distances from the last one changed."""
    inputs = subject.inputs.clone()
    for distance in distances:
        step = _step(inputs, subject, subject.layout.steps - 1 - distance)
        step.copy_(change(step))
    return inputs


def fill_gaps(found: dict[int, float], floor: float, effect: Effect) -> None:
    """Adds the distances to a table of effects at which something happens between those that it holds.

    An effect up to ``floor`` is none; ``effect`` measures one.

    Example:
        >>> found = {0: 0.0, 4: 0.0, 16: 0.0}
        >>> fill_gaps(found, 0.0, lambda steps: float(7 in steps))
        >>> found[7]
        1.0
    """
    tried = sorted(found)
    for near, far in itertools.pairwise(tried):
        if not found[far] > floor:
            _find_hidden(found, range(near + 1, far), floor, effect)
    reference = found[0]
    if not reference > floor:
        reference = max(found.values())
    for share in (HALF, HARDLY):
        _find_edge(found, max(share * reference, floor), effect)


def _find_hidden(found: dict[int, float], steps: range, floor: float, effect: Effect) -> None:
    """Adds the farthest of some steps that has an effect, if all of them together have one."""
    if not steps or not effect(steps) > floor:
        return
    while len(steps) > 1:
        middle = len(steps) // 2
        farther = steps[middle:]
        if effect(farther) > floor:
            steps = farther
        else:
            steps = steps[:middle]
    found[steps[0]] = effect(steps)


def _find_edge(found: dict[int, float], limit: float, effect: Effect) -> None:
    """Halves the gap behind the farthest distance with so much effect, until there is none."""
    enough = [distance for distance, size in found.items() if size >= limit]
    if not enough:
        return
    near = max(enough)
    far = min((distance for distance in found if distance > near), default=near)
    while far - near > 1:
        middle = (near + far) // 2
        found[middle] = effect([middle])
        if found[middle] >= limit:
            near = middle
        else:
            far = middle
