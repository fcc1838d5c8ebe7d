"""The user's own time series as a task."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from remanence import _validate
from remanence.data import read_series
from remanence.tasks._batch import Baseline, Score
from remanence.tasks._own_files import OwnFile
from remanence.tasks._registry import register_task
from remanence.tasks._stream import SPLITS, Split


@register_task("series")
@dataclass(frozen=True)
class SeriesFile(OwnFile):
    r"""Forecast a time series from a CSV file.

    Description:
        A CSV file with a row per time step and a column per feature. Its beginning is for training, its end for
        validation and test::

            file     |-------------- training --------------|-- validation --|-- test --|

        The model predicts how much the series changes over the next `horizon` steps, so an answer of zero repeats the
        last value.

    Input:
        `(length, B, columns)`: the values, with mean 0 and standard deviation 1 in training.

    Target:
        `(length, B, columns)`: the change to the value `horizon` steps later, in units of the root mean square change
        in training. With `target` of this column only.

    Metric:
        Mean squared error in these units, so that repeating the last value gets about 1; with one target also `rmse`
        in the unit of the file. Accuracy is the share of forecasts less than `tolerance` off, in these units.

    Chance level:
        Repeating the last value, measured on validation: `chance`. A linear regression on the present row, fitted on
        training: `memory_free`.

    Reference:
        None: it is your series.

    Args:
        length: Steps of a chunk.
        drop_state: Probability that the carried state is dropped before a chunk of training.
        path: The file.
        validation: Share of the file for validation.
        test: Share of the file for the test.
        columns: Names of the input columns; all by default.
        target: Name of the column to forecast; all input columns by default.
        horizon: Steps to look ahead.
        tolerance: How far a right answer may be off, in units of the root mean square change.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "mine.csv"
        ...     _ = path.write_text("load\n" + "\n".join(str(t % 4) for t in range(400)))
        ...     task = SeriesFile(path=str(path), length=5)
        ...     batch = task.batch(0, batch_size=2)
        ...     print(task.forecast(batch.targets, batch.inputs)[:, 0, 0].round().int().tolist())
        [1, 2, 3, 0, 1]
    """

    validation: float = 0.1
    test: float = 0.1
    columns: tuple[str, ...] = ()
    target: str = ""
    horizon: int = 1
    tolerance: float = 0.5

    chance_name = "repeating the last value"
    item = "rows"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", tuple(self.columns))  # TOML and JSON give lists
        _validate.positive_int("horizon", self.horizon)
        _validate.real("tolerance", self.tolerance, above=0.0)

    @property
    def input_size(self) -> int:
        """Number of input columns."""
        return len(self._scaled.mean)

    @property
    def output_size(self) -> int:
        """Number of columns to forecast."""
        return len(self._scaled.change)

    @property
    def chance(self) -> Baseline:
        """Repeating the last value, measured on the validation split."""
        _, targets = self.pairs("validation")
        return self._measured(torch.zeros_like(targets), targets)

    @property
    def memory_free(self) -> Baseline:
        """Linear regression on the present row, fitted on the training split and measured on the validation split."""
        inputs, targets = self.pairs("train")
        weights = torch.linalg.lstsq(_with_constant(inputs), targets.double()).solution
        inputs, targets = self.pairs("validation")
        return self._measured((_with_constant(inputs) @ weights).to(targets.dtype), targets)

    def pairs(self, split: Split) -> tuple[Tensor, Tensor]:
        """Inputs `(N, columns)` and targets `(N, targets)` of a whole split."""
        _validate.one_of("split", split, SPLITS)
        return self._scaled.pairs[split]

    def forecast(self, output: Tensor, inputs: Tensor) -> Tensor:
        """Turns a model's output into values of the series.

        Args:
            output: `(..., targets)`, the changes in the task's units.
            inputs: `(..., columns)`, what the model saw.

        Returns:
            Forecasts `(..., targets)` in the unit of the file.
        """
        scaled = self._scaled
        now = (inputs * scaled.deviation.to(inputs) + scaled.mean.to(inputs))[..., scaled.places]
        return now + output * scaled.change.to(output)

    def step_loss(self, output: Tensor, targets: Tensor) -> Tensor:
        """Gives squared errors `(N,)`, averaged over the columns."""
        return (output - targets).square().mean(-1)

    def step_correct(self, output: Tensor, targets: Tensor) -> Tensor:
        """Says which forecasts are less than `tolerance` off, root mean square over the columns."""
        return self.step_loss(output, targets) < self.tolerance**2

    def report(self, score: Score) -> dict[str, float]:
        """Words a score, with one target also as "rmse" in the unit of the file."""
        found = super().report(score)
        if self.output_size == 1:
            found["rmse"] = math.sqrt(score.loss) * self._scaled.change.item()
        return found

    def _measured(self, output: Tensor, targets: Tensor) -> Baseline:
        right = self.step_correct(output, targets).double().mean()
        return Baseline(self.step_loss(output, targets).double().mean().item(), right.item())

    @property
    def _scaled(self) -> _Scaled:
        chosen = _Choice(self.path, self.columns, self.target, self.horizon, self.validation, self.test)
        return _prepare(chosen, self.stamp())


class _Choice(NamedTuple):
    """What of a file is used, and how; a key of the cache."""

    path: str
    columns: tuple[str, ...]
    target: str
    horizon: int
    validation: float
    test: float


class _Scaled(NamedTuple):
    """A series ready for training: pairs by split, and the units that they are in."""

    pairs: dict[Split, tuple[Tensor, Tensor]]
    places: list[int]
    mean: Tensor
    deviation: Tensor
    change: Tensor


@functools.lru_cache(maxsize=2)
def _prepare(choice: _Choice, stamp: tuple[int, int]) -> _Scaled:
    series = read_series(choice.path, choice.columns)
    places = list(range(len(series.columns)))
    if choice.target:
        places = [series.columns.index(_validate.one_of("target", choice.target, series.columns))]
    parts = _split(series.values, choice)
    train = parts["train"]
    mean = train.mean(0)
    deviation = _no_zeros(train.std(0, correction=0))
    changes = {split: (part[choice.horizon :] - part[: -choice.horizon])[:, places] for split, part in parts.items()}
    change = _no_zeros(changes["train"].square().mean(0).sqrt())
    pairs: dict[Split, tuple[Tensor, Tensor]] = {
        split: (((part[: -choice.horizon] - mean) / deviation).float(), (changes[split] / change).float())
        for split, part in parts.items()
    }
    return _Scaled(pairs, places, mean, deviation, change)


def _split(values: Tensor, choice: _Choice) -> dict[Split, Tensor]:
    held_out = [round(len(values) * share) for share in (choice.validation, choice.test)]
    sizes = [len(values) - sum(held_out), *held_out]
    if min(sizes) <= choice.horizon:
        got = f"{sizes[0]}, {sizes[1]} and {sizes[2]} rows for training, validation and test"
        raise ValueError(f"every split needs more than {choice.horizon} rows (horizon); got {got}")
    return dict(zip(SPLITS, values.split(sizes), strict=True))


def _no_zeros(scale: Tensor) -> Tensor:
    """A column that never changes is left as it is."""
    return torch.where(scale > 0, scale, torch.ones_like(scale))


def _with_constant(inputs: Tensor) -> Tensor:
    return torch.cat([inputs.double(), torch.ones(len(inputs), 1, dtype=torch.float64)], dim=1)
