"""Looking at a model without touching it: its states, its inputs, and everything put back afterwards."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from remanence import ops
from remanence.ops import Log, ScanSpec, State, Weights
from remanence.ops.state_shapes import empty_state
from remanence.ops.states import add_row, drop_row

CELLS = {kind.torch_layer: kind for kind in (ops.RNNCell, ops.LSTMCell, ops.GRUCell)}
"""What torch's layers compute, by their class."""
HX: TypeAlias = Tensor | tuple[Tensor, Tensor]
"""Torch's state."""
ScanResult: TypeAlias = tuple[Tensor, State, Log]
Scan: TypeAlias = Callable[..., ScanResult]


def modules(model: object) -> list[nn.Module]:
    """All modules of a model; none if it is a plain function."""
    if not isinstance(model, nn.Module):
        return []
    return list(model.modules())


def trained_parameters(model: object) -> list[nn.Parameter]:
    """All parameters of a model that have a gradient, one of several owners as often as it is owned."""
    owned = [parameter for part in modules(model) for parameter in part.parameters(recurse=False)]
    return [parameter for parameter in owned if parameter.requires_grad]


def recurrent_spec(layer: object) -> ScanSpec | None:
    """What a recurrent layer, torch's or ours, is among our scans; ``None`` for anything else."""
    if isinstance(layer, nn.RNNBase) and type(layer) in CELLS:
        return ScanSpec(CELLS[type(layer)](), nonlinearity=getattr(layer, "nonlinearity", None))
    spec = getattr(layer, "spec", None)
    if isinstance(spec, ScanSpec):
        return spec
    return None


def recurrent_weights(layer: Any) -> Weights:
    """The parameters of a recurrent layer, torch's or ours, that is not stacked."""
    if isinstance(layer, nn.RNNBase):
        return torch_weights(layer, "_l0")
    return layer.weights()


def torch_weights(layer: nn.RNNBase, suffix: str) -> Weights:
    """The parameters of one layer and direction of torch's recurrent layers."""
    weights = (getattr(layer, name + suffix) for name in ("weight_ih", "weight_hh"))
    biases = (getattr(layer, name + suffix, None) for name in ("bias_ih", "bias_hh"))  # there may be none
    return Weights(*weights, *biases)


class Shared:
    """Something of torch that all threads share: put back as it was by the last probe that leaves, not by each.

    Example:
        >>> value = [1]
        >>> shared = Shared(lambda: value[0], lambda new: value.__setitem__(0, new))
        >>> with shared.kept():
        ...     value[0] = 2
        >>> value
        [1]
    """

    def __init__(self, read: Callable[[], object], write: Callable[[Any], object]) -> None:
        self._read = read
        self._write = write
        self._lock = threading.Lock()
        self._inside = 0
        self._value = None

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Inside, it may change."""
        with self._lock:
            if not self._inside:
                self._value = self._read()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    self._write(self._value)


RANDOM_NUMBERS = Shared(torch.get_rng_state, torch.set_rng_state)
FAST_PATH = Shared(torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled)


@contextmanager
def untouched(model: object, *, training: bool = False) -> Iterator[None]:
    """Puts back modes, buffers, gradients and random numbers, however the block ends.

    Inside, all modules are in evaluation mode, unless they are to keep their modes (``training``).
    """
    parts = modules(model)
    modes = [(part, part.training) for part in parts]
    buffers = [(buffer, buffer.clone()) for part in parts for buffer in part.buffers(recurse=False)]
    gradients = [(parameter, parameter.grad) for part in parts for parameter in part.parameters(recurse=False)]
    with RANDOM_NUMBERS.kept():
        try:
            for part in parts:
                part.training = part.training and training
            yield
        finally:
            for part, mode in modes:
                part.training = mode
            for buffer, value in buffers:
                with torch.no_grad():
                    buffer.copy_(value)
            for parameter, gradient in gradients:
                parameter.grad = gradient


@contextmanager
def uncompiled() -> Iterator[None]:
    """Inside, what ``torch.compile`` compiled runs as it was written: hooks see it, and no length compiles again."""
    if "torch._dynamo" not in sys.modules:  # nothing is compiled, and importing it takes seconds
        yield
        return
    _AS_WRITTEN.enter()
    try:
        yield
    finally:
        _AS_WRITTEN.leave()


class _SharedStance:
    """The compiler's stance, which all threads share: the first probe sets it, the last one to leave puts it back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.before = ExitStack()

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.before.enter_context(torch.compiler.set_stance("force_eager"))
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.before.close()


_AS_WRITTEN = _SharedStance()


class Offsets:
    """Zeros that were added to something at every step, in the order of the run, by owner."""

    def __init__(self) -> None:
        self.by_owner: dict[int, list[Tensor]] = {}

    def add(self, owner: int, shape: torch.Size, like: Tensor) -> Tensor:
        """New zeros of a shape ``(T, B, n)`` that will collect a gradient."""
        offset = torch.zeros(shape, dtype=like.dtype, device=like.device, requires_grad=True)
        self.by_owner.setdefault(owner, []).append(offset)
        return offset

    def all(self) -> list[Tensor]:
        """Every offset."""
        return [offset for offsets in self.by_owner.values() for offset in offsets]


@contextmanager
def watched_states(model: object) -> Iterator[Offsets]:
    """Inside, every state h_t that can be seen has a zero added to it: its gradient is the whole dL/dh_t.

    Seen are the layers of this library (through the scan under them), torch's ``RNN``, ``LSTM`` and ``GRU`` (run on the
    same scan meanwhile) and torch's recurrent cells.
    """
    offsets = Offsets()
    with ExitStack() as stack:
        stack.enter_context(ops.around_scans(functools.partial(_scan_with_offset, offsets)))
        stack.enter_context(torch_layers_on_scan(model))
        for part in modules(model):
            if isinstance(part, nn.RNNCellBase):
                hook = part.register_forward_hook(functools.partial(_shift_cell, offsets))
                stack.callback(hook.remove)
        yield offsets


@contextmanager
def torch_layers_on_scan(model: object) -> Iterator[None]:
    """Inside, torch's recurrent layers run step by step on our scan, where they can be looked at."""
    with ExitStack() as stack:
        for part in modules(model):
            if isinstance(part, nn.RNNBase) and type(part) in CELLS:
                on_scan = functools.partial(_torch_layer_as_scan, part, part.forward)
                stack.enter_context(forward_replaced(part, on_scan))
        yield


def _scan_with_offset(
    offsets: Offsets,
    scan: Scan,
    x: Tensor,
    weights: Weights,
    *args: object,
    spec: ScanSpec,
    h_offset: Tensor | None = None,
    **options: object,
) -> ScanResult:
    hidden = spec.cell.hidden_size(weights)
    offset = offsets.add(id(weights.ih), torch.Size((*x.shape[:2], hidden)), weights.hh)
    if h_offset is not None:
        offset = offset + h_offset
    return scan(x, weights, *args, spec=spec, h_offset=offset, **options)


@contextmanager
def products_visible(model: object) -> Iterator[None]:
    """Inside, no fused kernel hides matrix products: torch's recurrent layers and ours run on the plain scan."""

    def plain(scan: Scan, *args: object, **options: object) -> ScanResult:
        return scan(*args, **{**options, "backend": "reference"})

    with ops.around_scans(plain), torch_layers_on_scan(model):
        yield


@contextmanager
def watched_scans(look: Callable[..., None]) -> Iterator[None]:
    """Inside, ``look(x, weights, state, log, spec, options)`` sees every scan after it ran."""

    def observed(
        scan: Scan, x: Tensor, weights: Weights, state: State | None = None, *, spec: ScanSpec, **options: object
    ) -> ScanResult:
        result = scan(x, weights, state, spec=spec, **options)
        look(x, weights, state, result[2], spec, options)
        return result

    with ops.around_scans(observed):
        yield


@contextmanager
def forward_replaced(part: nn.Module, forward: Callable[..., object]) -> Iterator[None]:
    """Inside, a module runs another function."""
    part.forward = forward
    try:
        yield
    finally:
        del part.forward


def _shift_cell(offsets: Offsets, cell: nn.Module, inputs: object, output: HX) -> HX:
    if isinstance(output, tuple):  # an LSTM cell's h and c
        h, c = output
        return _shifted(offsets, cell, h), c
    return _shifted(offsets, cell, output)


def _shifted(offsets: Offsets, cell: nn.Module, h: Tensor) -> Tensor:
    rows = h.reshape(-1, h.shape[-1])  # a cell takes one sequence without a batch dimension too
    return h + offsets.add(id(cell), torch.Size((1, *rows.shape)), h).reshape(h.shape)


def _torch_layer_as_scan(
    layer: nn.RNNBase, original: Callable[..., object], input: object, hx: HX | None = None
) -> object:
    """What the layer computes, step by step on our scan; packed input and projections stay with torch."""
    spec = recurrent_spec(layer)
    if not isinstance(input, Tensor) or layer.proj_size or spec is None:
        return original(input, hx)
    if input.dim() == 3:
        return _run_on_scan(layer, spec, input, hx)
    row = int(not layer.batch_first)
    output, state = _run_on_scan(layer, spec, input.unsqueeze(row), add_row(hx))
    return output.squeeze(row), drop_row(state)


def _run_on_scan(layer: nn.RNNBase, spec: ScanSpec, input: Tensor, hx: HX | None) -> tuple[Tensor, HX]:
    """A layer of torch on a batch, in its own layout."""
    time = int(layer.batch_first)
    directions = 1 + layer.bidirectional
    start = None
    if hx is not None:
        parts = hx if isinstance(hx, tuple) else (hx,)
        empty = empty_state(spec, layer.hidden_size, tuple(parts[0].shape[:2]), parts[0])
        start = empty._replace(**dict(zip(("s", "c"), parts, strict=False)))

    def scan_one(x: Tensor, start: State | None, index: int) -> tuple[Tensor, State]:
        suffix = f"_l{index // directions}" + "_reverse" * (index % directions)
        output, final, _ = ops.scan(x, torch_weights(layer, suffix), start, spec=spec)
        return output, final

    output, final = ops.walk_stack(
        input.transpose(0, time),
        scan_one,
        start,
        layers=layer.num_layers,
        directions=directions,
        drop=layer.dropout * layer.training,
    )
    return output.transpose(0, time), final.hx


@contextmanager
def watched_embeddings(model: object, tokens: Tensor) -> Iterator[Offsets]:
    """Inside, a zero in the layout of the tokens is added to what every ``nn.Embedding`` gives for them.

    Embeddings of anything else, such as positions, are left alone; one that sees the tokens transposed is known.
    """
    offsets = Offsets()

    def shift(part: nn.Module, inputs: tuple[object, ...], output: Tensor) -> Tensor:
        if not inputs or not isinstance(inputs[0], Tensor):
            return output
        ids = inputs[0]
        if torch.equal(ids, tokens):
            return output + offsets.add(id(part), output.shape, output)
        if tokens.dim() == 2 and torch.equal(ids, tokens.T):
            turned = output.transpose(0, 1)
            return output + offsets.add(id(part), turned.shape, output).transpose(0, 1)
        return output

    hooks = [part.register_forward_hook(shift) for part in modules(model) if isinstance(part, nn.Embedding)]
    try:
        yield offsets
    finally:
        for hook in hooks:
            hook.remove()
