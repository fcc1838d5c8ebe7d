"""What all results of probes share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from remanence.figures import Figure, to_plotly
from remanence.runs import Result, tag


class ProbeResult(Result):
    """Base of the results: frozen values with a kind, a version, a verdict, a dictionary and figures.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass(frozen=True)
        ... class Count(ProbeResult):
        ...     kind = "count-of-the-probe-example"
        ...     steps: int
        >>> Count(3).to_dict()
        {'kind': 'count-of-the-probe-example', 'version': 1, 'steps': 3, 'verdict': ''}
    """

    @property
    def verdict(self) -> str:
        """One line that says what was found."""
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Kind, version, all fields as plain numbers, lists and strings, and the verdict."""
        return {**super().to_dict(), "verdict": self.verdict}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The result that :meth:`to_dict` gave.

        Args:
            values: as read from JSON; the verdict is found anew. Those of before there were versions have none.

        Raises:
            NewerVersionError: If a newer version of the package wrote it.
            ValueError: If it is of another kind, or a field is missing or is not of its type.
        """
        return super().from_dict({**tag(cls.kind), **values})

    def figures(self) -> list[Figure]:
        """What its pictures show: what :meth:`plot`, the report and the documentation draw."""
        raise NotImplementedError

    def plot(self) -> Any:
        """Its figures, drawn by plotly one above the other; needs the extra ``remanence[report]``."""
        return to_plotly(self.figures())
