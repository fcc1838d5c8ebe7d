"""Settings of the optimiser, and of how its learning rate changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from remanence._validate import boolean, message, one_of, positive_int, probability, real

OptimiserName = Literal["sgd", "rmsprop", "adam", "adamw"]
MomentumForm = Literal["sum", "average"]
ScheduleName = Literal["constant", "inverse", "cosine", "plateau"]


@dataclass(frozen=True)
class OptimiserConfig:
    """The optimiser and its settings.

    There are two kinds of weight decay. `l2` and `embedding_l2` add ``l2 * parameter`` to the gradient, so an adaptive
    optimiser rescales them. `decoupled_decay` shrinks parameters by ``learning_rate * decoupled_decay``, independently
    of their gradients (AdamW).

    Args:
        name: ``"sgd"``, ``"rmsprop"``, ``"adam"`` (with `l2`) or ``"adamw"`` (with `decoupled_decay`).
        learning_rate: for all parameters except the orthogonal ones.
        orthogonal_learning_rate: for orthogonal parameters (ExpRNN, GORU); None is a tenth of `learning_rate`.
        momentum: momentum of SGD.
        momentum_form: ``"sum"``, ``v = momentum v + g``, or ``"average"``, ``v = momentum v + (1 - momentum) g``.
        bias_correction: divide the running average by ``1 - momentum ** t``; for ``"average"`` only.
        smoothing: decay rate of RMSprop's mean square.
        betas: decay rates of Adam's averages.
        epsilon: added to the denominator of RMSprop and Adam.
        l2: L2 penalty on all parameters, added to the gradient.
        embedding_l2: L2 penalty on embeddings, in place of `l2`; None uses `l2`.
        decoupled_decay: weight decay apart from the gradient, as in AdamW.

    Example:
        >>> OptimiserConfig("adamw", l2=0.1)
        Traceback (most recent call last):
        ValueError: `optimiser.l2` must be 0 with 'adamw', which has decoupled decay; got 0.1. Use ...
    """

    name: OptimiserName = "adam"
    learning_rate: float = 1e-3
    orthogonal_learning_rate: float | None = None
    momentum: float = 0.0
    momentum_form: MomentumForm = "sum"
    bias_correction: bool = False
    smoothing: float = 0.99
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    l2: float = 0.0
    embedding_l2: float | None = None
    decoupled_decay: float = 0.0

    def __post_init__(self) -> None:
        one_of("optimiser.name", self.name, ("sgd", "rmsprop", "adam", "adamw"))
        one_of("optimiser.momentum_form", self.momentum_form, ("sum", "average"))
        boolean("optimiser.bias_correction", self.bias_correction)
        real("optimiser.learning_rate", self.learning_rate, above=0.0)
        if self.orthogonal_learning_rate is not None:
            real("optimiser.orthogonal_learning_rate", self.orthogonal_learning_rate, above=0.0)
        for name in ("momentum", "smoothing"):
            real(f"optimiser.{name}", getattr(self, name), least=0.0, below=1.0)
        real("optimiser.epsilon", self.epsilon, above=0.0)
        for name in ("l2", "embedding_l2", "decoupled_decay"):
            real(f"optimiser.{name}", getattr(self, name) or 0.0, least=0.0)
        if not isinstance(self.betas, tuple) or len(self.betas) != 2:
            raise ValueError(message("optimiser.betas", "be two numbers", repr(self.betas)))
        for beta in self.betas:
            real("optimiser.betas", beta, least=0.0, below=1.0)
        self._check_combinations()

    def _check_combinations(self) -> None:
        if self.name == "adamw" and (self.l2 or self.embedding_l2):
            expected = "be 0 with 'adamw', which has decoupled decay"
            hint = "Use `decoupled_decay`, or 'adam' with `l2`"
            raise ValueError(message("optimiser.l2", expected, self.l2 or self.embedding_l2, hint))
        if self.name == "adam" and self.decoupled_decay:
            hint = "Use 'adamw', or `l2`"
            raise ValueError(message("optimiser.decoupled_decay", "be 0 with 'adam'", self.decoupled_decay, hint))
        if self.momentum and self.name != "sgd":
            raise ValueError(message("optimiser.momentum", f"be 0 with {self.name!r}", self.momentum, "Use 'sgd'"))
        if self.bias_correction and self.momentum_form != "average":
            expected = "be False unless momentum_form is 'average'"
            raise ValueError(message("optimiser.bias_correction", expected, True))


@dataclass(frozen=True)
class ScheduleConfig:
    """The learning rate schedule; updates t are counted from 0.

    Args:
        name: ``"constant"``; ``"inverse"``, ``1 / (1 + t / period)``, which is 1/t with period 1; ``"cosine"``, half a
            wave down to `fraction` over `period` updates; ``"plateau"``, times `factor` after `patience` evaluations
            without improvement.
        period: in updates; None is 1 for ``"inverse"`` and the whole budget for ``"cosine"``.
        fraction: of the initial rate at the end of the cosine.
        factor: by which the rate is multiplied on a plateau.
        patience: evaluations without improvement before the rate drops.

    Example:
        >>> ScheduleConfig("cosine", fraction=1 / 32).name
        'cosine'
    """

    name: ScheduleName = "constant"
    period: int | None = None
    fraction: float = 0.0
    factor: float = 0.25
    patience: int = 0

    def __post_init__(self) -> None:
        one_of("schedule.name", self.name, ("constant", "inverse", "cosine", "plateau"))
        if self.period is not None:
            positive_int("schedule.period", self.period)
        probability("schedule.fraction", self.fraction)
        real("schedule.factor", self.factor, above=0.0, below=1.0)
        positive_int("schedule.patience", self.patience, minimum=0)
