"""Several policies compared: what each gets, and whether its memory makes the difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, variance
from typing import ClassVar, NamedTuple

from remanence._statistics import student
from remanence._wording import enumerated
from remanence.runs import Result, Values

NO_MEMORY = "none"
"""Name of the same network whose core is reset at every step."""
COMPARISON = "policies.json"
"""File of a comparison, beside the runs."""
COMPARED = "here"
"""What the environment of a comparison is called in the measurements of its policies."""


class Gain(NamedTuple):
    """How much higher a policy's return is with its memory than without, over seeds.

    Args:
        mean: difference of the mean returns.
        low: end of its 95 % interval.
        high: other end; the interval is infinite where there is only one seed.

    Example:
        >>> str(Gain(0.5, 0.4, 0.6))
        '+0.50 (+0.40 to +0.60)'
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        if not math.isfinite(self.low):
            return f"{self.mean:+.2f} (one seed, no interval)"
        return f"{self.mean:+.2f} ({self.low:+.2f} to {self.high:+.2f})"


def gain(having: Sequence[float], without: Sequence[float]) -> Gain:
    """The difference of two means, with a 95 % interval over the seeds.

    The interval is Welch's, with the degrees of freedom of the smaller group, and so rather too wide than too narrow.

    Example:
        >>> str(gain([0.9, 1.0, 0.95], [0.5, 0.45, 0.55]))
        '+0.45 (+0.27 to +0.63)'
    """
    mean = fmean(having) - fmean(without)
    fewest = min(len(having), len(without))
    if fewest < 2:
        return Gain(mean, -math.inf, math.inf)
    reach = student(fewest - 1) * math.sqrt(sum(variance(group) / len(group) for group in (having, without)))
    return Gain(mean, mean - reach, mean + reach)


@dataclass(frozen=True)
class PolicyComparison(Result):
    """Returns of several policies in new episodes; it is stored as ``policies.json`` next to their runs.

    Args:
        environment: where they were trained and play.
        frames: frames that each was trained for.
        episodes: episodes that each plays after training.
        returns: mean return in new episodes by model, one number per seed; ``"none"`` is without memory.
        command: the command that made it.

    Example:
        >>> found = PolicyComparison("TMaze", 1000, 10, {"LSTM": [0.9, 1.0], "none": [0.4, 0.6]})
        >>> found.rows[0]
        {'model': 'LSTM', 'seeds': 2, 'mean': 0.95, 'least': 0.9, 'most': 1.0}
        >>> found.needs_memory, str(found.gains["LSTM"])
        (None, '+0.45 (-0.97 to +1.87)')
    """

    kind: ClassVar[str] = "policy-comparison"

    environment: str
    frames: int
    episodes: int
    returns: dict[str, list[float]]
    command: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[Values]:
        """One row per model: its seeds, and the mean, least and greatest of their returns."""
        return [
            {"model": model, "seeds": len(found), "mean": fmean(found), "least": min(found), "most": max(found)}
            for model, found in self.returns.items()
            if found
        ]

    @property
    def learnt(self) -> list[str]:
        """The models of which every seed gets more than the best seed without memory."""
        without = max(self.returns.get(NO_MEMORY) or [float("inf")])
        return [model for model, found in self.returns.items() if found and min(found) > without]

    @property
    def gains(self) -> dict[str, Gain]:
        """How much more each model gets than the network without memory; empty without that network."""
        without = self.returns.get(NO_MEMORY)
        if not without:
            return {}
        return {model: gain(found, without) for model, found in self.returns.items() if found and model != NO_MEMORY}

    @property
    def needs_memory(self) -> bool | None:
        """True if some model gets more with its memory, interval and all.

        None if that is not shown: what nobody has learned within the budget may still need a memory.
        """
        return any(gained.low > 0 for gained in self.gains.values()) or None

    @property
    def verdict(self) -> str:
        """Whether memory is needed, and the difference that it makes to each model."""
        shown = f"is not shown to need memory within {self.frames:,} frames"
        if self.needs_memory:
            shown = "needs memory"
        gains = ", ".join(f"{model} {gained}" for model, gained in self.gains.items())
        return f"{self.environment} {shown}; return with memory less without, 95 % interval over seeds: {gains}."

    @property
    def sentences(self) -> list[str]:
        """Whether memory is needed, who learned to use one, and what the same network gets without one."""
        without = self.returns.get(NO_MEMORY)
        if not without:
            return [f"Without the model {NO_MEMORY!r} nothing shows whether {self.environment} needs memory."]
        said = []
        if self.gains:
            said = [self.verdict, *self._about_learners()]
        spread = ""
        if len(without) > 1:
            spread = f" ({min(without):.2f} to {max(without):.2f})"
        said.append(f"Without memory the same network gets {fmean(without):.2f}{spread}.")
        return said

    def _about_learners(self) -> list[str]:
        others = [model for model, found in self.returns.items() if found and model not in (*self.learnt, NO_MEMORY)]
        budget = f"{self.frames:,} frames"
        if not self.learnt:
            told = f"No model gets more than the same network without memory in {self.environment}, seed by seed"
            return [f"{told}: the task needs no memory, or {budget} are too few."]
        if not self.needs_memory:
            told = f"Every seed of {enumerated(self.learnt)} gets more than the best one without memory"
            return [f"{told}. So few seeds do not rule out luck; take more (--seeds 5)."]
        its = "their"
        if len(self.learnt) == 1:
            its = "its"
        told = f"{enumerated(self.learnt)} learned to use {its} memory in {self.environment}"
        said = [f"{told}: every seed gets more than the best one without memory."]
        if others:
            said.append(f"{enumerated(others)} did not, within {budget}.")
        return said
