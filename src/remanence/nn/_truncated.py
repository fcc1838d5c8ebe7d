"""The feed-forward twin of a recurrent layer: every output sees a window of the input and nothing before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from remanence._validate import dimension, message, one_of
from remanence.ops import State, states

from . import _core_layouts, _sequence
from ._layer import RecurrentLayer


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


class TruncatedRNN(nn.Module):
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
        self.layer = _check_layer(layer, start)
        self.input_size = int(layer.input_size)  # type: ignore[arg-type]
        self.hidden_size = int(layer.hidden_size)  # type: ignore[arg-type]
        self.batch_first = bool(layer.batch_first)

    @property
    def output_size(self) -> int:
        """Features of the output."""
        layer = self.layer
        return layer.output_size if isinstance(layer, RecurrentLayer) else layer.proj_size or layer.hidden_size

    def initial_state(self, batch_size: int | None = None) -> Any:
        """The state before the first step.

        Args:
            batch_size: rows; ``None`` for unbatched input.
        """
        rows = 1 if batch_size is None else dimension("batch_size", batch_size)
        if self.start == "zero":
            state = self._no_inputs(rows)
            return states.drop_row(state) if batch_size is None else state
        return _each(Tensor.squeeze, self._empty(rows), 1) if batch_size is None else self._empty(rows)

    def forward(self, input: _sequence.SequenceInput, state: Any = None) -> tuple[Any, Any]:
        """Run over a sequence; shapes are in the class docstring."""
        x, lengths, layout = _sequence.enter(input, self.input_size, self.batch_first, self._like())
        run = self._run_zero if self.start == "zero" else self._run_carried
        output, after = run(x, lengths, state, layout)
        if not layout.batched:
            after = _each(Tensor.squeeze, after, 1)
        return _sequence.leave(output, layout), after

    def step(self, input_t: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """One step of a stream: the same numbers as the whole run.

        Args:
            input_t: ``(B, input_size)``, or ``(input_size,)`` unbatched.
            state: the state so far; ``None`` at the start.

        Returns:
            The output, ``(B, output_size)`` or ``(output_size,)``, and the next state.
        """
        return _core_layouts.step_of(self, input_t, state)

    def extra_repr(self) -> str:
        """Window and start."""
        return f"window={self.window}, start={self.start!r}"

    # ---- the two starts ---------------------------------------------------------------------------------------------

    def _run_zero(
        self, x: Tensor, lengths: Tensor | None, state: Any, layout: _sequence.Layout
    ) -> tuple[Tensor, TruncatedState]:
        length, batch = x.shape[:2]
        past = self._no_inputs(batch)
        span = min(self.window, length) if state is None else self.window  # no window is longer than the row
        if state is not None:
            past = _core_layouts.enter_state(state, past, layout)
        joined = torch.cat([past.input[0].transpose(0, 1), x])
        output = self._run_windows(joined[self.window - span :], past.step[0], span, None)
        steps = torch.full_like(past.step[0], length) if lengths is None else lengths
        # Rows of a packed input end at different steps, so each takes its own last inputs.
        last = steps + torch.arange(self.window - 1, device=x.device).unsqueeze(1)
        kept = joined.gather(0, last.unsqueeze(2).expand(-1, -1, self.input_size))
        return output, TruncatedState(kept.transpose(0, 1).unsqueeze(0), past.step + steps)

    def _run_carried(
        self, x: Tensor, lengths: Tensor | None, state: Any, layout: _sequence.Layout
    ) -> tuple[Tensor, Any]:
        length, batch = x.shape[:2]
        given = self._empty(batch) if state is None else self._enter_state(state, batch, layout)
        states = self._full_run(x, given)
        span = min(self.window, length)
        starts = _join_rows([given] * span + states[: length - span])
        padded = nn.functional.pad(x, (0, 0, 0, 0, span - 1, 0))
        output = self._run_windows(padded, torch.zeros(batch, dtype=torch.int64, device=x.device), span, starts)
        if lengths is None:
            return output, states[-1]
        ends = [_each(Tensor.narrow, states[end - 1], 1, row, 1) for row, end in enumerate(lengths.tolist())]
        return output, _join_rows(ends)

    @torch.no_grad()
    def _full_run(self, x: Tensor, state: Any) -> list[Any]:
        """The layer's state after every step, without gradient."""
        states = []
        state = _each(Tensor.detach, state)
        for x_t in x.unbind():
            _, state = self._run_layer(x_t.unsqueeze(0), state)
            states.append(state)
        return states

    def _run_windows(self, joined: Tensor, before: Tensor, span: int, starts: Any) -> Tensor:
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

    def _run_layer(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The layer on ``(T, B, input_size)``, whatever its ``batch_first``."""
        if not self.batch_first:
            return self.layer(x, state)
        output, after = self.layer(x.transpose(0, 1), state)
        return output.transpose(0, 1), after

    # ---- states -----------------------------------------------------------------------------------------------------

    def _like(self) -> Tensor:
        return next(self.layer.parameters())

    def _no_inputs(self, rows: int) -> TruncatedState:
        like = self._like()
        step = torch.zeros(1, rows, dtype=torch.int64, device=like.device)
        return TruncatedState(like.new_zeros(1, rows, self.window - 1, self.input_size), step)

    def _empty(self, rows: int) -> Any:
        """The wrapped layer's own state before the first step: torch's layers take zeros."""
        layer = self.layer
        if isinstance(layer, RecurrentLayer):
            return layer.initial_state(rows)
        h = self._like().new_zeros(layer.num_layers, rows, self.output_size)
        return (h, h.new_zeros(layer.num_layers, rows, self.hidden_size)) if isinstance(layer, nn.LSTM) else h

    def _enter_state(self, state: Any, batch: int, layout: _sequence.Layout) -> Any:
        """Checks a state of the wrapped layer and gives it a batch dimension; torch's layers check their own."""
        if isinstance(self.layer, RecurrentLayer):
            return self.layer._enter_state(state, batch if layout.batched else None)
        if isinstance(state, TruncatedState | State):
            expected = f"be a state of the wrapped {type(self.layer).__name__}"
            raise TypeError(message("state", expected, type(state).__name__))
        return state if layout.batched else _each(Tensor.unsqueeze, state, 1)


def _check_layer(layer: Any, start: str) -> RecurrentLayer | nn.RNNBase:
    if not isinstance(layer, RecurrentLayer | nn.RNNBase):
        raise TypeError(message("layer", "be a recurrent layer of remanence.nn or torch.nn", type(layer).__name__))
    if layer.bidirectional:
        hint = "A window ends at its output; wrap two layers of one direction"
        raise ValueError(message("layer", "run forward only", "bidirectional=True", hint))
    if start == "carried" and layer.dropout:
        hint = "Windows would draw other masks than the full run that they start from"
        raise ValueError(message("layer", "have dropout 0 with start='carried'", layer.dropout, hint))
    return layer


def _each(change: Any, state: Any, *args: int) -> Any:
    """Apply a method of tensors to every field of a state, be it ours or torch's."""
    return states.map_tensors(lambda field: change(field, *args), state)


def _join_rows(states: Sequence[Any]) -> Any:
    """The rows of several states in one batch, ours or torch's."""
    if isinstance(states[0], State):
        return State.cat(states)
    if isinstance(states[0], tuple):
        return tuple(torch.cat(parts, dim=1) for parts in zip(*states, strict=True))
    return torch.cat(list(states), dim=1)
