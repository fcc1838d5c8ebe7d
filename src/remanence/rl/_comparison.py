"""Several policies side by side: what each gets, and whether it is its memory that gets it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, ClassVar

from remanence.runs import Result

NO_MEMORY = "none"
"""Name of the same network whose core starts afresh at every step."""


@dataclass(frozen=True)
class PolicyComparison(Result):
    """What several policies get in new episodes; it lies as ``policies.json`` beside their runs.

    Args:
        environment: where they were trained and play.
        frames: that each was trained for.
        episodes: that each plays after training.
        returns: of each model, the mean return in new episodes, one number a seed; ``"none"`` is without memory.
        command: that made it.

    Example:
        >>> found = PolicyComparison("TMaze", 1000, 10, {"LSTM": [0.9, 1.0], "none": [0.4, 0.6]})
        >>> found.rows[0]
        {'model': 'LSTM', 'seeds': 2, 'mean': 0.95, 'least': 0.9, 'most': 1.0}
        >>> found.sentences[0]
        'LSTM learned to use its memory in TMaze: every seed gets more than the best one without memory.'
    """

    kind: ClassVar[str] = "policy-comparison"

    environment: str
    frames: int
    episodes: int
    returns: dict[str, list[float]]
    command: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row a model: its seeds, and mean, least and greatest of their returns."""
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
    def sentences(self) -> list[str]:
        """Who learned to use a memory, and what the same network gets without one."""
        without = self.returns.get(NO_MEMORY)
        if not without:
            return [f"Without the model {NO_MEMORY!r} nothing shows whether {self.environment} needs memory."]
        said = self._about_learners()
        spread = f" ({min(without):.2f} to {max(without):.2f})" if len(without) > 1 else ""
        said.append(f"Without memory the same network gets {fmean(without):.2f}{spread}.")
        return said

    def _about_learners(self) -> list[str]:
        others = [model for model, found in self.returns.items() if found and model not in (*self.learnt, NO_MEMORY)]
        budget = f"{self.frames:,} frames"
        if not self.learnt:
            told = f"No model gets more than the same network without memory in {self.environment}, seed by seed"
            return [f"{told}: the task needs no memory, or {budget} are too few."]
        its = "its" if len(self.learnt) == 1 else "their"
        told = f"{listed(self.learnt)} learned to use {its} memory in {self.environment}"
        said = [f"{told}: every seed gets more than the best one without memory."]
        if others:
            said.append(f"{listed(others)} did not, within {budget}.")
        return said


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    Example:
        >>> listed(["LSTM", "GRU", "RNN"])
        'LSTM, GRU and RNN'
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
