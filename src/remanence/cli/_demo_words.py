"""What the demo says at its end: from the numbers, and never more than they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SOLVED = 0.99
FAR_FROM_SOLVED = 0.5

CAVEAT = (
    "One seed of one small task: a demonstration, not a benchmark; docs/results-training.md has several seeds, larger "
    "budgets and another task."
)


@dataclass(frozen=True)
class Result:
    """One contender at the end.

    Args:
        label: what the tables call it.
        run: its run folder.
        has_memory: whether it keeps past states.
        accuracy: share of symbols recalled at the length of the training, on test sequences.
        far_accuracy: at a length that it was not trained for.
        updates: batches that it learnt from.
        seconds: of training.
        state_bytes: what is carried from step to step for one sequence.
        parameters: numbers that were trained.

    Example:
        >>> Result("RelRNN", Path("runs/a"), True, 0.995, 0.99, 3000, 60.0, 16000, 1000).solved
        True
    """

    label: str
    run: Path
    has_memory: bool
    accuracy: float
    far_accuracy: float
    updates: int
    seconds: float
    state_bytes: int
    parameters: int

    @property
    def solved(self) -> bool:
        """Whether it recalls 99 % at the length of the training."""
        return self.accuracy >= SOLVED


def percent(share: float) -> str:
    """A share in per cent.

    Example:
        >>> percent(0.125), percent(0.9)
        ('12.5 %', '90 %')
    """
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def conclusion(results: Sequence[Result], length: int, far: int, chance: float) -> str:
    """The demo in plain words.

    Args:
        results: of all contenders.
        length: of the training.
        far: of the second test.
        chance: accuracy of a guess.

    Returns:
        Sentences, a line each contender.

    Example:
        >>> rows = [Result("RelRNN", Path("a"), True, 1.0, 0.98, 3000, 90.0, 1, 1)]
        >>> print(conclusion(rows, 100, 5000, 0.125).splitlines()[0])
        RelRNN solved it: 100 % of the symbols at T = 100, after 3,000 updates in 1.5 minutes. At T = 5,000, ...
    """
    lines = [_sentence(result, length, far, chance) for result in results]
    return "\n".join([*lines, _verdict(results), CAVEAT])


def _sentence(result: Result, length: int, far: int, chance: float) -> str:
    share = percent(result.accuracy)
    effort = f"{result.updates:,} updates in {result.seconds / 60:.1f} minutes"
    if not result.solved:
        return f"{result.label} did not: {share} at T = {length:,} after {effort}; a guess gets {percent(chance)}."
    beyond = f"At T = {far:,}, for which it was never trained, it recalls {percent(result.far_accuracy)}."
    return f"{result.label} solved it: {share} of the symbols at T = {length:,}, after {effort}. {beyond}"


def _verdict(results: Sequence[Result]) -> str:
    """Says whether the memory made a difference here: only if all that solved it have one and the others are far."""
    with_memory = [result for result in results if result.has_memory and result.solved]
    without = [result for result in results if not result.has_memory]
    if not with_memory:
        return "No model with a memory reached 99 % in time: from this seed the demonstration did not succeed."
    if any(result.solved for result in without):
        return "A model without a memory reached 99 % as well: from this seed the two kinds are not told apart."
    best = max((result.accuracy for result in without), default=0.0)
    if best >= FAR_FROM_SOLVED:
        return f"Only models with a memory reached 99 %, but one without came to {percent(best)} and may follow."
    return "Within these updates only models with a memory learnt the task."
