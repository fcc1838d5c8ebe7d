"""What kind of layer a scan runs: *cell x memory x read*, and what it returns; cuts come with the call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from remanence._validate import message, one_of

from ._buffer import Full, Screened
from ._cells import CELLS, Cell, Nonlinearity, RNNCell
from ._memory import MemoryRule
from ._reads import Combine, Read
from ._stride import Strided

CellName: TypeAlias = Literal["rnn", "lstm", "gru", "goru"]
Memory: TypeAlias = Full | Screened | Strided | MemoryRule | None
Output: TypeAlias = Literal["macro", "hidden", "summary", "weights"]


@dataclass(frozen=True, init=False)
class ScanSpec:
    """Everything about a scan that is not a tensor.

    Args:
        cell: ``"rnn"``, ``"lstm"``, ``"gru"``, ``"goru"``, or any :class:`Cell`.
        memory: which past states may be attended, or ``None``.
        nonlinearity: of the ``"rnn"`` cell; ``None`` leaves it as it is.
        combine: how state ``h`` and read ``r`` make the macro-state ``s``: ``"sum"``, ``"half"`` or ``"concat"``.
        output: ``"macro"`` returns ``s``, ``"hidden"`` returns ``h``, ``"summary"`` ``[s; r]``, ``"weights"`` ``[s; the
            weights of all stored states]`` (Strided only).
        cut_reads: whether a cut through ``s`` also cuts the gradient into what the memory holds at that moment.
        max_steps: longest row, for ``output="weights"``.

    Example:
        >>> ScanSpec("lstm", Screened(10, 10)).has_memory
        True
    """

    cell: Cell
    memory: Memory = None
    nonlinearity: Nonlinearity | None = None
    combine: Combine = "sum"
    output: Output = "macro"
    cut_reads: bool = False
    max_steps: int | None = None

    def __init__(
        self,
        cell: Cell | CellName,
        memory: Memory = None,
        nonlinearity: Nonlinearity | None = None,
        combine: Combine = "sum",
        output: Output = "macro",
        cut_reads: bool = False,
        max_steps: int | None = None,
    ) -> None:
        chosen = find_cell(cell)
        if isinstance(chosen, RNNCell) and nonlinearity is not None:
            chosen = replace(chosen, nonlinearity=nonlinearity)
        values = {
            "cell": chosen,
            "memory": memory,
            "nonlinearity": getattr(chosen, "nonlinearity", "tanh"),
            "combine": combine,
            "output": output,
            "cut_reads": cut_reads,
            "max_steps": max_steps,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def has_memory(self) -> bool:
        """Whether anything can ever be attended."""
        return self.memory is not None and not self.memory.holds_nothing

    @property
    def read(self) -> Read | None:
        """How the memory is scored and summed; ``None`` without one."""
        return self.memory.read if self.memory is not None and self.has_memory else None

    @property
    def screens(self) -> bool:
        """Whether relevance is collected: every :class:`Screened` memory with a buffer."""
        return self.memory is not None and self.has_memory and self.memory.collects

    @property
    def keeps_leak(self) -> bool:
        """Whether the state must carry ``h`` beside ``s``: the leak of a gated cell goes through ``h``."""
        return self.has_memory and self.cell.leaks

    def macro_size(self, hidden_size: int) -> int:
        """Size of the macro-state ``s``."""
        return 2 * hidden_size if self.has_memory and self.combine == "concat" else hidden_size

    def output_size(self, hidden_size: int) -> int:
        """Features of the output."""
        if self.output == "hidden" or self.memory is None or not self.has_memory:
            return hidden_size
        if self.output == "weights":
            assert self.max_steps is not None
            return hidden_size + self.memory.stored_by(self.max_steps)
        return 2 * hidden_size if self.output == "summary" else self.macro_size(hidden_size)


def find_cell(cell: Cell | str) -> Cell:
    """The cell itself, or the one of a name.

    Example:
        >>> find_cell("lstm")
        LSTMCell()
    """
    if isinstance(cell, Cell):
        return cell
    if not isinstance(cell, str):
        raise TypeError(message("cell", "be a Cell or the name of one", type(cell).__name__))
    return CELLS[one_of("cell", cell, CELLS)]
