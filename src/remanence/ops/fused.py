"""The scan in C++: which scans it can run, and its registration as torch operators.

The arithmetic is in ``csrc``; here are the shapes (for tracing), the backward formula (which calls the second operator)
and the translation of a :class:`ScanSpec` into the numbers that the kernel takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._buffer import Full, Screened
from ._cells import GORUCell, GRUCell, LSTMCell, RNNCell
from ._library import library
from ._log import Log
from ._screens import Attention
from ._spec import ScanSpec
from ._state import State
from ._stride import Strided
from ._weights import Weights

CELL_TYPES = (RNNCell, LSTMCell, GRUCell, GORUCell)
CELLS = tuple(cell.name for cell in CELL_TYPES)
MEMORY_TYPES = (type(None), Full, Screened, Strided)
NONLINEARITIES = ("tanh", "relu", "modrelu", "identity")
NO_MEMORY, BUFFER, STRIDE = range(3)
SCORES = {"additive": 0, "dot": 1, "affine": 2, "tanh": 3}
OUTPUTS = ("macro", "hidden", "summary")
SAVE_NOTHING, SAVE_ALL, SAVE_LEAN = range(3)
ALIGN = 16
MOST_STORED = 64

INPUTS = 24  # tensors of the forward operator
STATE_SIZE = 9  # of them the initial state, without `chain`
MADE = 12  # outputs before the history: the output itself, the final state without `chain`, the log


def unsupported(spec: ScanSpec, dtype: torch.dtype, device: torch.device) -> str | None:
    """Why the kernel cannot run a scan, or ``None`` if it can.

    Example:
        >>> unsupported(ScanSpec("rnn", combine="concat", memory=Screened(2, 2)), torch.float32, torch.device("cpu"))
        "combine='concat' is not in the fused kernel"
    """
    memory = spec.memory if spec.has_memory else None
    if device.type != "cpu":
        return f"the fused kernel runs on the CPU, not on {device.type!r}"
    if dtype not in (torch.float32, torch.float64):
        return f"the fused kernel takes float32 and float64, not {dtype}"
    if type(spec.cell) not in CELL_TYPES:
        return f"the cell {spec.cell} is not in the fused kernel"
    if type(memory) not in MEMORY_TYPES:
        return f"the memory {memory} is not in the fused kernel"
    if isinstance(memory, Screened) and type(memory.screening) is not Attention:
        return f"the screen {memory.screen} is not in the fused kernel"
    if memory is not None and spec.combine == "concat":
        return "combine='concat' is not in the fused kernel"
    if memory is not None and spec.output == "weights":
        return "output='weights' is not in the fused kernel"
    if isinstance(memory, Strided):
        return _unsupported_stride(memory)
    return None


def _unsupported_stride(memory: Strided) -> str | None:
    if memory.score == "mlp":
        return "the score 'mlp' depends on the query and is not in the fused kernel"
    if memory.sparse != "forward" or memory.hops != "many":
        return "only sparse='forward' with hops='many' is in the fused kernel"
    if memory.rank > MOST_STORED:
        return f"the fused kernel stores at most {MOST_STORED} states; top_k={memory.top_k} needs {memory.rank}"
    return None


def transform_active() -> bool:
    """Whether functorch or forward-mode AD is at work, which need the reference.

    Example:
        >>> transform_active()
        False
    """
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def scan(
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
    lean: bool = False,
) -> tuple[Tensor, State, Log]:
    """One layer, one direction, all steps. Arguments as in :func:`remanence.ops.scan`.

    ``x`` may also be packed, ``(N, input_size)``, with ``lengths`` longest first, and what is by time is so too: the
    data of a ``PackedSequence``.

    With ``lean`` less is saved for the backward pass, see :func:`remanence.ops.saving`.
    """
    carried = NO_STATE if state is None else (*state[:3], *state[4:])
    forced = None if forced_log is None else forced_log.slot
    tensors = (x, *weights, *carried, reset, lengths, cut_h, cut_c, h_offset, forced)
    learns = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
    save = (SAVE_LEAN if lean else SAVE_ALL) if learns else SAVE_NOTHING
    config = encode(spec, save)
    eagerly = learns and not torch.compiler.is_compiling()
    made = _Scan.apply(config, *tensors) if eagerly else _FORWARD(*tensors, config)
    output, s, c, h, recent, recent_score, relevant, relevant_score, relevant_step, step, slot, displaced = made[:MADE]
    chain = x.new_empty(len(step), 0) if state is None else state.chain
    final = State(s, c, h, chain, recent, recent_score, relevant, relevant_score, relevant_step, step)
    return output, final, Log(slot, displaced)


NO_STATE = (None,) * STATE_SIZE


def _numbers(spec: ScanSpec) -> tuple[int, ...]:
    memory = spec.memory if spec.has_memory else None
    kind, score, recent, relevant = NO_MEMORY, 0, 0, 0
    every, top_k, normalise, raw, zero = 1, 0, False, False, False
    if isinstance(memory, Strided):
        kind, score, relevant = STRIDE, SCORES[memory.score], memory.rank
        every, top_k, normalise = memory.every, memory.top_k, memory.normalise
        raw, zero = memory.underfull == "raw", memory.start == "zero"
    elif isinstance(memory, Full | Screened):
        kind, score = BUFFER, SCORES[memory.score]
        recent, relevant = (-1 if memory.recent is None else memory.recent), memory.relevant
    numbers = (
        CELLS.index(spec.cell.name),
        NONLINEARITIES.index(spec.nonlinearity),
        kind,
        score,
        OUTPUTS.index(spec.output) if memory is not None else 0,
        recent,
        relevant,
        spec.combine == "half",
        spec.cut_reads,
        every,
        top_k,
        normalise,
        raw,
        zero,
        spec.screens,
    )
    return tuple(int(number) for number in numbers)


def encode(spec: ScanSpec, save: int) -> list[int]:
    """A specification as the numbers that the kernel reads; see ``read_spec`` in ``csrc/torch/tensors.h``."""
    numbers = _numbers(spec) if torch.compiler.is_compiling() else _kept_numbers(spec)
    return [*numbers, save]


_kept_numbers = cache(_numbers)


def chunk_steps(padded: int, batch: int) -> int:
    """Steps of a chunk of the backward pass; must agree with the function of this name in ``scan.h``."""
    block = 8 if padded >= 256 and batch > 16 else 16
    groups = max(1, min(8, (batch + 4) // 5))
    rows = min((batch + groups - 1) // groups, block)
    return max(4, (128 if padded < 128 else 64) // rows)


class _Shapes:
    """Shapes of everything that the forward operator returns; must agree with ``forward_typed`` in the binding."""

    def __init__(self, inputs: tuple[Any, ...], config: list[int]) -> None:
        x, w_hh, recent = inputs[0], inputs[2], inputs[12]
        self.by_time, self.hidden = tuple(x.shape[:-1]), w_hh.shape[1]
        self.places = math.prod(self.by_time)
        self.batch = x.shape[1] if x.dim() == 3 else inputs[19].shape[0]
        self.padded = (self.hidden + ALIGN - 1) // ALIGN * ALIGN
        self.cell, self.kind, self.output = CELLS[config[0]], config[2], OUTPUTS[config[4]]
        self.limit, self.relevant, self.screens, self.save = config[5], config[6], config[14], config[15]
        self.offset = inputs[22] is not None
        unbounded = x.shape[0] + (0 if recent is None else recent.shape[1])
        self.capacity = 0 if self.kind != BUFFER else unbounded if self.limit < 0 else self.limit

    def state(self) -> list[tuple[int, ...]]:
        batch, hidden = self.batch, self.hidden
        leaks = self.kind != NO_MEMORY and self.cell in ("gru", "goru")
        return [
            (*self.by_time, hidden * (2 if self.output == "summary" and self.kind != NO_MEMORY else 1)),
            (batch, hidden),
            (batch, hidden * (self.cell == "lstm")),
            (batch, hidden * leaks),
            (batch, self.capacity, hidden),
            (batch, self.capacity * self.screens),
            (batch, self.relevant, hidden),
            (batch, self.relevant * (self.kind == BUFFER)),
        ]

    def history_size(self) -> int:
        """Numbers in the history; see ``point_history`` in the binding."""
        if self.save == SAVE_NOTHING:
            return 0
        every, reads, remembers = self.save == SAVE_ALL, self.kind == BUFFER, self.kind != NO_MEMORY
        same = self.hidden == self.padded and self.output != "summary"
        own_h = not (same and (not remembers or self.output == "hidden"))
        own_s = remembers and not (same and self.output == "macro")
        planes = int(self.offset) if self.cell == "rnn" else 4 * every
        keys = reads and (every or self.limit < 0)
        rows = own_h + own_s + planes + (reads and every) + keys
        weights = 2 if self.limit < 0 else self.limit + self.relevant
        cells = self.places // (1 if every else chunk_steps(self.padded, self.batch)) * (self.cell == "lstm")
        numbers = self.places * (rows * self.padded + reads * weights) + cells * self.padded
        return numbers + keys * ((self.places + 3) // 4)


def _fake_forward(*args: Any) -> tuple[Tensor, ...]:
    *inputs, config = args
    shapes, x = _Shapes(tuple(inputs), config), inputs[0]
    floats = [x.new_empty(shape) for shape in shapes.state()]
    counts = [(shapes.batch, shapes.relevant), (shapes.batch,), shapes.by_time, shapes.by_time]
    whole = [x.new_empty(shape, dtype=torch.int64) for shape in counts]
    return (*floats, *whole, x.new_empty(shapes.history_size()))


GRADIENT_OF = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 22)
"""Inputs of the forward operator that get a gradient, in the order in which the backward operator returns them."""
COTANGENTS = (0, 1, 2, 3, 4, 6)
"""Outputs of the forward operator that have a gradient."""
COUNTS = (5, 7, 8, 9, 10, 11)
"""Outputs that have none: scores, steps and the log."""
KEPT = (*range(13), 14, *range(16, 23))
"""Inputs that the backward operator takes."""


def _fake_backward(*args: Any) -> tuple[Tensor, ...]:
    *tensors, _config, wanted = args
    named, nothing = (*tensors[6:20], tensors[26]), tensors[6].new_empty(0)
    return tuple(
        torch.empty_like(tensor, memory_format=torch.contiguous_format)
        if tensor is not None and wanted >> place & 1
        else nothing.clone()
        for place, tensor in enumerate(named)
    )


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, config = inputs
    ctx.config = config
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*(output[i] for i in COUNTS[:2]))
    if config[-1] != SAVE_NOTHING:
        ctx.save_for_backward(*(tensors[i] for i in KEPT), output[0], output[10], output[MADE])


def _backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
    if ctx.config[-1] == SAVE_NOTHING:
        raise RuntimeError("this scan ran without saving anything for a backward pass")
    cotangents = [grads[i] for i in COTANGENTS]
    return (*_give(ctx, ctx.needs_input_grad, _BACKWARD, cotangents), None)


def _give(ctx: Any, needs: tuple[bool, ...], backward: Any, cotangents: Iterable[Tensor | None]) -> list[Tensor | None]:
    """The gradients of all inputs, ``None`` where there is or need be none."""
    wanted = 0
    for bit, place in enumerate(GRADIENT_OF):
        wanted |= needs[place] << bit
    given = backward(*cotangents, *ctx.saved_tensors, ctx.config, wanted)
    result: list[Tensor | None] = [None] * INPUTS
    for place, gradient in zip(GRADIENT_OF, given, strict=True):
        if needs[place]:
            result[place] = gradient
    return result


class _Scan(torch.autograd.Function):
    """What :func:`torch.library.register_autograd` makes of the two above, in fewer steps.

    With those, torch's own bookkeeping took most of a short call. In a compiled graph the registered one serves.
    """

    @staticmethod
    def forward(ctx: Any, config: list[int], *tensors: Tensor | None) -> tuple[Tensor, ...]:
        with torch._C._AutoDispatchBelowAutograd():
            *made, history = _FORWARD(*tensors, config)
        ctx.config = config
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[made[i] for i in COUNTS])
        ctx.save_for_backward(*[tensors[i] for i in KEPT], made[0], made[10], history)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        cotangents = [grads[i] for i in COTANGENTS]
        needs = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():  # somebody wants a second derivative: the operator says what to do
            return (None, *_give(ctx, needs, _BACKWARD, cotangents))
        with torch._C._AutoDispatchBelowAutograd():
            return (None, *_give(ctx, needs, _BACKWARD, cotangents))


def _refuse_double(ctx: Any, *grads: Tensor | None) -> NoReturn:
    raise RuntimeError("the fused kernel has no second derivative: use backend='reference' for double backward")


def _register() -> None:
    torch.library.register_fake("remanence::scan_forward")(_fake_forward)
    torch.library.register_fake("remanence::scan_backward")(_fake_backward)
    torch.library.register_autograd("remanence::scan_forward", _backward, setup_context=_save)
    torch.library.register_autograd("remanence::scan_backward", _refuse_double)


_FORWARD: Any = None  # the operators, looked up once: by name it takes longer
_BACKWARD: Any = None
if library().problem is None:
    _FORWARD, _BACKWARD = torch.ops.remanence.scan_forward.default, torch.ops.remanence.scan_backward.default
    _register()
