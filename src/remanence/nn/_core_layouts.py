"""What the attending, convolving and carrying cores share: layouts of sequences, states, and the step of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from remanence._validate import dimension, message, shape
from remanence.ops.state_shapes import check_counts
from remanence.ops.states import drop_row

from ._sequence import CallLayout, SequenceInput, enter, leave

AnyState = TypeVar("AnyState", bound=tuple[Tensor, ...])
CoreState: TypeAlias = Any
"""What a core carries from call to call, ours, torch's or a user's: who only hands it on need not know more."""


class StreamingCore(nn.Module, Generic[AnyState]):
    """A core that runs over whole sequences, in chunks or step by step; a subclass gives ``forward`` and ``_empty``.

    A field of its state is ``(depth, B, ...)``, and without ``B`` outside if the sequence is unbatched.
    """

    input_size: int
    output_size: int
    batch_first: bool

    def initial_state(self, batch_size: int | None = None) -> AnyState:
        """The state before the first step; without ``batch_size`` that of an unbatched sequence."""
        if batch_size is None:
            return drop_row(self._empty(1))
        return self._empty(dimension("batch_size", batch_size))

    def step(self, input_t: Tensor, state: AnyState | None = None) -> tuple[Tensor, AnyState]:
        """One step of a stream: the same numbers as the whole run.

        Args:
            input_t: ``(B, input_size)``, or ``(input_size,)`` unbatched.
            state: the state so far; ``None`` at the start.

        Returns:
            The output, ``(B, output_size)`` or ``(output_size,)``, and the next state.
        """
        return step_of(self, input_t, state)

    def _empty(self, rows: int) -> AnyState:
        """The state of rows that have seen nothing."""
        raise NotImplementedError

    def _growing(self) -> int | None:
        """Dimension of the state's fields that may have any size because the memory grows."""
        return None

    def _enter_state(self, state: AnyState | None, rows: int, layout: CallLayout) -> AnyState:
        """A given state, checked and with a batch dimension; the empty one where none is given."""
        empty = self._empty(rows)
        if state is None:
            return empty
        if type(state) is not type(empty):
            hint = "Take it from this layer's own `initial_state` or an earlier call"
            raise TypeError(message("state", f"be a {type(empty).__name__}", type(state).__name__, hint))
        growing = self._growing()
        slots: int | str = "slots"  # as many as the first field has
        for name, field, like in zip(empty._fields, state, empty, strict=True):  # type: ignore[attr-defined]
            sizes: list[int | str] = list(like.shape)
            if growing is not None and growing < len(sizes):
                sizes[growing] = slots
            if not layout.batched:
                del sizes[1]
            shape(f"state.{name}", field, sizes)
            if "slots" in sizes:
                slots = field.shape[sizes.index("slots")]
            if (field.dtype, field.device) != (like.dtype, like.device):
                expected, got = (f"{x.dtype} on {x.device}" for x in (like, field))
                raise ValueError(message(f"state.{name}", f"be {expected}", got, "Move it with state.to(...)"))
            if field.layout != like.layout:
                raise ValueError(message(f"state.{name}", f"be {like.layout}", str(field.layout), "Use .to_dense()"))
        check_counts(state.step)  # type: ignore[attr-defined]
        return layout.inner_state(state)


def enter_rows(input: SequenceInput, core: StreamingCore, weight: Tensor) -> tuple[Tensor, Tensor | None, CallLayout]:
    """Checks a core's input against one of its parameters, and brings it to ``(B, T, input_size)``.

    For a packed input also gives ``(B, T)`` bool, True where there is no step; and in any case the layout.
    """
    x, lengths, layout = enter(input, core.input_size, core.batch_first, weight)
    padded = None
    if lengths is not None:
        padded = torch.arange(x.shape[0], device=x.device) >= lengths.unsqueeze(1)
    return x.transpose(0, 1), padded, layout


def leave_rows(output: Tensor, layout: CallLayout) -> SequenceInput:
    """The output ``(B, T, size)`` as the caller wants it."""
    return leave(output.transpose(0, 1), layout)


def enter_mask(name: str, mask: Tensor, values: Tensor, layout: CallLayout) -> Tensor:
    """Checks a bool mask in the caller's layout of a sequence, and brings it to ``(B, T)`` as `values` is."""
    shape(name, mask, layout.outer(values.transpose(0, 1)).shape[:-1])
    if mask.dtype != torch.bool:
        raise TypeError(message(name, "be a bool tensor", str(mask.dtype), "True leaves a position out"))
    return layout.inner(mask).transpose(0, 1)


def step_of(core: Any, input_t: Tensor, state: CoreState) -> tuple[Tensor, CoreState]:
    """One step of a stream through a core that knows whole sequences, torch's own included."""
    sizes: tuple[int | str, ...] = (core.input_size,)
    time = 0
    if isinstance(input_t, Tensor) and input_t.dim() != 1:
        sizes = ("B", core.input_size)
        time = int(core.batch_first)
    shape("input_t", input_t, sizes)
    output, state = core(input_t.unsqueeze(time), state)
    return output.squeeze(time), state


def unusual_options(module: nn.Module, defaults: Mapping[str, object]) -> list[str]:
    """The options of a module that differ from their defaults, as its ``repr`` shows them."""
    return [f"{name}={getattr(module, name)!r}" for name, usual in defaults.items() if getattr(module, name) != usual]


def refuse_script(self: object) -> NoReturn:
    """Says that a module cannot be scripted, and what takes its place; torch calls it as `__prepare_scriptable__`."""
    name = type(self).__name__
    raise TypeError(
        f"{name} cannot be compiled by torch.jit.script, which torch has deprecated: use torch.compile to"
        " run it in Python, torch.export.export to save it, remanence.nn.onnx to run it elsewhere"
    )
