"""What kind of layer a scan runs: *cell x memory x read*, and what it returns; cuts come with the call."""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass, replace
from typing import Literal, TypeAlias

from remanence._validate import message, one_of

from ._buffer import Full, Screened
from ._cells import CELLS, Cell, CellName, Nonlinearity
from ._memory import MemoryRule, NoMemory
from ._reads import Combine, Read
from ._stride import Strided
from ._weights import OwnParameter

Memory: TypeAlias = Full | Screened | Strided | MemoryRule | None
Output: TypeAlias = Literal["macro", "hidden", "summary", "weights"]
NO_MEMORY = NoMemory()


@dataclass(frozen=True, init=False)
class ScanSpec:
    """Everything about a scan that is not a tensor.

    Args:
        cell: ``"rnn"``, ``"lstm"``, ``"gru"``, ``"goru"``, or any :class:`Cell`.
        memory: which past states may be attended, or ``None``.
        nonlinearity: of a cell that has one, such as ``"rnn"``; ``None`` leaves it as it is.
        combine: how state ``h`` and read ``r`` make the macro-state ``s``: ``"sum"``, ``"half"`` or ``"concat"``;
            ``None`` leaves it to the read.
        output: ``"macro"`` returns ``s``, ``"hidden"`` returns ``h``, ``"summary"`` ``[s; r]``, ``"weights"`` ``[s; the
            weights of all stored states]`` (Strided only).
        cut_reads: whether a cut through ``s`` also cuts the gradient into what the memory holds at that moment.
        max_steps: longest row, for ``output="weights"``.
        read: how the memory is read; ``None`` takes the memory's own way. Without a memory there is none.

    Example:
        >>> ScanSpec("lstm", Screened(10, 10)).has_memory
        True
    """

    cell: Cell
    memory: Memory
    read: Read | None = field(hash=False)  # the memory says nearly all of it, and a hash is taken in every call
    output: Output
    cut_reads: bool
    max_steps: int | None

    def __init__(
        self,
        cell: Cell | CellName,
        memory: Memory = None,
        nonlinearity: Nonlinearity | None = None,
        combine: Combine | None = None,
        output: Output = "macro",
        cut_reads: bool = False,
        max_steps: int | None = None,
        read: Read | None = None,
    ) -> None:
        cell = find_cell(cell)
        if nonlinearity is not None and is_dataclass(cell) and hasattr(cell, "nonlinearity"):
            cell = replace(cell, nonlinearity=nonlinearity)
        read = _find_read(memory, read, combine)
        # A frozen dataclass refuses assignments, even its own.
        vars(self).update(cell=cell, memory=memory, read=read, output=output, cut_reads=cut_reads, max_steps=max_steps)

    @property
    def nonlinearity(self) -> Nonlinearity:
        """That of the cell; gated cells have the tanh."""
        return getattr(self.cell, "nonlinearity", "tanh")

    @property
    def combine(self) -> Combine:
        """How state and read make the macro-state; without a read nothing is combined."""
        return getattr(self.read, "combine", "sum")

    @property
    def has_memory(self) -> bool:
        """Whether anything can ever be attended."""
        return self.read is not None

    @property
    def rule(self) -> MemoryRule:
        """The memory; where nothing can ever be attended, one that holds nothing."""
        if self.memory is None or self.read is None:
            return NO_MEMORY
        return self.memory

    @property
    def screens(self) -> bool:
        """Whether relevance is collected: every :class:`Screened` memory with a buffer."""
        return self.rule.collects

    @property
    def keeps_leak(self) -> bool:
        """Whether the state must carry ``h`` in addition to ``s``: the leak of a gated cell goes through ``h``."""
        return self.has_memory and self.cell.leaks

    def own_parameters(self, hidden_size: int) -> dict[str, OwnParameter]:
        """What cell, read and memory need apart from the matrices and their biases, by name."""
        parts = [self.cell.own_parameters(hidden_size)]
        if self.read is not None:
            parts.append(self.read.own_parameters(hidden_size, self.macro_size(hidden_size)))
        parts.append(self.rule.own_parameters(hidden_size))
        needed: dict[str, OwnParameter] = {}
        for part in parts:
            if twice := needed.keys() & part.keys():
                raise ValueError(f"two parts of one layer declare a parameter {min(twice)!r}: rename one of them")
            needed |= part
        return needed

    def macro_size(self, hidden_size: int) -> int:
        """Size of the macro-state ``s``."""
        if self.read is None:
            return hidden_size
        return self.read.macro_size(hidden_size)

    def output_size(self, hidden_size: int) -> int:
        """Features of the output."""
        if self.output == "hidden" or not self.has_memory:
            return hidden_size
        if self.output == "weights":
            assert self.max_steps is not None
            return hidden_size + self.rule.stored_by(self.max_steps)
        if self.output == "summary":
            return 2 * hidden_size
        return self.macro_size(hidden_size)


def _find_read(memory: Memory, read: Read | None, combine: Combine | None) -> Read | None:
    if memory is None or memory.holds_nothing:
        return None
    if read is None:
        read = memory.read
    elif not memory.takes(read):
        raise ValueError(message("read", f"be one that goes with {memory}", repr(read)))
    if combine is not None:
        read = replace(read, combine=combine)
    return read


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
