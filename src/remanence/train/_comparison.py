"""What a comparison of several models found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from remanence.runs import Result

Row = dict[str, Any]


@dataclass(frozen=True)
class Comparison(Result):
    """Several models, lengths and seeds side by side; it is stored as ``comparison.json`` next to the runs.

    Args:
        runs: one row per run, as :func:`summarise` gives them.
        seeds: accuracy of each model and length over its seeds.
        transfer: the best run of each model and length, measured at other lengths.
        command: that made it.

    Example:
        >>> Comparison(runs=[{"model": "LSTM"}]).to_dict()["kind"]
        'comparison'
    """

    kind: ClassVar[str] = "comparison"

    runs: list[Row]
    seeds: list[Row] = field(default_factory=list)
    transfer: list[Row] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
