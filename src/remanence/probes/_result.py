"""What all results of probes share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch

from remanence.figures import Figure, to_plotly

from ._decode import decode_dataclass


class ProbeResult:
    """Base of the results: frozen values with a verdict, a dictionary and figures.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Count(ProbeResult):
        ...     steps: int
        >>> Count(3).to_dict()
        {'steps': 3, 'verdict': ''}
    """

    @property
    def verdict(self) -> str:
        """One line that says what was found."""
        return ""

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, lists and strings, and the verdict."""
        fields = {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {**fields, "verdict": self.verdict}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The result that :meth:`to_dict` gave.

        Args:
            values: as read from JSON; the verdict is found anew.

        Raises:
            ValueError: If a field is missing or is not of its type.
        """
        return decode_dataclass(cls, values)

    def figures(self) -> list[Figure]:
        """What its pictures show: what :meth:`plot`, the report and the documentation draw."""
        raise NotImplementedError

    def plot(self) -> Any:
        """Its figures, drawn by plotly one above the other; needs the extra ``remanence[report]``."""
        return to_plotly(self.figures())


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
