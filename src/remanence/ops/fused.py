"""The scan in C++: which scans it can run, and its registration as torch operators.

The arithmetic is in ``csrc``; here are the shapes (for tracing), the backward formula (which calls the second operator)
and the translation of a :class:`ScanSpec` into the numbers that the kernel takes.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._library import library
from ._types import Full, Log, ScanSpec, Screened, State, Strided, Weights
from .reference import initial_state

CELLS = ("rnn", "lstm", "gru", "goru")
NONLINEARITIES = ("tanh", "relu", "modrelu", "identity")
NO_MEMORY, BUFFER, STRIDE = range(3)
SCORES = {"additive": 0, "dot": 1, "affine": 2, "tanh": 3}
OUTPUTS = ("macro", "hidden", "summary")
SAVE_NOTHING, SAVE_ALL, SAVE_LEAN = range(3)
ALIGN = 16
MOST_STORED = 64

INPUTS = 24  # tensors of the forward operator
STATE = 10  # outputs 1 to 10 are the final state without `chain`, then the log
LOG = 12  # outputs before the history


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

    With ``lean`` less is saved for the backward pass, see :func:`remanence.ops.saving`.
    """
    if state is None:
        state = initial_state(spec, weights, x.shape[1])
    forced = None if forced_log is None else forced_log.slot
    carried = (state.s, state.c, state.h, state.recent, state.recent_score.detach(), state.relevant)
    counted = (state.relevant_score.detach(), state.relevant_step, state.step)
    tensors = (x, *weights, *carried, *counted, reset, lengths, cut_h, cut_c, h_offset, forced)
    learns = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
    save = (SAVE_LEAN if lean else SAVE_ALL) if learns else SAVE_NOTHING
    output, s, c, h, recent, recent_score, relevant, relevant_score, relevant_step, step, slot, displaced, *_ = (
        torch.ops.remanence.scan_forward(*tensors, encode(spec, save))
    )
    scores = recent_score.detach(), relevant_score.detach()
    final = State(s, c, h, state.chain, recent, scores[0], relevant, scores[1], relevant_step, step)
    return output, final, Log(slot, displaced)


def encode(spec: ScanSpec, save: int) -> list[int]:
    """A specification as the numbers that the kernel reads; see ``read_spec`` in ``csrc/binding.cpp``."""
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
        CELLS.index(spec.cell),
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
        save,
    )
    return [int(number) for number in numbers]


class _Shapes:
    """Shapes of everything that the forward operator returns; must agree with ``forward_typed`` in the binding."""

    def __init__(self, inputs: tuple[Any, ...], config: list[int]) -> None:
        x, w_hh, recent = inputs[0], inputs[2], inputs[12]
        self.config, self.inputs, self.x = config, inputs, x
        self.steps, self.batch = x.shape[0], x.shape[1]
        self.hidden = w_hh.shape[1]
        self.padded = (self.hidden + ALIGN - 1) // ALIGN * ALIGN
        self.cell, self.kind, self.output = CELLS[config[0]], config[2], OUTPUTS[config[4]]
        self.limit, self.relevant, self.save = config[5], config[6], config[14]
        unbounded = recent.shape[1] + self.steps
        self.capacity = 0 if self.kind != BUFFER else unbounded if self.limit < 0 else self.limit

    def state(self) -> list[tuple[int, ...]]:
        batch, hidden = self.batch, self.hidden
        wide = hidden * (2 if self.output == "summary" and self.kind != NO_MEMORY else 1)
        return [
            (self.steps, batch, wide),
            (batch, hidden),
            tuple(self.inputs[10].shape),
            tuple(self.inputs[11].shape),
            (batch, self.capacity, hidden),
            tuple(self.inputs[13].shape),
            (batch, self.relevant, hidden),
            tuple(self.inputs[15].shape),
        ]

    def history(self) -> list[tuple[int, ...]]:
        saves, reads = self.save != SAVE_NOTHING, self.save != SAVE_NOTHING and self.kind == BUFFER
        all_of, remembers = self.save == SAVE_ALL, self.kind != NO_MEMORY
        same = self.hidden == self.padded and self.output != "summary"
        own_h = saves and not (same and (not remembers or self.output == "hidden"))
        own_s = saves and remembers and not (same and self.output == "macro")
        planes = int(saves and self.inputs[22] is not None) if self.cell == "rnn" else 4 * all_of
        rows = [
            (own_h, self.padded),
            (own_s, self.padded),
            (saves and self.cell == "lstm", self.padded),
            (planes > 0, planes * self.padded),
            (reads and all_of, self.padded),
            (reads, self.padded),
        ]
        shapes: list[tuple[int, ...]] = [(self.steps if kept else 0, self.batch, size) for kept, size in rows]
        weights = 2 if self.kind != BUFFER or self.limit < 0 else self.limit + self.relevant
        return [*shapes, (self.steps if reads else 0, self.batch, weights)]


def _fake_forward(*args: Any) -> tuple[Tensor, ...]:
    *inputs, config = args
    shapes, x = _Shapes(tuple(inputs), config), inputs[0]
    batch, steps = shapes.batch, shapes.steps
    floats = [x.new_empty(shape) for shape in shapes.state()]
    counts = [(batch, shapes.relevant), (batch,), (steps, batch), (steps, batch)]
    whole = [x.new_empty(shape, dtype=torch.int64) for shape in counts]
    history = [x.new_empty(shape) for shape in shapes.history()]
    wide = x.new_empty(tuple(history[-1].shape[:2]), dtype=torch.uint8)
    return (*floats, *whole, *history, wide)


GRADIENT_OF = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 22)
"""Inputs of the forward operator that get a gradient, in the order in which the backward operator returns them."""


def _fake_backward(*args: Any) -> tuple[Tensor, ...]:
    *tensors, _config, need_x = args
    named = (*tensors[6:19], tensors[19], tensors[27])
    nothing = tensors[6].new_empty(0)
    given = [nothing if tensor is None else torch.empty_like(tensor) for tensor in named]
    return (given[0] if need_x else nothing, *given[1:])


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, config = inputs
    ctx.config = config
    ctx.set_materialize_grads(False)
    if config[-1] == SAVE_NOTHING:
        return
    kept = [tensors[i] for i in (*range(13), *range(14, 23))]
    ctx.save_for_backward(*kept, output[0], output[10], *output[LOG:])


def _backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
    if ctx.config[-1] == SAVE_NOTHING:
        raise RuntimeError("this scan ran without saving anything for a backward pass")
    cotangents = [grads[i] for i in (0, 1, 2, 3, 4, 6)]
    given = torch.ops.remanence.scan_backward(*cotangents, *ctx.saved_tensors, ctx.config, ctx.needs_input_grad[0])
    result: list[Tensor | None] = [None] * (INPUTS + 1)
    for place, gradient in zip(GRADIENT_OF, given, strict=True):
        if ctx.needs_input_grad[place]:
            result[place] = gradient
    return tuple(result)


def _refuse_double(ctx: Any, *grads: Tensor | None) -> NoReturn:
    raise RuntimeError("the fused kernel has no second derivative: use backend='reference' for double backward")


def _register() -> None:
    torch.library.register_fake("remanence::scan_forward")(_fake_forward)
    torch.library.register_fake("remanence::scan_backward")(_fake_backward)
    torch.library.register_autograd("remanence::scan_forward", _backward, setup_context=_save)
    torch.library.register_autograd("remanence::scan_backward", _refuse_double)


if library().problem is None:
    _register()
