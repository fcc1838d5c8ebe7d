"""The feed-forward twin of a recurrent layer: every output sees a window of the input and nothing before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.utils import _pytree

from remanence._validate import dimension, message, one_of
from remanence.ops import State, states

from . import _sequence
from ._core_layouts import StreamingCore
from ._layer import RecurrentLayer

Carried: TypeAlias = State | Tensor | tuple[Tensor, Tensor]
"""A state of the wrapped layer: ours, or torch's ``hx``."""


class TruncatedState(NamedTuple):
    """What ``TruncatedRNN(start="zero")`` carries: the inputs that later windows still see.

    Every field is ``(1, B, ...)``, without ``B`` when unbatched.

    Example:
        >>> state = TruncatedRNN(nn.GRU(3, 8), window=5).initial_state(2)
        >>> state.input.shape, state.step.tolist()
        (torch.Size([1, 2, 4, 3]), [[0, 0]])
    """

    input: Tensor
    """``(..., window - 1, input_size)``: the last inputs, oldest first; zeros where there was none yet."""
    step: Tensor
    """``(...)`` int64: steps since the row's start."""

    nbytes = property(states.nbytes)
    detach = states.detach
    to = states.to
    select = states.select
    cat = staticmethod(states.cat)


states.register_state(TruncatedState, "remanence.nn.TruncatedState")


class TruncatedRNN(StreamingCore[Any]):
    """A recurrent layer that starts again for every output, ``window`` steps back, for all outputs at once.

    With ``start="zero"`` it is the feed-forward model of Miller and Hardt, "When recurrent models don't need to be
    recurrent", 2018: output ``t`` is the last one of a run from the empty state over the inputs ``t - window + 1`` to
    ``t`` (fewer at the start of a row). With ``start="carried"`` that run starts from the state that the full run has
    there, cut from the graph: outputs are those of the layer itself, and gradients reach ``window`` steps back from
    *every* output (sliding-window truncated backpropagation).

    Windows run in parallel as rows of one batch: ``T * B`` rows of ``window`` steps, in time and in memory.

    Args:
        layer: a recurrent layer of this package, or ``nn.RNN``, ``nn.LSTM``, ``nn.GRU``; one direction. It keeps its
            parameters, and its ``batch_first`` decides the layout.
        window: inputs that an output sees, or that its gradient reaches, its own included.
        start: ``"zero"`` or ``"carried"``.

    Inputs:
        - input: ``(T, B, input_size)``, ``(B, T, input_size)`` if the layer is ``batch_first``, ``(T, input_size)``,
          or a ``PackedSequence``.
        - state: the state to continue from, or ``None``.

    Outputs:
        - output: like the input, with ``output_size`` features.
        - state: with ``start="zero"`` a :class:`TruncatedState`, and chunks equal the whole, gradients included; with
          ``start="carried"`` the state of the layer itself after the full run, cut from the graph, so that gradients
          end at the beginning of the call.

    Example:
        >>> layer = nn.LSTM(3, 8)
        >>> model = TruncatedRNN(layer, window=10)
        >>> x = torch.randn(30, 2, 3)
        >>> output, state = model(x)
        >>> alone, _ = layer(x[20:])
        >>> torch.allclose(output[-1], alone[-1], atol=1e-6)
        True
    """

    def __init__(self, layer: nn.Module, window: int, start: Literal["zero", "carried"] = "zero") -> None:
        super().__init__()
        self.window = dimension("window", window)
        self.start = one_of("start", start, ("zero", "carried"))
        self.layer = wrapped = _check_layer(layer, start)
        self.input_size = wrapped.input_size
        self.hidden_size = wrapped.hidden_size
        self.batch_first = wrapped.batch_first
        if isinstance(wrapped, RecurrentLayer):
            self.output_size = wrapped.output_size
        else:
            self.output_size = wrapped.proj_size or wrapped.hidden_size

    def forward(self, input: _sequence.SequenceInput, state: object = None) -> tuple[Any, Any]:
        """Run over a sequence; shapes are in the class docstring."""
        x, lengths, layout = _sequence.enter(input, self.input_size, self.batch_first, self._like())
        past = self._enter_state(state, x.shape[1], layout)
        if self.start == "zero":
            output, after = self._run_zero(x, lengths, past, fresh=state is None)
        else:
            output, after = self._run_carried(x, lengths, past)
        return _sequence.leave(output, layout), layout.outer_state(after)

    def extra_repr(self) -> str:
        """Window and start."""
        return f"window={self.window}, start={self.start!r}"

    # ---- the two starts ---------------------------------------------------------------------------------------------

    def _run_zero(
        self, x: Tensor, lengths: Tensor | None, past: TruncatedState, fresh: bool
    ) -> tuple[Tensor, TruncatedState]:
        span = self.window
        if fresh:
            span = min(span, len(x))  # no window is longer than the row
        joined = torch.cat([past.input[0].transpose(0, 1), x])
        output = self._run_windows(joined[self.window - span :], past.step[0], span, None)
        steps = lengths
        if steps is None:
            steps = torch.full_like(past.step[0], len(x))
        # Rows of a packed input end at different steps, so each takes its own last inputs.
        last = steps + torch.arange(self.window - 1, device=x.device).unsqueeze(1)
        kept = joined.gather(0, last.unsqueeze(2).expand(-1, -1, self.input_size))
        return output, TruncatedState(kept.transpose(0, 1).unsqueeze(0), past.step + steps)

    def _run_carried(self, x: Tensor, lengths: Tensor | None, given: Carried) -> tuple[Tensor, Carried]:
        length, batch = x.shape[:2]
        after = self._full_run(x, given)
        span = min(self.window, length)
        starts = _join_rows([given] * span + after[: length - span])
        padded = nn.functional.pad(x, (0, 0, 0, 0, span - 1, 0))
        output = self._run_windows(padded, torch.zeros(batch, dtype=torch.int64, device=x.device), span, starts)
        if lengths is None:
            return output, after[-1]
        ends = [states.select(after[end - 1], [row]) for row, end in enumerate(lengths.tolist())]
        return output, _join_rows(ends)

    @torch.no_grad()
    def _full_run(self, x: Tensor, state: Carried) -> list[Carried]:
        """The layer's state after every step, without gradient."""
        after = []
        state = states.detach(state)
        for x_t in x.unbind():
            _, state = self._run_layer(x_t.unsqueeze(0), state)
            after.append(state)
        return after

    def _run_windows(self, joined: Tensor, before: Tensor, span: int, starts: Carried | None) -> Tensor:
        """Run every window and take the output at its end.

        Args:
            joined: ``(span - 1 + T, B, input_size)``, what came before the call and the call's input.
            before: ``(B,)`` int64, how many of the steps before the call there really are, if below ``span``.
            span: steps of the longest window.
            starts: states of ``T * B`` rows, steps outermost, or ``None`` for empty ones.

        Returns:
            ``(T, B, output_size)``.
        """
        batch = joined.shape[1]
        length = len(joined) - span + 1
        time = torch.arange(length, device=joined.device).unsqueeze(1)
        size = (before + time + 1).clamp(max=span)  # (T, B)
        # A window shorter than `span` stands at the beginning of its row, and its last input fills the rest: what the
        # layer makes of that comes after the output that counts.
        own = (time + span - size) + torch.arange(span, device=joined.device)[:, None, None]
        index = torch.minimum(own, time + span - 1).reshape(span * length, batch, 1)
        windows = joined.gather(0, index.expand(-1, -1, joined.shape[2]))
        output, _ = self._run_layer(windows.reshape(span, length * batch, -1), starts)
        ends = (size - 1).reshape(1, -1, 1).expand(-1, -1, output.shape[2])
        return output.gather(0, ends).reshape(length, batch, -1)

    def _run_layer(self, x: Tensor, state: Carried | None) -> tuple[Tensor, Carried]:
        """The layer on ``(T, B, input_size)``, whatever its ``batch_first``."""
        if not self.batch_first:
            return self.layer(x, state)
        output, after = self.layer(x.transpose(0, 1), state)
        return output.transpose(0, 1), after

    # ---- states -----------------------------------------------------------------------------------------------------

    def _like(self) -> Tensor:
        return next(self.layer.parameters())

    def _empty(self, rows: int) -> TruncatedState | Carried:
        """No inputs, or the wrapped layer's own state before the first step: torch's layers take zeros."""
        like = self._like()
        if self.start == "zero":
            step = torch.zeros(1, rows, dtype=torch.int64, device=like.device)
            return TruncatedState(like.new_zeros(1, rows, self.window - 1, self.input_size), step)
        layer = self.layer
        if isinstance(layer, RecurrentLayer):
            return layer.initial_state(rows)
        h = like.new_zeros(layer.num_layers, rows, self.output_size)
        if isinstance(layer, nn.LSTM):
            return h, h.new_zeros(layer.num_layers, rows, self.hidden_size)
        return h

    def _enter_state(self, state: Any, rows: int, layout: _sequence.CallLayout) -> Any:
        """As the base class does; a state of the wrapped layer is checked by that layer."""
        if state is None or self.start == "zero":
            return super()._enter_state(state, rows, layout)
        if isinstance(self.layer, RecurrentLayer):
            return self.layer._enter_state(state, rows, batched=layout.batched)
        if isinstance(state, TruncatedState | State):
            expected = f"be a state of the wrapped {type(self.layer).__name__}"
            raise TypeError(message("state", expected, type(state).__name__))
        return layout.inner_state(state)


def _check_layer(layer: nn.Module, start: str) -> RecurrentLayer | nn.RNNBase:
    if not isinstance(layer, RecurrentLayer | nn.RNNBase):
        raise TypeError(message("layer", "be a recurrent layer of remanence.nn or torch.nn", type(layer).__name__))
    if layer.bidirectional:
        hint = "A window ends at its output; wrap two layers of one direction"
        raise ValueError(message("layer", "run forward only", "bidirectional=True", hint))
    if start == "carried" and layer.dropout:
        hint = "Windows would draw other masks than the full run that they start from"
        raise ValueError(message("layer", "have dropout 0 with start='carried'", layer.dropout, hint))
    return layer


def _join_rows(parts: Sequence[Carried]) -> Carried:
    """The rows of several states in one batch, ours or torch's."""
    if isinstance(parts[0], State):
        return State.cat(parts)  # type: ignore[arg-type]  # fills the slots of memories that have grown apart
    return _pytree.tree_map(lambda *fields: torch.cat(fields, dim=1), *parts)
