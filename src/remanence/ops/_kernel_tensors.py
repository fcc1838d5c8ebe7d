"""The tensors of the kernel's operators by name: which they are, their shapes, and which of them have a gradient."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._cells import IN_KERNEL
from ._kernel_config import BUFFER, NO_MEMORY, SAVE_NOTHING, Config


class ScanInputs(NamedTuple):
    """Tensors of the forward operator, in the order of its schema."""

    x: Tensor
    w_ih: Tensor
    w_hh: Tensor
    b_ih: Tensor | None
    b_hh: Tensor | None
    query: Tensor | None
    key: Tensor | None
    score: Tensor | None
    own: Tensor | None
    gate: Tensor | None
    gate_bias: Tensor | None
    s: Tensor | None
    c: Tensor | None
    h: Tensor | None
    recent: Tensor | None
    recent_score: Tensor | None
    relevant: Tensor | None
    relevant_score: Tensor | None
    relevant_step: Tensor | None
    step: Tensor | None
    reset: Tensor | None
    lengths: Tensor | None
    cut_h: Tensor | None
    cut_c: Tensor | None
    h_offset: Tensor | None
    forced: Tensor | None


class ScanOutputs(NamedTuple):
    """Tensors that the forward operator makes, in the order of its schema; the state is the final one."""

    output: Tensor
    s: Tensor
    c: Tensor
    h: Tensor
    recent: Tensor
    recent_score: Tensor
    relevant: Tensor
    relevant_score: Tensor
    relevant_step: Tensor
    step: Tensor
    slot: Tensor
    displaced: Tensor
    history: Tensor
    """What the backward pass needs, in one piece; empty if there will be none."""


NO_GRADIENT = (
    "recent_score",
    "relevant_score",
    "relevant_step",
    "step",
    "reset",
    "lengths",
    "cut_h",
    "cut_c",
    "forced",
)
"""Inputs that are numbers to count or to compare: no gradient reaches them."""
NOT_KEPT = ("recent_score", "relevant_score", "forced")
"""Inputs that the backward operator does without: what they decided is in the log."""
COTANGENTS = ("output", "s", "c", "h", "recent", "relevant")
"""Outputs that have a gradient, in the order in which the backward operator takes it."""
SCORES_MADE = ("recent_score", "relevant_score")
"""Outputs of numbers without a gradient; the counts are whole numbers, of which torch knows that."""
COUNTS_MADE = ("relevant_step", "step", "slot", "displaced")


def _places(fields: tuple[str, ...], names: Iterable[str]) -> tuple[int, ...]:
    return tuple(fields.index(name) for name in names)


GRADIENT_PLACES = _places(ScanInputs._fields, [name for name in ScanInputs._fields if name not in NO_GRADIENT])
KEPT_PLACES = _places(ScanInputs._fields, [name for name in ScanInputs._fields if name not in NOT_KEPT])
COTANGENT_PLACES = _places(ScanOutputs._fields, COTANGENTS)
SCORE_PLACES = _places(ScanOutputs._fields, SCORES_MADE)
COUNT_PLACES = _places(ScanOutputs._fields, (*SCORES_MADE, *COUNTS_MADE))
SAVED_PLACES = _places(ScanOutputs._fields, ("output", "slot", "history"))
HISTORY = ScanOutputs._fields.index("history")


@cache
def _history_of(config: Config, hidden: int, batch: int, offset: bool) -> tuple[int, int, int]:
    """Numbers of the history for every place, for every chunk, and places of a chunk: the kernel knows."""
    with torch._C._DisableTorchDispatch():  # no tensor: nothing to trace
        return torch.ops.remanence.history_of(list(config), hidden, batch, offset)


def history_numbers(inputs: ScanInputs, config: Config) -> int:
    """How many numbers the forward pass saves; symbolic where the number of steps or rows is."""
    if config.save == SAVE_NOTHING:
        return 0
    hidden = int(inputs.w_hh.shape[1])
    offset = inputs.h_offset is not None
    each, chunked, _ = _history_of(config, hidden, 1, offset)
    places = math.prod(inputs.x.shape[:-1])
    if not chunked:
        return places * each
    # Only here do sizes depend on how many rows there are, so only here need that be a number.
    _, _, chunk = _history_of(config, hidden, int(_rows(inputs)), offset)
    return places * each + places // chunk * chunked


def _rows(inputs: ScanInputs) -> int:
    if inputs.x.dim() == 3:
        return inputs.x.shape[1]
    assert inputs.lengths is not None
    return inputs.lengths.shape[0]


def one_device(tensors: Iterable[Tensor | None]) -> None:
    """Refuses tensors of several devices: shapes alone (device "meta") would be taken for an answer."""
    devices = {tensor.device.type for tensor in tensors if tensor is not None}
    if len(devices) > 1:
        raise RuntimeError(f"all tensors must be on one device; got {', '.join(sorted(devices))}. Move them with .to()")


def _fake_state(inputs: ScanInputs, config: Config) -> list[Tensor]:
    """The final state but its counts."""
    x = inputs.x
    batch = _rows(inputs)
    hidden = inputs.w_hh.shape[1]
    ring = max(config.recent, 0)
    if config.grows:
        ring = x.shape[0]
        if inputs.recent is not None:
            ring += inputs.recent.shape[1]
    cell = IN_KERNEL[config.cell]
    leaks = config.memory != NO_MEMORY and cell.leaks
    shapes = (
        (batch, hidden),
        (batch, hidden * cell.has_c),
        (batch, hidden * leaks),
        (batch, ring, hidden),
        (batch, ring * config.screens),
        (batch, config.relevant, hidden),
        (batch, config.relevant * (config.memory == BUFFER)),
    )
    return [x.new_empty(shape) for shape in shapes]


def fake_forward(*args: Any) -> ScanOutputs:
    *tensors, numbers = args
    inputs = ScanInputs(*tensors)
    config = Config(*numbers)
    one_device(inputs)
    x = inputs.x
    batch = _rows(inputs)
    by_time = tuple(x.shape[:-1])
    counts = [(batch, config.relevant), (batch,), by_time, by_time]
    whole = [x.new_empty(shape, dtype=torch.int64) for shape in counts]
    output = x.new_empty((*by_time, inputs.w_hh.shape[1] * config.output_parts))
    history = x.new_empty(history_numbers(inputs, config))
    return ScanOutputs._make((output, *_fake_state(inputs, config), *whole, history))


def fake_backward(*args: Any) -> tuple[Tensor, ...]:
    *tensors, _config, wanted = args
    one_device(tensors)
    kept = dict(zip(KEPT_PLACES, tensors[len(COTANGENTS) :], strict=False))
    gradients = []
    for bit, place in enumerate(GRADIENT_PLACES):
        tensor = kept[place]
        if tensor is not None and wanted >> bit & 1:
            gradients.append(torch.empty_like(tensor, memory_format=torch.contiguous_format))
        else:
            gradients.append(kept[0].new_empty(0))  # nobody asks; `x`, the first, is always there
    return tuple(gradients)
