"""The contract of a layer that carries one tensor: layouts, states, resets, unequal lengths. No arithmetic."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple, Unpack

import torch
from torch import Tensor, nn

from remanence._validate import boolean, dimension
from remanence.ops import row_positions, states

from . import _sequence
from ._core_layouts import StreamingCore, unusual_options
from ._options import Factory


class CarriedState(NamedTuple):
    """What a recurrence of one layer carries: its value, zeros at the start. The size is fixed.

    Every field is ``(1, B, ...)``, without ``B`` when unbatched.

    Example:
        >>> from remanence.nn import MinGRU
        >>> MinGRU(3, 8).initial_state(5).value.shape
        torch.Size([1, 5, 8])
    """

    value: Tensor
    """``(..., n)``; ``(..., n, key_size)`` for the delta rule."""
    step: Tensor
    """``(...)`` int64: steps since the row's start."""

    nbytes = property(states.nbytes)
    detach = states.detach
    to = states.to
    select = states.select
    cat = staticmethod(states.cat)


states.register_state(CarriedState, "remanence.nn.CarriedState")


class CarryingLayer(StreamingCore[CarriedState]):
    """One layer that carries one tensor; a subclass gives the arithmetic, ``_run``."""

    def __init__(self, input_size: int, hidden_size: int, batch_first: bool) -> None:
        super().__init__()
        self.input_size = dimension("input_size", input_size)
        self.hidden_size = self.output_size = dimension("hidden_size", hidden_size)
        self.batch_first = boolean("batch_first", batch_first)

    def forward(
        self, input: _sequence.SequenceInput, state: CarriedState | None = None, *, reset: Tensor | None = None
    ) -> tuple[_sequence.SequenceInput, CarriedState]:
        """Runs over a sequence.

        Args:
            input: ``(T, B, input_size)``, ``(B, T, input_size)`` with ``batch_first``, ``(T, input_size)`` unbatched,
                or a ``PackedSequence``.
            state: the state to continue from; ``None`` starts empty.
            reset: bool in the input's layout; True resets the row before that step.

        Returns:
            The output in the input's layout, ``(T, B, hidden_size)``, and the final state.
        """
        x, lengths, layout = _sequence.enter(input, self.input_size, self.batch_first, next(self.parameters()))
        length, batch = x.shape[:2]
        reset = _sequence.enter_reset(reset, layout, length, batch, x.device)
        before = self._enter_state(state, batch, layout)
        steps = row_positions(before.step[0], length, reset) + 1
        live = None
        ends = steps[-1]
        if lengths is not None:
            live = torch.arange(length, device=x.device)[:, None] < lengths
            ends = steps.gather(0, lengths[None] - 1)[0]
        value = before.value[0]
        if reset is not None:
            value = states.empty_rows(reset[0], value)
        output, value = self._run(x, value, reset, live)
        after = CarriedState(value.unsqueeze(0), ends.unsqueeze(0))
        return _sequence.leave(output, layout), layout.outer_state(after)

    def extra_repr(self) -> str:
        """Sizes."""
        sizes = [str(self.input_size), str(self.hidden_size)]
        return ", ".join(sizes + unusual_options(self, {"batch_first": False}))

    def _empty(self, rows: int) -> CarriedState:
        like = next(self.parameters())
        step = torch.zeros(1, rows, dtype=torch.int64, device=like.device)
        return CarriedState(like.new_zeros(1, rows, *self._value_shape()), step)

    def _value_shape(self) -> tuple[int, ...]:
        return (self.hidden_size,)

    def _uniform(self, *shape: int, **factory: Unpack[Factory]) -> nn.Parameter:
        bound = 1 / math.sqrt(self.hidden_size)
        return nn.Parameter(torch.empty(shape, **factory).uniform_(-bound, bound))

    @abstractmethod
    def _run(self, x: Tensor, value: Tensor, starts: Tensor | None, live: Tensor | None) -> tuple[Tensor, Tensor]:
        """Output ``(T, B, n)`` and the last value, from ``x`` ``(T, B, input_size)``.

        ``starts`` ``(T, B)``: rows that forget before a step; ``live`` likewise: rows that have not ended.
        """
