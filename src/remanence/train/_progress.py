"""The progress of a run, apart from weights: plain numbers, saved with every checkpoint."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from remanence.runs import Values
from remanence.train._config import BudgetConfig, CurriculumConfig, RunConfig

ACCURACY_REACHED = "accuracy reached"
"""Why a run is over that has held the accuracy of its budget."""
LOSS_REACHED = "loss reached"
"""Why a run is over that has held the loss of its budget, where no accuracy is asked for."""


@dataclass
class Progress:
    """The counters of a run.

    Args:
        update: batches learnt from so far.
        seconds: time spent learning, over all processes that this run has had one after the other.
        cpu_seconds: of it, time that a processor worked, all threads together.
        best: best validation metric, None before the first evaluation.
        best_update: when it was reached.
        without_gain: evaluations since then.
        held: evaluations in a row that have reached the accuracy or loss at which the run may stop.
        waiting: evaluations without gain since the plateau last acted.
        plateau_drops: how often it has acted.
        length: present length of a curriculum, None without one.
        window: last training accuracies at this length.
        sums: of loss, accuracy, gradient norm and batches since the last line of training metrics.
        validation: the last evaluation.

    Example:
        >>> Progress.from_dict(Progress(update=3).to_dict()).update
        3
    """

    update: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    best: float | None = None
    best_update: int = 0
    without_gain: int = 0
    held: int = 0
    waiting: int = 0
    plateau_drops: int = 0
    length: int | None = None
    window: list[float] = field(default_factory=list)
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])
    validation: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> Values:
        """All of it, for a checkpoint."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Values) -> Progress:
        """What :meth:`to_dict` gave."""
        return cls(**values)

    def add(self, loss: float, accuracy: float, norm: float) -> None:
        """Counts one batch."""
        self.sums = [old + new for old, new in zip(self.sums, (loss, accuracy, norm, 1.0), strict=True)]

    def take_means(self) -> dict[str, float]:
        """Means since the last call."""
        loss, accuracy, norm, count = self.sums
        self.sums = [0.0] * 4
        return {"loss": loss / count, "accuracy": accuracy / count, "gradient_norm": norm / count}

    def judge(self, validation: dict[str, float], config: RunConfig) -> bool:
        """Takes in an evaluation, and says whether it is the best so far."""
        self.validation = validation
        value = validation[config.evaluation.metric]
        sign = config.evaluation.sign
        gain = self.best is None or sign * value > sign * self.best
        if gain:
            self.best = value
            self.best_update = self.update
            self.without_gain = 0
            self.waiting = 0
        else:
            self.without_gain += 1
            self.waiting += 1
        self.held += 1
        if not _is_enough(validation, config.budget):
            self.held = 0
        if self.waiting > config.schedule.patience:
            self.waiting = 0
            self.plateau_drops += 1
        return gain

    def grow(self, accuracy: float, config: CurriculumConfig, final: int) -> bool:
        """Lets the length grow if recent accuracy allows, and says whether it has grown."""
        if self.length is None or self.length >= final:
            return False
        self.window = [*self.window, accuracy][-config.window :]
        if len(self.window) < config.window or sum(self.window) / config.window < config.accuracy:
            return False
        self.length = min(final, max(self.length + 1, round(self.length * config.growth)))
        self.window = []
        return True


def _is_enough(validation: dict[str, float], budget: BudgetConfig) -> bool:
    """Whether an evaluation reaches all that the run may stop at; False if there is nothing to reach."""
    if budget.accuracy is None and budget.loss is None:
        return False
    if budget.accuracy is not None and validation.get("accuracy", 0.0) < budget.accuracy:
        return False
    return budget.loss is None or validation["loss"] <= budget.loss


def stop_reason(progress: Progress, config: RunConfig) -> str | None:
    """Why a run should stop before its budget is used up, None if it should not.

    Example:
        >>> config = RunConfig(budget=BudgetConfig(accuracy=0.9))
        >>> stop_reason(Progress(held=1), config)
        'accuracy reached'
    """
    budget = config.budget
    if budget.accuracy is not None and progress.held >= budget.hold:
        return ACCURACY_REACHED
    if budget.loss is not None and progress.held >= budget.hold:
        return LOSS_REACHED
    if budget.patience is not None and progress.without_gain >= budget.patience:
        return "no gain"
    return None
