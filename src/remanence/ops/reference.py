"""The scan in plain torch: the specification of every recurrent layer.

It is written to be read together with the papers. The fused kernel must agree with it; nothing else defines the layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from remanence._validate import MOST_STEPS, message

from ._log import Log, Trace
from ._memory import MemoryRun
from ._row_steps import last_of_rows, row_positions
from ._spec import ScanSpec
from ._state import EMPTY, EMPTY_SLOT, State
from ._weights import Weights
from .states import map_tensors

COUNTS = ("relevant_step", "step")
"""Fields of whole numbers, whatever the layer's dtype."""


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
    if state is not None:
        check_state(state, spec, spec.cell.hidden_size(weights), (batch,), weights.hh)
        _check_counts(state.step)
    if state is None:
        state = initial_state(spec, weights, batch)
    elif reset is not None:
        state = _start_afresh(state, reset[0], initial_state(spec, weights, batch))
    memory = None
    if spec.read is not None:
        memory = spec.rule.begin(spec.read, weights, state, fresh, lengths, length)
    chains = _make_chains(spec, weights, state)
    positions = row_positions(state.step, length, reset)
    active = torch.ones_like(positions, dtype=torch.bool)
    ended = None
    if lengths is not None:  # nothing happens to a row that has ended
        active = torch.arange(length, device=x.device)[:, None] < lengths
        ended = ~active
        reset, cut_h, cut_c = map_tensors(lambda mask: mask & active, (reset, cut_h, cut_c))
    forced_slots = None
    if forced_log is not None:
        forced_slots = forced_log.slot
    outputs: list[Tensor] = []
    log: list[tuple[Tensor, Tensor]] = []
    readings: list[tuple[Tensor, Tensor, Tensor]] = []
    # `x[t]` inside the loop would make the backward pass quadratic in T: unbind once.
    inputs = spec.cell.project(x, weights).unbind(0)
    rows = _unbind(length, reset, cut_h, cut_c, h_offset, forced_slots, ended)
    for projected, position, live, masks in zip(inputs, positions.unbind(0), active.unbind(0), rows, strict=True):
        starts, no_h, no_c, offset, forced, frozen = masks
        for chain in chains:
            chain.forget(starts)
            chain.cut(no_h, no_c)
        if memory is not None:
            if starts is not None:
                memory.forget(starts)
            if no_h is not None and spec.cut_reads:
                memory.cut(no_h)
        s_before = chains[0].s
        proposals = [chain.propose(projected, offset) for chain in chains]
        h = proposals[0][0]
        read = None
        if memory is not None:
            read = memory.attend(h, s_before, position, live, forced)
        s = chains[0].close(*proposals[0], read, frozen)
        if read is not None and len(chains) > 1:  # the double never sees where a read comes from
            chains[1].close(*proposals[1], read.detach(), frozen)
        output = _output(spec, h, s, read, memory)
        if frozen is not None:
            output = torch.where(frozen[:, None], 0.0, output)
        outputs.append(output)
        if memory is not None:
            if trace is not None:  # before storing: what was held when it was read
                readings.append((memory.weights, memory.held_steps(position), memory.scores))
            memory.store(chains[-1].latest, position, live, forced)
            log.append((memory.slot, memory.displaced))
    made = _make_log(log, positions)
    if trace is not None:
        trace.append(_make_trace(readings, made, positions, spec))
    return torch.stack(outputs), _final_state(state, chains, memory, positions, lengths), made


def initial_state(spec: ScanSpec, weights: Weights, batch: int) -> State:
    """The empty state of one layer, fields ``(B, ...)``: all zero, nothing in memory, step 0."""
    return empty_state(spec, spec.cell.hidden_size(weights), (batch,), weights.hh)


def empty_state(spec: ScanSpec, hidden: int, batch: tuple[int, ...], like: Tensor) -> State:
    """The empty state with leading dimensions ``batch``, with dtype and device of ``like``."""
    *numbers, relevant_step, step = state_shapes(spec, hidden, batch).values()
    steps = torch.full(relevant_step, EMPTY, dtype=torch.int64, device=like.device)
    return State(
        *[like.new_zeros(shape) for shape in numbers],
        relevant_step=spec.rule.empty_steps(steps),
        step=torch.zeros(step, dtype=torch.int64, device=like.device),
    )


def state_shapes(spec: ScanSpec, hidden: int, batch: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes of the fields of the empty state with leading dimensions ``batch``, in the order of :class:`State`.

    Example:
        >>> list(state_shapes(ScanSpec("lstm"), 4, (1, 2)).values())[:2]
        [(1, 2, 4), (1, 2, 4)]
    """
    slots = spec.rule.slots_at_start()
    macro = spec.macro_size(hidden)
    cell = hidden * spec.cell.has_c
    leak = hidden * spec.keeps_leak
    return {
        "s": (*batch, macro),
        "c": (*batch, cell),
        "h": (*batch, leak),
        "chain": (*batch, (macro + cell + leak) * spec.rule.doubles_chain),
        "recent": (*batch, slots.recent, hidden),
        "recent_score": (*batch, slots.recent_score),
        "relevant": (*batch, slots.relevant, hidden),
        "relevant_score": (*batch, slots.relevant_score),
        "relevant_step": (*batch, slots.relevant),
        "step": batch,
    }


def check_state(state: State, spec: ScanSpec, hidden: int, batch: tuple[int, ...], like: Tensor) -> None:
    """Compares a given state with the empty one of leading dimensions ``batch``, dtype and device of ``like``.

    Raises:
        TypeError: a field is no tensor.
        ValueError: a field has another shape, dtype or device.
    """
    for (name, shape), have in zip(state_shapes(spec, hidden, batch).items(), state, strict=True):
        if not isinstance(have, Tensor):
            raise TypeError(message(f"state.{name}", "be a tensor", type(have).__name__))
        if have.shape != shape and not (name in spec.rule.growing and _differs_in_slots(name, have.shape, shape)):
            hint = "Does the state come from another layer or another batch size?"
            raise ValueError(message(f"state.{name}", f"have shape {shape}", str(tuple(have.shape)), hint))
        dtype = torch.int64 if name in COUNTS else like.dtype
        if have.dtype != dtype and not torch.is_autocast_enabled(have.device.type):
            raise ValueError(message(f"state.{name}", f"have dtype {dtype}", str(have.dtype), "Use state.to(...)"))
        if have.device != like.device:
            raise ValueError(message(f"state.{name}", f"be on {like.device}", str(have.device), "Use state.to(...)"))


def _differs_in_slots(name: str, have: tuple[int, ...], want: tuple[int, ...]) -> bool:
    """Whether two shapes agree but for how many slots there are."""
    if len(have) != len(want):
        return False
    slots = len(want) - 1
    if name in ("recent", "relevant"):  # states, (..., slots, n)
        slots -= 1
    return all(
        size == expected for place, (size, expected) in enumerate(zip(have, want, strict=True)) if place != slots
    )


def _check_counts(step: Tensor) -> None:
    """As the kernel does, where the numbers can be looked at: not while a transform or a compiler traces the scan."""
    traced = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    if traced or type(step) is not Tensor or step.device.type != "cpu" or not step.numel():
        return
    low, high = (int(bound) for bound in step.aminmax())
    if low < 0:
        raise RuntimeError(f"`state.step` must not be negative; got {low}")
    if high > MOST_STEPS:
        raise RuntimeError(f"`state.step` must be at most 2^62; got {high}")


def _start_afresh(state: State, rows: Tensor, empty: State) -> State:
    """The state with some rows empty, by selection: not even a key is computed from what they held."""
    fields = []
    for name, have, none in zip(State._fields, state, empty, strict=True):
        if name in EMPTY_SLOT and none.shape != have.shape:  # a growing memory
            missing = (0,) * 2 * (none.dim() - 2) + (0, have.shape[1] - none.shape[1])
            none = F.pad(none, missing, value=EMPTY_SLOT[name])
        fields.append(torch.where(rows.reshape(rows.shape + (1,) * (have.dim() - 1)), none, have))
    return State(*fields)


class _Chain:
    """The recurrent path of the state: ``s``, ``c`` and, for the leak of a gated cell with memory, ``h``."""

    def __init__(self, spec: ScanSpec, weights: Weights, s: Tensor, c: Tensor, h: Tensor) -> None:
        self.cell = spec.cell
        self.read = spec.read
        self.keeps_leak = spec.keeps_leak
        self.weights = weights
        self.s = s
        self.c = c
        self.h = h
        self.latest = s

    def forget(self, rows: Tensor | None) -> None:
        if rows is None:
            return
        self.s = torch.where(rows[:, None], 0.0, self.s)
        self.c = torch.where(rows[:, None], 0.0, self.c)
        self.h = torch.where(rows[:, None], 0.0, self.h)

    def cut(self, h_rows: Tensor | None, c_rows: Tensor | None) -> None:
        if h_rows is not None:
            self.s = torch.where(h_rows[:, None], self.s.detach(), self.s)
            self.h = torch.where(h_rows[:, None], self.h.detach(), self.h)
        if c_rows is not None:
            self.c = torch.where(c_rows[:, None], self.c.detach(), self.c)

    def propose(self, projected: Tensor, offset: Tensor | None) -> tuple[Tensor, Tensor]:
        leak = self.s
        if self.keeps_leak:
            leak = self.h
        h, c = self.cell.step(self.weights, projected, self.s, self.c, leak)
        if offset is not None:
            h = h + offset
        return h, c

    def close(self, h: Tensor, c: Tensor, summary: Tensor | None, frozen: Tensor | None) -> Tensor:
        """Make the macro-state and move on; ``frozen`` rows have ended and stay as they are."""
        s = h
        if summary is not None and self.read is not None:
            s = self.read.join(h, summary)
        self.latest = s
        leak = self.h
        if self.keeps_leak:
            leak = h
        if frozen is None:
            self.s = s
            self.c = c
            self.h = leak
        else:
            self.s = torch.where(frozen[:, None], self.s, s)
            self.c = torch.where(frozen[:, None], self.c, c)
            self.h = torch.where(frozen[:, None], self.h, leak)
        return s


def _make_chains(spec: ScanSpec, weights: Weights, state: State) -> list[_Chain]:
    """The chain that the loss sees and, for one-hop gradients, its double whose reads are cut off."""
    chains = [_Chain(spec, weights, state.s, state.c, state.h)]
    if state.chain.shape[1]:
        parts = state.chain.split([state.s.shape[1], state.c.shape[1], state.h.shape[1]], dim=1)
        chains.append(_Chain(spec, weights, *parts))
    return chains


def _output(spec: ScanSpec, h: Tensor, s: Tensor, read: Tensor | None, memory: MemoryRun | None) -> Tensor:
    if spec.output == "hidden":
        return h
    if spec.output == "summary" and read is not None:
        return torch.cat([s, read], dim=1)
    if spec.output == "weights" and memory is not None:
        return torch.cat([s, memory.weights_by_age(spec.output_size(s.shape[1]) - s.shape[1])], dim=1)
    return s


def _unbind(length: int, *tensors: Tensor | None) -> Iterable[tuple[Tensor | None, ...]]:
    """Per step, the slices of each ``(T, ...)`` tensor, or ``None``."""
    columns: list[Sequence[Tensor | None]] = []
    for tensor in tensors:
        if tensor is None:
            columns.append([None] * length)
        else:
            columns.append(tensor.unbind(0))
    return zip(*columns, strict=True)


def _final_state(
    state: State, chains: list[_Chain], memory: MemoryRun | None, positions: Tensor, lengths: Tensor | None
) -> State:
    step = last_of_rows(positions, lengths) + 1
    held = {}
    if memory is not None:
        held = memory.fields(step, lengths)
    main = chains[0]
    if len(chains) > 1:
        held["chain"] = torch.cat([chains[1].s, chains[1].c, chains[1].h], dim=1)
    return state._replace(s=main.s, c=main.c, h=main.h, step=step, **held)


def _make_log(entries: list[tuple[Tensor, Tensor]], positions: Tensor) -> Log:
    if not entries:
        nothing = torch.full_like(positions, EMPTY)
        return Log(nothing, nothing)
    slots, displaced = zip(*entries, strict=True)
    return Log(torch.stack(slots), torch.stack(displaced))


def _make_trace(readings: list[tuple[Tensor, Tensor, Tensor]], log: Log, positions: Tensor, spec: ScanSpec) -> Trace:
    """All readings with the same number of slots: a buffer that is still filling lacks its oldest ones."""
    widest = max((weights.shape[1] for weights, _, _ in readings), default=0)
    fillings = (0.0, EMPTY, -torch.inf)
    columns = [torch.full((*positions.shape, 0), filling) for filling in fillings]
    for place, column in enumerate(zip(*readings, strict=True)):
        padded = [F.pad(item, (widest - item.shape[1], 0), value=fillings[place]) for item in column]
        columns[place] = torch.stack(padded).detach()
    entered = torch.where(log.slot == EMPTY, EMPTY, positions - spec.rule.entry_delay)
    weights, steps, scores = columns
    return Trace(weights, steps, scores, entered, log.displaced)
