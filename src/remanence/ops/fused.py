"""The scan in C++: which scans it can run, and its registration as torch operators.

The arithmetic is in ``csrc``; here are the shapes (for tracing), the backward formula (which calls the second operator)
and the translation of a :class:`ScanSpec` into the numbers that the kernel takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._buffer import Full, Screened
from ._cells import GORUCell, GRUCell, LSTMCell, RNNCell
from ._half import HALF, narrow_state, widen, widen_state, widen_weights
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
MOST_STORED = 64
DTYPES = (torch.float32, torch.float64, *HALF)


class Config(NamedTuple):
    """A specification as the whole numbers that the kernel reads; in C++ see ``csrc/torch/tensors.h``."""

    cell: int
    nonlinearity: int
    memory: int = NO_MEMORY
    score: int = 0
    output: int = 0
    recent: int = 0
    """Size of the ring; -1 for one without a limit."""
    relevant: int = 0
    half: int = 0
    cut_reads: int = 0
    every: int = 1
    top_k: int = 0
    normalise: int = 0
    raw_underfull: int = 0
    start_zero: int = 0
    screens: int = 0
    save: int = SAVE_NOTHING

    @property
    def grows(self) -> bool:
        """Whether the ring has no limit."""
        return self.memory == BUFFER and self.recent < 0

    @property
    def output_parts(self) -> int:
        """Blocks of hidden size in the output: ``[s; r]`` has two."""
        return 2 if self.memory != NO_MEMORY and OUTPUTS[self.output] == "summary" else 1


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
    modrelu: Tensor | None
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


_GRADIENT_PLACES = _places(ScanInputs._fields, [name for name in ScanInputs._fields if name not in NO_GRADIENT])
_KEPT_PLACES = _places(ScanInputs._fields, [name for name in ScanInputs._fields if name not in NOT_KEPT])
_COTANGENT_PLACES = _places(ScanOutputs._fields, COTANGENTS)
_SCORE_PLACES = _places(ScanOutputs._fields, SCORES_MADE)
_COUNT_PLACES = _places(ScanOutputs._fields, (*SCORES_MADE, *COUNTS_MADE))
_SAVED_PLACES = _places(ScanOutputs._fields, ("output", "slot", "history"))
_HISTORY = ScanOutputs._fields.index("history")


def unsupported(spec: ScanSpec, dtype: torch.dtype, device: torch.device) -> str | None:
    """Why the kernel cannot run a scan, or ``None`` if it can.

    Example:
        >>> unsupported(ScanSpec("rnn", combine="concat", memory=Screened(2, 2)), torch.float32, torch.device("cpu"))
        "combine='concat' is not in the fused kernel"
    """
    memory = spec.memory if spec.has_memory else None
    if device.type != "cpu":
        return f"the fused kernel runs on the CPU, not on {device.type!r}"
    if dtype not in DTYPES:
        return f"the fused kernel takes float32, float64, bfloat16 and float16, not {dtype}"
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

    Half precision is computed in float32: the output has the dtype of ``x``, the state that of the weights.
    """
    if x.dtype in HALF or weights.ih.dtype in HALF:
        options = {"reset": reset, "lengths": lengths, "cut_h": cut_h, "cut_c": cut_c, "forced_log": forced_log}
        offset = None if h_offset is None else widen(h_offset)
        output, final, log = scan(
            widen(x),
            widen_weights(weights),
            widen_state(state),
            spec=spec,
            h_offset=offset,
            lean=lean,
            **options,
        )
        return output.to(x.dtype), narrow_state(final, weights.ih.dtype), log
    carried = _NO_STATE if state is None else (*state[:3], *state[4:])  # without `chain`
    forced = None if forced_log is None else forced_log.slot
    tensors = (x, *weights.known_to_kernel(), *carried, reset, lengths, cut_h, cut_c, h_offset, forced)
    learns = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
    save = (SAVE_LEAN if lean else SAVE_ALL) if learns else SAVE_NOTHING
    config = encode(spec, save)
    eagerly = learns and not torch.compiler.is_compiling()
    made = _Scan.apply(config, *tensors) if eagerly else _FORWARD(*tensors, config)
    output, s, c, h, recent, recent_score, relevant, relevant_score, relevant_step, step, slot, displaced = made[
        :_HISTORY
    ]
    chain = x.new_empty(step.shape[0], 0) if state is None else state.chain
    final = State(s, c, h, chain, recent, recent_score, relevant, relevant_score, relevant_step, step)
    return output, final, Log(slot, displaced)


_NO_STATE = (None,) * (len(State._fields) - 1)


def _config(spec: ScanSpec) -> Config:
    memory = spec.memory if spec.has_memory else None
    config = Config(
        cell=CELLS.index(spec.cell.name),
        nonlinearity=NONLINEARITIES.index(spec.nonlinearity),
        half=int(spec.combine == "half"),
        cut_reads=int(spec.cut_reads),
    )
    if not isinstance(memory, Full | Screened | Strided):
        return config
    config = config._replace(output=OUTPUTS.index(spec.output), score=SCORES[memory.score])
    if isinstance(memory, Strided):
        return config._replace(
            memory=STRIDE,
            relevant=memory.rank,
            every=memory.every,
            top_k=memory.top_k,
            normalise=int(memory.normalise),
            raw_underfull=int(memory.underfull == "raw"),
            start_zero=int(memory.start == "zero"),
        )
    recent = -1 if memory.recent is None else memory.recent
    return config._replace(memory=BUFFER, recent=recent, relevant=memory.relevant, screens=int(spec.screens))


def encode(spec: ScanSpec, save: int) -> list[int]:
    """A specification as the numbers that the kernel reads, in the order of :class:`Config`.

    Args:
        spec: what kind of layer this is.
        save: what the backward pass will find.
    """
    config = _config(spec) if torch.compiler.is_compiling() else _kept_config(spec)
    return [*config[:-1], save]


_kept_config = cache(_config)


@cache
def _history_of(config: Config, hidden: int, batch: int, offset: bool) -> tuple[int, int, int]:
    """Numbers of the history for every place, for every chunk, and places of a chunk: the kernel knows."""
    with torch._C._DisableTorchDispatch():  # no tensor: nothing to trace
        return torch.ops.remanence.history_of(list(config), hidden, batch, offset)


def history_numbers(inputs: ScanInputs, config: Config) -> int:
    """How many numbers the forward pass saves; symbolic where the number of steps or rows is.

    Args:
        inputs: of the forward operator.
        config: what kind of scan it is.
    """
    if config.save == SAVE_NOTHING:
        return 0
    x, hidden, offset = inputs.x, int(inputs.w_hh.shape[1]), inputs.h_offset is not None
    each, chunked, _ = _history_of(config, hidden, 1, offset)
    places = math.prod(x.shape[:-1])
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
    """Refuses tensors of several devices: shapes alone (device "meta") would be taken for an answer.

    Args:
        tensors: all that an operator is called with; ``None`` where there is none.
    """
    devices = {tensor.device.type for tensor in tensors if tensor is not None}
    if len(devices) > 1:
        raise RuntimeError(f"all tensors must be on one device; got {', '.join(sorted(devices))}. Move them with .to()")


def _fake_state(inputs: ScanInputs, config: Config) -> list[Tensor]:
    """The final state but its counts."""
    x, batch, hidden = inputs.x, _rows(inputs), inputs.w_hh.shape[1]
    ring = max(config.recent, 0)
    if config.grows:
        ring = x.shape[0] + (0 if inputs.recent is None else inputs.recent.shape[1])
    leaks = config.memory != NO_MEMORY and CELLS[config.cell] in ("gru", "goru")
    shapes = (
        (batch, hidden),
        (batch, hidden * (CELLS[config.cell] == "lstm")),
        (batch, hidden * leaks),
        (batch, ring, hidden),
        (batch, ring * config.screens),
        (batch, config.relevant, hidden),
        (batch, config.relevant * (config.memory == BUFFER)),
    )
    return [x.new_empty(shape) for shape in shapes]


def _fake_forward(*args: Any) -> ScanOutputs:
    *tensors, numbers = args
    inputs, config = ScanInputs(*tensors), Config(*numbers)
    one_device(inputs)
    x, batch = inputs.x, _rows(inputs)
    by_time = tuple(x.shape[:-1])
    counts = [(batch, config.relevant), (batch,), by_time, by_time]
    whole = [x.new_empty(shape, dtype=torch.int64) for shape in counts]
    output = x.new_empty((*by_time, inputs.w_hh.shape[1] * config.output_parts))
    history = x.new_empty(history_numbers(inputs, config))
    return ScanOutputs._make((output, *_fake_state(inputs, config), *whole, history))


def _fake_backward(*args: Any) -> tuple[Tensor, ...]:
    *tensors, _config, wanted = args
    one_device(tensors)
    kept = dict(zip([ScanInputs._fields[i] for i in _KEPT_PLACES], tensors[len(COTANGENTS) :], strict=False))
    named = [kept[ScanInputs._fields[i]] for i in _GRADIENT_PLACES]
    return tuple(
        torch.empty_like(tensor, memory_format=torch.contiguous_format)
        if tensor is not None and wanted >> place & 1
        else kept["x"].new_empty(0)
        for place, tensor in enumerate(named)
    )


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, config = inputs
    ctx.config = config
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*(output[i] for i in _SCORE_PLACES))
    if config[-1] != SAVE_NOTHING:
        ctx.save_for_backward(*[tensors[i] for i in _KEPT_PLACES], *[output[i] for i in _SAVED_PLACES])


def _backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
    if ctx.config[-1] == SAVE_NOTHING:
        raise RuntimeError("this scan ran without saving anything for a backward pass")
    return (*_give(ctx, ctx.needs_input_grad, grads), None)


def _give(ctx: Any, needs: tuple[bool, ...], grads: tuple[Tensor | None, ...]) -> list[Tensor | None]:
    """The gradients of all inputs, ``None`` where there is or need be none."""
    wanted = 0
    for bit, place in enumerate(_GRADIENT_PLACES):
        wanted |= needs[place] << bit
    given = _BACKWARD(*[grads[i] for i in _COTANGENT_PLACES], *ctx.saved_tensors, ctx.config, wanted)
    result: list[Tensor | None] = [None] * len(ScanInputs._fields)
    for place, gradient in zip(_GRADIENT_PLACES, given, strict=True):
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
            made = _FORWARD(*tensors, config)
        ctx.config = config
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[made[i] for i in _COUNT_PLACES])
        ctx.save_for_backward(*[tensors[i] for i in _KEPT_PLACES], *[made[i] for i in _SAVED_PLACES])
        return made[:_HISTORY]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        needs = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():  # somebody wants a second derivative: the operator says what to do
            return (None, *_give(ctx, needs, grads))
        with torch._C._AutoDispatchBelowAutograd():
            return (None, *_give(ctx, needs, grads))


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
