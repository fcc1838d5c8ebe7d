"""How a call of `train` or `resume` ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from remanence.train._run import Run


@dataclass(frozen=True)
class Outcome:
    """How a call of :func:`train` or :func:`resume` ended.

    Args:
        status: ``"done"``, or ``"interrupted"`` by a signal, to be resumed.
        reason: in words.
        run: the run folder.
        update: batches learnt from so far.
        validation: last evaluation.
        signal: number of the signal that interrupted it.

    Example:
        >>> from pathlib import Path
        >>> Outcome("done", "budget used up", Run(Path("mine")), 100, {}).status
        'done'
    """

    status: Literal["done", "interrupted"]
    reason: str
    run: Run
    update: int
    validation: dict[str, float]
    signal: int | None = None
