"""What was measured while a run learnt, typed: the lines of ``metrics.jsonl`` sorted by what they say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from remanence._validate import COUNTABLE
from remanence.runs._plain import Values


@dataclass(frozen=True)
class Measurement:
    """Numbers that were measured after one update.

    Args:
        update: batches learnt from when it was made.
        values: the numbers by name; None stands for one that is not finite.
        best: whether a validation was the best so far.

    Example:
        >>> line = Measurement(5, {"loss": 0.5, "accuracy": 0.75})
        >>> line.loss, line.accuracy, line.get("bits"), line["loss"]
        (0.5, 0.75, None, 0.5)
    """

    update: int
    values: Mapping[str, float | None] = field(default_factory=dict)
    best: bool = False

    @property
    def loss(self) -> float | None:
        """The loss, if it was measured and is finite."""
        return self.values.get("loss")

    @property
    def accuracy(self) -> float | None:
        """The accuracy, if it was measured and is finite."""
        return self.values.get("accuracy")

    def get(self, name: str) -> float | None:
        """The number of that name; None if there is none."""
        return self.values.get(name)

    def __getitem__(self, name: str) -> float | None:
        return self.values[name]


@dataclass(frozen=True)
class Growth:
    """A curriculum's next length, and the update at which it began.

    Example:
        >>> Growth(300, 15).length
        15
    """

    update: int
    length: int


@dataclass(frozen=True)
class History:
    """The measurements of a run, in order.

    Args:
        training: means over the batches since the line before.
        validation: evaluations on held-out batches.
        lengths: where a curriculum grew; empty without one.

    Example:
        >>> lines = [
        ...     {"kind": "train", "update": 2, "loss": 0.9, "accuracy": 0.5},
        ...     {"kind": "validation", "update": 4, "loss": 0.8, "accuracy": 0.6, "best": True},
        ...     {"kind": "validation", "update": 8, "loss": 0.2, "accuracy": 0.995, "best": True},
        ... ]
        >>> history = History.from_lines(lines)
        >>> history.update, history.solved_at(0.99), history.best.update, history.curve("accuracy")
        (8, 8, 8, [(4, 0.6), (8, 0.995)])
    """

    training: tuple[Measurement, ...] = ()
    validation: tuple[Measurement, ...] = ()
    lengths: tuple[Growth, ...] = ()

    @classmethod
    def from_lines(cls, lines: Iterable[object]) -> History:
        """Sorts what :meth:`MetricsFile.read` gives; lines that say nothing known, or are damaged, are left out."""
        known = [line for line in lines if is_line(line)]
        return cls(
            tuple(_measurement(line) for line in known if line["kind"] == "train"),
            tuple(_measurement(line) for line in known if line["kind"] == "validation"),
            tuple(
                Growth(line["update"], line["length"])
                for line in known
                if line["kind"] == "curriculum" and _is_whole(line.get("length"))
            ),
        )

    @property
    def update(self) -> int:
        """The last update that anything was measured after; 0 if nothing was."""
        return max((line.update for line in (*self.training, *self.validation, *self.lengths)), default=0)

    @property
    def last(self) -> Measurement | None:
        """The last validation; None before the first."""
        if not self.validation:
            return None
        return self.validation[-1]

    @property
    def best(self) -> Measurement | None:
        """The validation of the best weights, by the run's own metric; None before the first."""
        return next((line for line in reversed(self.validation) if line.best), None)

    @property
    def length(self) -> int | None:
        """The curriculum's last length; None if it never grew."""
        if not self.lengths:
            return None
        return self.lengths[-1].length

    def greatest(self, name: str) -> float | None:
        """The greatest value of a number over all validations; None if it was never measured."""
        return max((value for _, value in self.curve(name)), default=None)

    def least(self, name: str) -> float | None:
        """The least value of a number over all validations; None if it was never measured."""
        return min((value for _, value in self.curve(name)), default=None)

    def curve(self, name: str) -> list[tuple[int, float]]:
        """A number of the validations against the update, as pairs, where it is finite."""
        return [(line.update, value) for line in self.validation if (value := line.get(name)) is not None]

    def solved_at(self, accuracy: float, hold: int = 1) -> int | None:
        """The update from which on the validation accuracy reached a level.

        Args:
            accuracy: The level.
            hold: Evaluations in a row that must reach it.

        Returns:
            The update of the first of them, None if that never happened.
        """
        held: list[int] = []
        for line in self.validation:
            if line.accuracy is None or line.accuracy < accuracy:
                held = []
                continue
            held.append(line.update)
            if len(held) >= hold:
                return held[-hold]
        return None


def is_line(line: object) -> TypeGuard[Values]:
    """Tells whether a value is a measurement: a dictionary with a kind and an update.

    Example:
        >>> is_line({"kind": "train", "update": 3}), is_line({}), is_line([1])
        (True, False, False)
    """
    return isinstance(line, dict) and isinstance(line.get("kind"), str) and _is_whole(line.get("update"))


def _measurement(line: Values) -> Measurement:
    numbers = {name: value for name, value in line.items() if name != "update" and _is_number(value)}
    return Measurement(line["update"], numbers, line.get("best") is True)


def _is_whole(value: object) -> bool:
    """Whether it is a count: in JSON a whole number may have any size."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= COUNTABLE


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, float) or _is_whole(value)
