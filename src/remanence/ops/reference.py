"""The scan in plain torch: the specification of every recurrent layer.

It is written to be read beside the papers: the loop of :func:`scan` is Algorithm 1 of Kerg et al. (2020), for any cell
and any memory. Lines 3 to 11 of it, who is held and how that is read, are :meth:`MemoryRun.attend`; `_buffer.py` has
them for the paper's own memory. The fused kernel must agree with this file; nothing else defines the layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ._log import Log, Trace
from ._memory import MemoryRun, NothingHeld
from ._row_steps import last_of_rows, row_positions
from ._spec import ScanSpec
from ._state import EMPTY, State
from ._weights import Weights
from .state_shapes import check_counts, check_held, check_state, initial_state, start_afresh
from .states import empty_rows, map_tensors, where_rows


def scan(  # noqa: D417 - described once, in `remanence.ops.scan`
    x: Tensor,
    weights: Weights,
    state: State | None,
    *,
    spec: ScanSpec,
    reset: Tensor | None = None,
    lengths: Tensor | None = None,
    cut_h: Tensor | None = None,
    cut_c: Tensor | None = None,
    h_offset: Tensor | None = None,
    forced_log: Log | None = None,
    trace: list[Trace] | None = None,
) -> tuple[Tensor, State, Log]:
    """One layer, one direction, all steps. Arguments as in :func:`remanence.ops.scan`.

    Args:
        trace: if given, a :class:`Trace` of the whole run is appended to it.
    """
    length, batch = x.shape[:2]
    fresh = state is None
    state = _start(state, spec, weights, batch, reset)
    memory: MemoryRun = NothingHeld(state)
    if spec.read is not None:
        memory = spec.rule.begin(spec.read, weights, state, fresh, lengths, length)
    main, double = _make_chains(spec, weights, state)  # the second for gradients of one hop alone
    positions = row_positions(state.step, length, reset)
    forced = None
    if forced_log is not None:
        forced = forced_log.slot
    masks = (reset, cut_h, cut_c)
    outputs: list[Tensor] = []
    entries: list[Log] = []
    readings: list[_Reading] = []
    for now in _steps(spec.cell.project(x, weights), positions, lengths, masks, h_offset, forced):
        _start_step(now, main, double, memory, cut_reads=spec.cut_reads)
        s_before = main.s
        h = main.propose(now)  # line 2 of Algorithm 1
        if double is not None:
            double.propose(now)
        read = memory.attend(h, s_before, now.position, now.active, now.forced)  # lines 3 to 11, and the sum of 12
        s = main.close(now, read)  # line 12
        if double is not None and read is not None:
            double.close(now, read.detach())  # it never sees where a read comes from
        outputs.append(_output(spec, h, s, read, memory, now))
        if trace is not None:  # before anything is stored: what was held when it was read
            readings.append(_Reading(memory.weights, memory.held_steps(now.position), memory.scores))
        memory.store((double or main).closed, now.position, now.active, now.forced)
        entries.append(Log(memory.slot, memory.displaced))
    log = Log(*map(torch.stack, zip(*entries, strict=True)))
    if trace is not None:
        trace.append(_make_trace(readings, log, positions, spec))
    return torch.stack(outputs), _final_state(state, main, double, memory, positions, lengths), log


def _start(state: State | None, spec: ScanSpec, weights: Weights, batch: int, reset: Tensor | None) -> State:
    """The state before the first step, checked; rows that are reset there hold nothing of what was given."""
    if state is None:
        return initial_state(spec, weights, batch)
    check_state(state, spec, spec.cell.hidden_size(weights), (batch,), weights.hh)
    check_counts(state.step)
    check_held(state.relevant_step, state.step)
    if reset is None:
        return state
    return start_afresh(state, reset[0], initial_state(spec, weights, batch))


class _Step(NamedTuple):
    """One step of the scan."""

    projected: Tensor
    """``(B, G)``: what the input gives to the gates."""
    position: Tensor
    """``(B,)`` int64: which step of its row this is."""
    active: Tensor
    """``(B,)`` bool: the rows that have not ended."""
    ended: Tensor | None
    """The others, where rows may end."""
    reset: Tensor | None
    """``(B,)`` bool, as the next two: the rows that start afresh."""
    cut_h: Tensor | None
    cut_c: Tensor | None
    h_offset: Tensor | None
    """``(B, n)``."""
    forced: Tensor | None
    """``(B,)`` int64: the slot to write, whatever the memory would choose."""

    def keep(self, before: Tensor, after: Tensor) -> Tensor:
        """What comes after the step, ``(B, n)``; in rows that have ended, what was before."""
        if self.ended is None:
            return after
        return where_rows(self.ended, before, after)


def _steps(
    projected: Tensor,
    positions: Tensor,
    lengths: Tensor | None,
    masks: tuple[Tensor | None, ...],
    h_offset: Tensor | None,
    forced: Tensor | None,
) -> Iterator[_Step]:
    """The steps one by one, from tensors ``(T, B, ...)``; ``masks`` say where to reset, to cut ``h``, to cut ``c``."""
    length = len(projected)
    active = torch.ones_like(positions, dtype=torch.bool)
    ended = None
    if lengths is not None:
        active = torch.arange(length, device=projected.device)[:, None] < lengths
        ended = ~active
        masks = map_tensors(lambda mask: mask & active, masks)  # nothing happens to a row that has ended
    columns: list[Sequence[Tensor | None]] = []
    for tensor in (projected, positions, active, ended, *masks, h_offset, forced):
        if tensor is None:
            columns.append([None] * length)
        else:
            # `tensor[t]` inside the loop would make the backward pass quadratic in T: unbind once.
            columns.append(tensor.unbind(0))
    return map(_Step._make, zip(*columns, strict=True))


class _Chain:
    """The recurrent path of the state: ``s``, ``c`` and, for the leak of a gated cell with memory, ``h``."""

    def __init__(self, spec: ScanSpec, weights: Weights, s: Tensor, c: Tensor, h: Tensor) -> None:
        self.spec = spec
        self.weights = weights
        self.s = s
        self.c = c
        self.h = h
        self.proposed = (h, c)
        self.closed = s

    def forget(self, rows: Tensor) -> None:
        self.s = empty_rows(rows, self.s)
        self.c = empty_rows(rows, self.c)
        self.h = empty_rows(rows, self.h)

    def cut_h(self, rows: Tensor) -> None:
        self.s = where_rows(rows, self.s.detach(), self.s)
        self.h = where_rows(rows, self.h.detach(), self.h)

    def cut_c(self, rows: Tensor) -> None:
        self.c = where_rows(rows, self.c.detach(), self.c)

    def propose(self, now: _Step) -> Tensor:
        """The new ``h``, from the input and the last macro-state: the memory has not been read yet."""
        leak = self.s
        if self.spec.keeps_leak:
            leak = self.h
        h, c = self.spec.cell.step(self.weights, now.projected, self.s, self.c, leak)
        if now.h_offset is not None:
            h = h + now.h_offset
        self.proposed = (h, c)
        return h

    def close(self, now: _Step, read: Tensor | None) -> Tensor:
        """Make the macro-state of what was proposed and what was read, and go on from it."""
        h, c = self.proposed
        s = h
        if read is not None and self.spec.read is not None:
            s = self.spec.read.join(h, read)
        self.closed = s
        self.s = now.keep(self.s, s)
        self.c = now.keep(self.c, c)
        if self.spec.keeps_leak:
            self.h = now.keep(self.h, h)
        return s


def _make_chains(spec: ScanSpec, weights: Weights, state: State) -> tuple[_Chain, _Chain | None]:
    """The chain that the loss sees and, for one-hop gradients, its double whose reads are cut off."""
    main = _Chain(spec, weights, state.s, state.c, state.h)
    if not state.chain.shape[1]:
        return main, None
    parts = state.chain.split([state.s.shape[1], state.c.shape[1], state.h.shape[1]], dim=1)
    return main, _Chain(spec, weights, *parts)


def _start_step(now: _Step, main: _Chain, double: _Chain | None, memory: MemoryRun, *, cut_reads: bool) -> None:
    """Rows that start afresh forget all; then gradients are cut."""
    for chain in (main, double):
        if chain is None:
            continue
        if now.reset is not None:
            chain.forget(now.reset)
        if now.cut_h is not None:
            chain.cut_h(now.cut_h)
        if now.cut_c is not None:
            chain.cut_c(now.cut_c)
    if now.reset is not None:
        memory.forget(now.reset)
    if now.cut_h is not None and cut_reads:
        memory.cut(now.cut_h)


def _output(spec: ScanSpec, h: Tensor, s: Tensor, read: Tensor | None, memory: MemoryRun, now: _Step) -> Tensor:
    """What the layer returns of a step: 0 in rows that have ended."""
    output = s
    if spec.output == "hidden":
        output = h
    elif spec.output == "summary" and read is not None:
        output = torch.cat([s, read], dim=1)
    elif spec.output == "weights" and read is not None:
        output = torch.cat([s, memory.weights_by_age(spec.output_size(s.shape[1]) - s.shape[1])], dim=1)
    if now.ended is None:
        return output
    return empty_rows(now.ended, output)


def _final_state(
    state: State, main: _Chain, double: _Chain | None, memory: MemoryRun, positions: Tensor, lengths: Tensor | None
) -> State:
    step = last_of_rows(positions, lengths) + 1
    held = memory.fields(step, lengths)
    if double is not None:
        held["chain"] = torch.cat([double.s, double.c, double.h], dim=1)
    return state._replace(s=main.s, c=main.c, h=main.h, step=step, **held)


class _Reading(NamedTuple):
    """One step of a :class:`Trace`, ``(B, slots)`` each."""

    weights: Tensor
    steps: Tensor
    scores: Tensor


def _make_trace(readings: list[_Reading], log: Log, positions: Tensor, spec: ScanSpec) -> Trace:
    """All readings with the same number of slots: a buffer that is still filling lacks its oldest ones."""
    widest = max(reading.weights.shape[1] for reading in readings)
    columns = []
    for column, filling in zip(zip(*readings, strict=True), (0.0, EMPTY, -torch.inf), strict=True):
        padded = [F.pad(item, (widest - item.shape[1], 0), value=filling) for item in column]
        columns.append(torch.stack(padded).detach())
    entered = torch.where(log.slot == EMPTY, EMPTY, positions - spec.rule.entry_delay)
    weights, steps, scores = columns
    return Trace(weights, steps, scores, entered, log.displaced)
