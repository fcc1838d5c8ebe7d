"""A stack of dilated causal convolutions with the protocol of the recurrent layers."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from remanence._validate import MOST_PARTS, boolean, dimension, positive_int, probability
from remanence.ops import states

from ._core_layouts import StreamingCore, enter_rows, leave_rows
from ._options import Device, Factory
from ._sequence import SequenceInput


class ConvolutionState(NamedTuple):
    """What a stack of causal convolutions carries: the last inputs of every convolution, zeros at the start.

    Every field is ``(1, B, ...)``, without ``B`` when unbatched.

    Example:
        >>> state = CausalConvolution(2, 4, depth=2, kernel_size=3).initial_state(5)
        >>> state.input.shape, state.hidden.shape
        (torch.Size([1, 5, 2, 2]), torch.Size([1, 5, 10, 4]))
    """

    input: Tensor
    """``(..., kernel_size - 1, input_size)``: what the first convolution saw last."""
    hidden: Tensor
    """``(..., slots, channels)``: what the others saw last, one convolution after the other."""
    step: Tensor
    """``(...)`` int64: steps since the row's start."""

    nbytes = property(states.nbytes)
    detach = states.detach
    to = states.to
    select = states.select
    cat = staticmethod(states.cat)


states.register_state(ConvolutionState, "remanence.nn.ConvolutionState")


class CausalConvolution(StreamingCore[ConvolutionState]):
    """Residual blocks of two causal convolutions each, with dilation 1, 2, 4, ... (a temporal convolutional network).

    A block is ``relu(skip(x) + drop(relu(conv(drop(relu(conv(x)))))))``, after Bai, Kolter and Koltun, "An empirical
    evaluation of generic convolutional and recurrent networks for sequence modeling", 2018, without their weight
    normalisation; ``skip`` is the identity, or a linear map where the number of features changes.

    Args:
        input_size: features of the input.
        channels: features of every block's output.
        depth: number of blocks.
        kernel_size: steps that one convolution combines.
        dropout: probability of dropping after each convolution in training.
        batch_first: whether input and output are ``(B, T, ...)``.
        device: of the parameters.
        dtype: of the parameters.

    Inputs:
        - input: ``(T, B, input_size)``, ``(B, T, input_size)`` with `batch_first`, ``(T, input_size)``, or a
          `PackedSequence`.
        - state: the state to continue from, or None.

    Outputs:
        - output: like the input, with ``channels`` features.
        - state: :class:`ConvolutionState`, of fixed size.

    Example:
        >>> core = CausalConvolution(3, 8, depth=4, kernel_size=3)
        >>> output, state = core(torch.randn(20, 5, 3))
        >>> output.shape, core.receptive_field
        (torch.Size([20, 5, 8]), 61)
    """

    def __init__(
        self,
        input_size: int,
        channels: int,
        depth: int,
        kernel_size: int = 3,
        *,
        dropout: float = 0.0,
        batch_first: bool = False,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size = dimension("input_size", input_size)
        self.channels = self.hidden_size = self.output_size = dimension("channels", channels)
        self.depth = positive_int("depth", depth, maximum=MOST_PARTS)
        self.kernel_size = dimension("kernel_size", kernel_size)
        self.batch_first = boolean("batch_first", batch_first)
        like = Factory(device=device, dtype=dtype)
        sizes = [input_size] + [channels] * (2 * depth - 1)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, channels, kernel_size, dilation=2 ** (number // 2), **like)
            for number, size in enumerate(sizes)
        )
        self.skip: nn.Module = nn.Identity()
        if input_size != channels:
            self.skip = nn.Linear(input_size, channels, **like)
        self.dropout = nn.Dropout(probability("dropout", dropout))

    @property
    def receptive_field(self) -> int:
        """Steps that one output can see, its own included: ``1 + 2 (kernel_size - 1) (2^depth - 1)``."""
        return 1 + sum(self._spans())

    def forward(self, input: SequenceInput, state: ConvolutionState | None = None) -> tuple[Any, ConvolutionState]:
        """Runs over a sequence; shapes are in the class docstring."""
        x, padded, layout = enter_rows(input, self, next(self.parameters()))
        past = self._enter_state(state, x.shape[0], layout)
        steps = torch.full_like(past.step[0], x.shape[1])
        if padded is not None:
            steps = (~padded).sum(1)
        seen = [past.input[0], *past.hidden[0].split(self._spans()[1:], dim=1)]
        for number in range(self.depth):
            first = 2 * number
            second = first + 1
            inner, seen[first] = self._convolve(first, x, seen[first], steps)
            inner, seen[second] = self._convolve(second, inner, seen[second], steps)
            if number == 0:
                x = self.skip(x)
            x = (x + inner).relu()
        after = ConvolutionState(seen[0].unsqueeze(0), torch.cat(seen[1:], dim=1).unsqueeze(0), past.step + steps)
        return leave_rows(x, layout), layout.outer_state(after)

    def _spans(self) -> list[int]:
        """How far back each convolution looks."""
        return [(self.kernel_size - 1) * 2 ** (number // 2) for number in range(2 * self.depth)]

    def _convolve(self, number: int, x: Tensor, seen: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
        joined = torch.cat([seen, x], dim=1)
        output = self.convolutions[number](joined.transpose(1, 2)).transpose(1, 2)
        # Rows of a packed input end at different steps, so each takes its own last inputs.
        last = steps.unsqueeze(1) + torch.arange(seen.shape[1], device=x.device)
        return self.dropout(output.relu()), torch.take_along_dim(joined, last.unsqueeze(2), dim=1)

    def _empty(self, rows: int) -> ConvolutionState:
        weight = next(self.parameters())
        spans = self._spans()
        step = torch.zeros(1, rows, dtype=torch.int64, device=weight.device)
        first = weight.new_zeros(1, rows, spans[0], self.input_size)
        return ConvolutionState(first, weight.new_zeros(1, rows, sum(spans[1:]), self.channels), step)
