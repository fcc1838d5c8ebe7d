"""The contract of a layer that carries one tensor: layouts, states, resets, unequal lengths. No arithmetic."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from remanence._validate import boolean, dimension
from remanence.nn import _core_layouts, _sequence
from remanence.ops import row_positions, states


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


class CarryingLayer(nn.Module):
    """One layer that carries one tensor; a subclass gives the arithmetic, ``_run``."""

    def __init__(self, input_size: int, hidden_size: int, batch_first: bool) -> None:
        super().__init__()
        self.input_size = dimension("input_size", input_size)
        self.hidden_size = self.output_size = dimension("hidden_size", hidden_size)
        self.batch_first = boolean("batch_first", batch_first)

    def forward(
        self, input: _sequence.SequenceInput, state: CarriedState | None = None, *, reset: Tensor | None = None
    ) -> tuple[Any, CarriedState]:
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
        before = self._empty(batch)
        if state is not None:
            before = _core_layouts.enter_state(state, before, layout)
        live = None
        if lengths is not None:
            live = torch.arange(length, device=x.device)[:, None] < lengths
        value, starts = _begin(before.value[0], reset)
        output, value = self._run(x, value, starts, live)
        last = row_positions(before.step[0], length, reset)
        last = last[-1] if lengths is None else last.gather(0, lengths[None] - 1)[0]
        after = CarriedState(value.unsqueeze(0), (last + 1).unsqueeze(0))
        return _sequence.leave(output, layout), after if layout.batched else states.drop_row(after)

    def step(self, input_t: Tensor, state: CarriedState | None = None) -> tuple[Tensor, CarriedState]:
        """One step of a stream: the same numbers as the whole run.

        Args:
            input_t: ``(B, input_size)``, or ``(input_size,)`` unbatched.
            state: the state so far; ``None`` at the start.

        Returns:
            The output ``(B, hidden_size)`` and the next state.
        """
        return _core_layouts.step_of(self, input_t, state)

    def initial_state(self, batch_size: int | None = None) -> CarriedState:
        """The state before the first step.

        Args:
            batch_size: rows; ``None`` for an unbatched sequence.
        """
        state = self._empty(1 if batch_size is None else dimension("batch_size", batch_size))
        return states.drop_row(state) if batch_size is None else state

    def extra_repr(self) -> str:
        """Sizes."""
        return f"{self.input_size}, {self.hidden_size}" + (", batch_first=True" if self.batch_first else "")

    def _empty(self, batch: int) -> CarriedState:
        like = next(self.parameters())
        step = torch.zeros(1, batch, dtype=torch.int64, device=like.device)
        return CarriedState(like.new_zeros(1, batch, *self._value_shape()), step)

    def _value_shape(self) -> tuple[int, ...]:
        return (self.hidden_size,)

    def _uniform(self, *shape: int, **factory: Any) -> nn.Parameter:
        bound = 1 / math.sqrt(self.hidden_size)
        return nn.Parameter(torch.empty(shape, **factory).uniform_(-bound, bound))

    @abstractmethod
    def _run(self, x: Tensor, value: Tensor, starts: Tensor | None, live: Tensor | None) -> tuple[Tensor, Tensor]:
        """Output ``(T, B, n)`` and the last value, from ``x`` ``(T, B, input_size)``.

        ``starts`` ``(T, B)``: rows that forget before a step; ``live`` likewise: rows that have not ended.
        """


def _begin(value: Tensor, reset: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """A reset at the first step takes the given value away by selection: a NaN does not survive."""
    if reset is None:
        return value, None
    return torch.where(reset[0].reshape(-1, *[1] * (value.dim() - 1)), 0.0, value), reset
