"""The one walk over a stack of layers and directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence

from ._row_steps import reverse_rows
from ._state import State, stack_states, state_of_layer

Sequence = TypeVar("Sequence", Tensor, PackedSequence)
ScanOne: TypeAlias = Callable[[Sequence, State | None, int], tuple[Sequence, State]]
"""Called as ``scan_one(x, start, index)``: runs one layer and direction, and returns its output and final state."""


def walk_stack(
    x: Sequence,
    scan_one: ScanOne[Sequence],
    state: State | None = None,
    *,
    layers: int,
    directions: int = 1,
    lengths: Tensor | None = None,
    drop: float = 0.0,
) -> tuple[Sequence, State]:
    """Runs every layer and direction in turn; the output of both directions is the input of the next layer.

    Args:
        x: ``(T, B, input_size)``, or packed if there is one direction.
        scan_one: called as ``scan_one(x, start, index)``, where ``start`` has fields ``(B, ...)`` and ``index`` counts
            layers and directions as the state does; returns output and final state. The second direction is given its
            rows reversed, and its output is turned back.
        state: fields ``(layers * directions, B, ...)``; ``None`` starts empty.
        layers: how many there are.
        directions: 2 runs every layer from the end too.
        lengths: ``(B,)`` int64, steps of each row, if they differ.
        drop: share of the outputs between layers that is set to zero.

    Returns:
        The output of the last layer and the final state.

    Example:
        >>> from remanence.ops import ScanSpec, Weights, scan
        >>> stack = [Weights(ih=torch.randn(4, n), hh=torch.randn(4, 4)) for n in (3, 4)]
        >>> def one(x, start, index):
        ...     return scan(x, stack[index], start, spec=ScanSpec("rnn"))[:2]
        >>> output, state = walk_stack(torch.randn(6, 2, 3), one, layers=2)
        >>> output.shape, state.s.shape
        (torch.Size([6, 2, 4]), torch.Size([2, 2, 4]))
    """
    finals: list[State] = []
    for layer in range(layers):
        outputs: list[Any] = []
        for direction in range(directions):
            index = len(finals)
            start = state_of_layer(state, index)
            if direction:
                backward, final = scan_one(reverse_rows(x, lengths), start, index)  # type: ignore[arg-type]
                outputs.append(reverse_rows(backward, lengths))  # type: ignore[arg-type]
            else:
                output, final = scan_one(x, start, index)
                outputs.append(output)
            finals.append(final)
        x = outputs[0]
        if directions > 1:
            x = torch.cat(outputs, dim=-1)  # type: ignore[assignment]
        if drop and layer < layers - 1:
            x = _drop(x, drop)
    return x, stack_states(finals)


def _drop(x: Sequence, share: float) -> Sequence:
    if isinstance(x, PackedSequence):
        return x._replace(data=dropout(x.data, share))
    return dropout(x, share)
