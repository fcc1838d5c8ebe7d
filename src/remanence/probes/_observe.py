"""Looking at a model without touching it: its states, its inputs, and everything put back afterwards."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from remanence import ops
from remanence._validate import message
from remanence.ops import ScanSpec, State, Weights
from remanence.ops.reference import empty_state
from remanence.ops.states import drop_row

CELLS = {kind.torch_layer: kind for kind in (ops.RNNCell, ops.LSTMCell, ops.GRUCell)}
"""What torch's layers compute, by their class."""


def modules(model: object) -> list[nn.Module]:
    """All modules of a model; none if it is a plain function."""
    return list(model.modules()) if isinstance(model, nn.Module) else []


class Shared:
    """Something of torch that all threads share: put back as it was by the last probe that leaves, not by each.

    Args:
        read: gives its value.
        write: sets it.

    Example:
        >>> value = [1]
        >>> shared = Shared(lambda: value[0], lambda new: value.__setitem__(0, new))
        >>> with shared.kept():
        ...     value[0] = 2
        >>> value
        [1]
    """

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], Any]) -> None:
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

    Args:
        model: any callable.
        training: whether modules keep their modes inside; otherwise all of them are in evaluation mode.
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


def inputs_of(batch: Any) -> Any:
    """The model's input: a tensor itself, ``batch.inputs``, or the first of a tuple."""
    if isinstance(batch, Tensor | PackedSequence):
        return batch
    if hasattr(batch, "inputs"):
        return batch.inputs
    if isinstance(batch, tuple | list) and batch:
        return batch[0]
    raise TypeError(
        message("batch", "be a tensor, a tuple that starts with one, or have `inputs`", type(batch).__name__)
    )


class Offsets:
    """Zeros that were added to something at every step, in the order of the run, by owner."""

    def __init__(self) -> None:
        self.by_owner: dict[Any, list[Tensor]] = {}

    def add(self, owner: object, shape: torch.Size, like: Tensor) -> Tensor:
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
    offsets: Offsets, scan: Callable[..., Any], x: Tensor, weights: Weights, *args: Any, **options: Any
) -> Any:
    hidden = options["spec"].cell.hidden_size(weights)
    given = options.pop("h_offset", None)
    offset = offsets.add(id(weights.ih), torch.Size((*x.shape[:2], hidden)), weights.hh)
    return scan(x, weights, *args, h_offset=offset if given is None else offset + given, **options)


@contextmanager
def products_visible(model: object) -> Iterator[None]:
    """Inside, no fused kernel hides matrix products: torch's recurrent layers and ours run on the plain scan."""

    def plain(scan: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return scan(*args, **{**options, "backend": "reference"})

    with ops.around_scans(plain), torch_layers_on_scan(model):
        yield


@contextmanager
def watched_scans(look: Callable[..., None]) -> Iterator[None]:
    """Inside, ``look(x, weights, state, log, options)`` sees every scan after it ran."""

    def observed(scan: Callable[..., Any], x: Tensor, weights: Weights, state: object = None, **options: Any) -> Any:
        result = scan(x, weights, state, **options)
        look(x, weights, state, result[2], options)
        return result

    with ops.around_scans(observed):
        yield


@contextmanager
def forward_replaced(part: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Inside, a module runs another function."""
    part.forward = forward
    try:
        yield
    finally:
        del part.forward


def _shift_cell(offsets: Offsets, cell: nn.Module, inputs: Any, output: Any) -> Any:
    h, *rest = output if isinstance(output, tuple) else (output,)
    rows = h.reshape(-1, h.shape[-1])  # a cell takes one sequence without a batch dimension too
    offset = offsets.add(id(cell), torch.Size((1, *rows.shape)), h)
    h = h + offset.reshape(h.shape)
    return (h, *rest) if rest else h


def torch_weights(layer: nn.RNNBase, number: int = 0, reverse: bool = False) -> Weights:
    """The parameters of one layer and direction of torch's recurrent layers."""
    suffix = f"_l{number}" + ("_reverse" if reverse else "")
    weights = (getattr(layer, name + suffix) for name in ("weight_ih", "weight_hh"))
    biases = (getattr(layer, name + suffix, None) for name in ("bias_ih", "bias_hh"))  # there may be none
    return Weights(*weights, *biases)


def torch_spec(layer: nn.RNNBase) -> ScanSpec:
    """What torch's recurrent layer is among our scans."""
    return ScanSpec(CELLS[type(layer)](), nonlinearity=getattr(layer, "nonlinearity", None))


def _torch_layer_as_scan(layer: nn.RNNBase, original: Callable[..., Any], input: object, hx: object = None) -> Any:
    """What the layer computes, step by step on our scan; packed input and projections stay with torch."""
    if not isinstance(input, Tensor) or layer.proj_size:
        return original(input, hx)
    batched = input.dim() == 3
    swaps = batched and layer.batch_first
    x = input if batched else input.unsqueeze(1)
    directions = 2 if layer.bidirectional else 1
    spec = torch_spec(layer)

    def scan_one(x: Tensor, start: State | None, index: int) -> tuple[Tensor, State]:
        weights = torch_weights(layer, index // directions, reverse=index % directions == 1)
        output, final, _ = ops.scan(x, weights, start, spec=spec)
        return output, final

    output, final = ops.walk_stack(
        x.transpose(0, 1) if swaps else x,
        scan_one,
        None if hx is None else _start(layer, spec, hx, batched),
        layers=layer.num_layers,
        directions=directions,
        drop=layer.dropout if layer.training else 0.0,
    )
    if not batched:
        return output.squeeze(1), drop_row(final).hx
    return (output.transpose(0, 1) if swaps else output), final.hx


def _start(layer: nn.RNNBase, spec: ScanSpec, hx: Any, batched: bool) -> State:
    """Torch's ``hx`` as a state, fields ``(layers * directions, B, ...)``."""
    parts = hx if isinstance(hx, tuple) else (hx,)
    rows = [part if batched else part.unsqueeze(1) for part in parts]
    empty = empty_state(spec, layer.hidden_size, tuple(rows[0].shape[:2]), rows[0])
    return empty._replace(s=rows[0], c=rows[1] if spec.cell.has_c else empty.c)


@contextmanager
def watched_embeddings(model: object, tokens: Tensor) -> Iterator[Offsets]:
    """Inside, a zero in the layout of the tokens is added to what every ``nn.Embedding`` gives for them.

    Embeddings of anything else, such as positions, are left alone; one that sees the tokens transposed is known.
    """
    offsets = Offsets()

    def shift(part: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        ids = inputs[0] if inputs else None
        if not isinstance(ids, Tensor):
            return output
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
