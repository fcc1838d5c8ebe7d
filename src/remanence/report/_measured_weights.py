"""What was measured on a run's best weights, as ``probes.json`` in its folder keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from remanence.probes import AttentionMap, Cost, GradientReach, ProbeResult
from remanence.report._numbers import as_number
from remanence.runs import Result, ResultError, Settings, Values, check_version, result_from

PROBES = ("gradient_reach", "cost", "attention_map")
"""The probes whose results are kept."""


@dataclass(frozen=True)
class MeasuredWeights:
    """Measurements of one run's best weights, reached at an update; what a probe refused is in the errors.

    Example:
        >>> MeasuredWeights.read({"kind": "measured_weights", "version": 1, "parameters": 12})[0].parameters
        12.0
    """

    kind: ClassVar[str] = "measured_weights"
    version: ClassVar[int] = 1

    update: int | None = None
    parameters: float | None = None
    steps: float | None = None
    chance: float | None = None
    gradient_reach: GradientReach | None = None
    cost: Cost | None = None
    attention_map: AttentionMap | None = None
    errors: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, table: Settings) -> tuple[MeasuredWeights, list[str]]:
        """What a file says, and what of it could not be read."""
        problems: list[str] = []
        try:
            check_version(table, cls.kind, cls.version)
        except ResultError as error:
            return cls(), [f"cannot be read: {error}"]
        results: Values = {}
        for name in (name for name in PROBES if name in table):
            try:
                results[name] = read_checked(table[name])
            except ValueError as error:
                problems.append(f"its {name} cannot be read: {error}")
        errors = table.get("errors")
        if not isinstance(errors, Mapping):
            errors = {}
        told = {str(name): str(text) for name, text in errors.items()}
        numbers = {name: as_number(table.get(name)) for name in ("parameters", "steps", "chance")}
        return cls(table.get("update"), **numbers, **results, errors=told), problems

    @property
    def state_bytes(self) -> float | None:
        """What is carried from step to step for one sequence, at the shortest measured length."""
        if self.cost is None or not self.cost.state_bytes:
            return None
        return self.cost.state_bytes[0]


def read_checked(values: Settings) -> Result:
    """A result, and if it is a probe's, tried out: its verdict can be said and its figures drawn. Else a ValueError.

    Example:
        >>> read_checked({"kind": "cost", "version": 1, "lengths": [1]})
        Traceback (most recent call last):
        remanence.runs._result.ResultError: the cost has no `seconds`
    """
    result = result_from(values)
    if not isinstance(result, ProbeResult):
        return result
    try:
        _ = result.verdict, result.figures()
    except Exception as error:  # numbers of the right types that do not fit together; whatever breaks, it is the file
        raise ValueError(f"its numbers do not fit together ({error!r})") from error
    return result
