"""What a recurrent layer carries from one call to the next."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .states import cat, detach, nbytes, register_state, select, to

EMPTY = -1
"""Value of ``relevant_step`` in a slot that holds nothing."""

BEFORE_START = -2
"""Value of ``relevant_step`` for the all-zero state that :class:`Strided` may start with."""

EMPTY_SLOT = {"recent": 0, "recent_score": 0, "relevant": 0, "relevant_score": 0, "relevant_step": EMPTY}
"""The fields that have slots, and what an empty one holds."""

_UNPACK = dis.opmap["UNPACK_SEQUENCE"]


class State(NamedTuple):
    """What a layer carries from one call to the next: a value, never hidden on the module.

    Every field is ``(num_layers * directions, B, ...)``, without ``B`` when unbatched; one that a layer does not need
    has a dimension of size 0, so all layers share this one class. Its size does not depend on the sequence length,
    except for :class:`Full` without a limit and :class:`Strided` where it says so.

    It has more fields than torch's ``hx``: where code says ``output, (h, c) = layer(x)``, write
    ``output, state = layer(x)`` and ``h, c = state.hx``.

    Example:
        >>> import torch, remanence
        >>> layer = remanence.nn.RelLSTM(3, 4, recent=2, relevant=1)
        >>> _, state = layer(torch.randn(7, 5, 3))
        >>> h, c = state.hx
        >>> h.shape, state.recent.shape, state.step.tolist()
        (torch.Size([1, 5, 4]), torch.Size([1, 5, 2, 4]), [[7, 7, 7, 7, 7]])
    """

    s: Tensor
    """``(..., m)``: macro-state, what enters the recurrence."""
    c: Tensor
    """``(..., n)``: cell of an LSTM."""
    h: Tensor
    """``(..., n)``: hidden state of a GRU or GORU cell with a memory, whose leak goes through ``h`` and not ``s``."""
    chain: Tensor
    """``(..., w)``: recurrent state with the reads cut off; only ``Strided(hops="one")`` needs it."""
    recent: Tensor
    """``(..., recent, n)``: short-term buffer; step ``i`` stands in slot ``i mod recent``."""
    recent_score: Tensor
    """``(..., recent)``: attention received so far (no gradient)."""
    relevant: Tensor
    """``(..., relevant, n)``: relevant set, or the stored states of :class:`Strided`."""
    relevant_score: Tensor
    """``(..., relevant)``: attention received, frozen at entry unless the screen follows it on (no gradient)."""
    relevant_step: Tensor
    """``(..., relevant)`` int64: the step that a slot holds, -1 if it is empty."""
    step: Tensor
    """``(...)`` int64: steps since the row's start."""

    def __iter__(self) -> Iterator[Any]:
        """Go over the fields. Unpacking into a pair is refused: it is meant for torch's ``hx``."""
        if not torch.compiler.is_compiling() and _unpacks_a_pair(sys._getframe(1)):
            raise ValueError("a State is more than torch's pair; write `output, state = layer(x)`, `h, c = state.hx`")
        return tuple.__iter__(self)

    @property
    def hx(self) -> Tensor | tuple[Tensor, Tensor]:
        """What enters the recurrence, in torch's shapes: ``s_n``, or ``(s_n, c_n)`` for an LSTM."""
        if self.c.shape[-1]:
            return self.s, self.c
        return self.s

    @property
    def nbytes(self) -> int:
        """Bytes of all fields together."""
        return nbytes(self)

    def detach(self) -> State:
        """The same values cut off from the graph, memory included: the only cut between calls."""
        return detach(self)

    def to(self, *args: Any, **kwargs: Any) -> State:
        """Move or cast like :meth:`torch.Tensor.to`; step counters stay int64."""
        return to(self, *args, **kwargs)

    def select(self, rows: Tensor | Sequence[int] | slice) -> State:
        """The state of some rows of the batch: ``(K,)`` indices, a ``(B,)`` mask, or a slice."""
        return select(self, rows)

    @staticmethod
    def cat(states: Sequence[State]) -> State:
        """The rows of several states in one batch; growing memories are padded with empty slots."""
        return cat(states, EMPTY_SLOT)


register_state(State, "remanence.ops.State")


def _unpacks_a_pair(frame: FrameType) -> bool:
    """Whether a frame is just at ``a, b = ...``. Python's own message there, "too many values", names no remedy."""
    operation, count = frame.f_code.co_code[frame.f_lasti : frame.f_lasti + 2]
    return operation == _UNPACK and count == 2


def stack_states(states: Sequence[State]) -> State:
    """The states of all layers, fields ``(B, ...)``, as one; that of a single layer without a copy."""
    if len(states) == 1:
        return State(*(field.unsqueeze(0) for field in states[0]))
    return State(*(torch.stack(fields) for fields in zip(*states, strict=True)))


def state_of_layer(state: State | None, index: int) -> State | None:
    """The fields ``(B, ...)`` of one layer and direction; ``None`` if there is no state yet."""
    if state is None:
        return None
    return State(*(field[index] for field in state))
