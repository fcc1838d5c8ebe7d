"""What a run is: typed, frozen, and complete, from TOML files, tables and single settings; stored with every run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from remanence._validate import MOST_THREADS, dimension, message, one_of, positive_int, probability, real
from remanence.runs import Settings, Values, digest_of, read_table, settings_table, with_table
from remanence.train._optimiser_config import OptimiserConfig, ScheduleConfig

Precision = Literal["float32", "float64", "bfloat16"]
Metric = Literal["loss", "accuracy"]


@dataclass(frozen=True)
class TaskConfig:
    """The task by its name.

    Args:
        name: one of :func:`remanence.tasks.list_tasks`.
        options: fields of the task's recipe.
        batch_size: rows of a batch, B.

    Example:
        >>> TaskConfig("copy", {"length": 50}).batch_size
        10
    """

    name: str = "copy"
    options: Values = field(default_factory=dict)
    batch_size: int = 10

    def __post_init__(self) -> None:
        dimension("task.batch_size", self.batch_size)


@dataclass(frozen=True)
class ModelConfig:
    """The model by its name.

    Args:
        name: one of :func:`remanence.nn.list_models`.
        options: of :class:`remanence.nn.SequenceModel` and of the core, such as ``hidden_size`` (default 128);
            ``cuts`` may be a table, ``{truncate = 10}`` or ``{h_detach = 0.25}``.

    Example:
        >>> ModelConfig("RelRNN", {"hidden_size": 64}).name
        'RelRNN'
    """

    name: str = "LSTM"
    options: Values = field(default_factory=dict)


@dataclass(frozen=True)
class BudgetConfig:
    """How long to train, and when to stop early.

    Args:
        updates: number of training batches; None uses `epochs`.
        epochs: passes over the data, for tasks with finite data.
        accuracy: stop at this validation accuracy; None does not.
        loss: stop at this validation loss; None does not. With `accuracy` as well, both must be reached.
        hold: consecutive evaluations that must reach them.
        patience: stop after this many evaluations without improvement; None does not.

    Example:
        >>> BudgetConfig(updates=100, accuracy=0.99).updates
        100
    """

    updates: int | None = 1000
    epochs: int | None = None
    accuracy: float | None = None
    loss: float | None = None
    hold: int = 1
    patience: int | None = None

    def __post_init__(self) -> None:
        positive_int("budget.hold", self.hold)
        if (self.updates is None) == (self.epochs is None):
            expected = 'be given, or `budget.epochs`, and not both (updates = "none" makes room for epochs)'
            raise ValueError(message("budget.updates", expected, f"{self.updates} and epochs {self.epochs}"))
        if self.updates is not None:
            positive_int("budget.updates", self.updates)
        if self.epochs is not None:
            positive_int("budget.epochs", self.epochs)
        if self.accuracy is not None:
            probability("budget.accuracy", self.accuracy)
        if self.loss is not None:
            real("budget.loss", self.loss)
        if self.patience is not None:
            positive_int("budget.patience", self.patience)


@dataclass(frozen=True)
class LoopConfig:
    """How batches become updates.

    Args:
        clip_norm: maximum norm of the whole gradient; None does not clip.
        clip_value: maximum absolute value of its entries; None does not clip.
        accumulate: parts that the rows of a batch are split into. Memory use is that of one part, the gradient
            that of the whole batch.
        truncate: update after this many steps of a batch, and carry the state on without its gradient (truncated
            backpropagation); None uses the whole sequence.
        precision: ``"float32"``, ``"float64"``, or ``"bfloat16"`` for mixed precision where the device supports it.
        device: torch device of the model.
        threads: number of torch threads.
        log_every: updates between two lines of training metrics.
        save_every: updates between two checkpoints.

    Example:
        >>> LoopConfig(clip_norm=1.0).accumulate
        1
    """

    clip_norm: float | None = 1.0
    clip_value: float | None = None
    accumulate: int = 1
    truncate: int | None = None
    precision: Precision = "float32"
    device: str = "cpu"
    threads: int = 1
    log_every: int = 50
    save_every: int = 500

    def __post_init__(self) -> None:
        for name in ("clip_norm", "clip_value"):
            if getattr(self, name) is not None:
                real(f"loop.{name}", getattr(self, name), above=0.0)
        if self.clip_norm is not None and self.clip_value is not None:
            expected = "be absent with `loop.clip_norm`"
            raise ValueError(message("loop.clip_value", expected, self.clip_value, 'Set loop.clip_norm = "none"'))
        for name in ("accumulate", "log_every", "save_every"):
            positive_int(f"loop.{name}", getattr(self, name))
        positive_int("loop.threads", self.threads, maximum=MOST_THREADS)
        if self.truncate is not None:
            positive_int("loop.truncate", self.truncate)
        one_of("loop.precision", self.precision, ("float32", "float64", "bfloat16"))


@dataclass(frozen=True)
class EvaluationConfig:
    """How a model is evaluated during training, always on the same batches.

    Args:
        every: updates between two evaluations.
        batches: batches per evaluation; 0 is one epoch, for tasks with finite data.
        batch_size: sequences per evaluation batch.
        seed: seed of the evaluation batches, independent of the run's seed.
        metric: selects the best weights: ``"loss"`` or ``"accuracy"``.

    Example:
        >>> EvaluationConfig(batches=0).metric
        'loss'
    """

    every: int = 500
    batches: int = 10
    batch_size: int = 100
    seed: int = 0
    metric: Metric = "loss"

    def __post_init__(self) -> None:
        positive_int("evaluation.every", self.every)
        positive_int("evaluation.batches", self.batches, minimum=0)
        dimension("evaluation.batch_size", self.batch_size)
        positive_int("evaluation.seed", self.seed, minimum=0)
        one_of("evaluation.metric", self.metric, ("loss", "accuracy"))

    @property
    def sign(self) -> int:
        """What a value of the metric is multiplied by, so that more is better."""
        return {"accuracy": 1, "loss": -1}[self.metric]


@dataclass(frozen=True)
class CurriculumConfig:
    """A curriculum: short sequences first, longer ones as accuracy grows.

    Args:
        start: length to begin with; None trains at the task's own length throughout.
        growth: factor to the next length, up to the task's own.
        accuracy: mean training accuracy over `window` batches at which the length grows.
        window: number of batches in this mean; every length gets at least this many.

    Example:
        >>> CurriculumConfig(start=10).growth
        1.5
    """

    start: int | None = None
    growth: float = 1.5
    accuracy: float = 0.95
    window: int = 50

    def __post_init__(self) -> None:
        if self.start is not None:
            positive_int("curriculum.start", self.start)
        real("curriculum.growth", self.growth, above=1.0)
        probability("curriculum.accuracy", self.accuracy)
        positive_int("curriculum.window", self.window)


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run; two runs of one configuration end with the same weights.

    Args:
        task: what is learnt.
        model: what learns.
        optimiser: how parameters move.
        schedule: how learning rates change.
        budget: how long it takes.
        loop: how batches become updates.
        evaluation: how the model is judged.
        curriculum: how the length grows.
        seed: seed for weights, batches and dropout.
        imports: modules, or paths of Python files, that are imported first; users' own tasks are registered there.
        label: what tables and pages call the model; empty is its name. It decides nothing: two configurations that
            differ in it alone are equal.

    Example:
        >>> RunConfig(task=TaskConfig("denoise"), seed=3).task.name
        'denoise'
    """

    task: TaskConfig = field(default_factory=TaskConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    seed: int = 0
    imports: tuple[str, ...] = ()
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        positive_int("seed", self.seed, minimum=0)

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that name this configuration, so that the same command finds the same run again."""
        return digest_of({name: value for name, value in asdict(self).items() if name != "label"})


def read_config(path: str | Path) -> RunConfig:
    r"""Reads a configuration; what it does not name keeps its default.

    Raises:
        ValueError: If a key is unknown (the nearest is proposed) or a value is of the wrong kind.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "config.toml"
        ...     _ = path.write_text('[task]\nname = "denoise"')
        ...     read_config(path).task.name
        'denoise'
    """
    return config_from(read_table(path))


def config_from(table: Settings, base: RunConfig | None = None) -> RunConfig:
    """Makes a configuration out of nested tables; a key that is unknown or a value that is refused is a ValueError.

    Args:
        table: Keys as in :class:`RunConfig`; ``"none"`` stands for None.
        base: What to change; None changes the defaults.

    Example:
        >>> config_from({"optimizer": {}})
        Traceback (most recent call last):
        ValueError: `key` must be one of 'task', ...; got 'optimizer'. Did you mean 'optimiser'?
    """
    return with_table(base or RunConfig(), table)


def with_settings(config: RunConfig, settings: Iterable[str]) -> RunConfig:
    """Changes single keys, written as on the command line.

    Args:
        config: What to change.
        settings: ``"section.key=value"``; the value is TOML, and a bare word is a string.

    Raises:
        ValueError: If a setting has no ``=``, names an unknown key, or has a wrong value.

    Example:
        >>> config = with_settings(RunConfig(), ["optimiser.learning_rate=0.01", "task.name=denoise"])
        >>> config.optimiser.learning_rate, config.task.name
        (0.01, 'denoise')
        >>> with_settings(RunConfig(), ["optimiser.learning_rat=0.01"])
        Traceback (most recent call last):
        ValueError: `key of [optimiser]` must be one of ...; got 'learning_rat'. Did you mean 'learning_rate'?
    """
    return config_from(settings_table(settings), config)
