"""Clauses of the layer contract about torch: copies, dtypes, devices, gradients, compilers."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from remanence.nn import TruncatedBPTT
from remanence.ops import State

from ._layer_under_test import (
    BATCH,
    HIDDEN,
    INPUT,
    LENGTH,
    PAIR,
    REPLACEMENTS,
    SHORT,
    LayerUnderTest,
    assert_equal,
    clause,
    named,
    same,
)
from ._running import collect, is_screened, replacements
from ._tolerance import assert_matches


@clause()
def copies(subject: LayerUnderTest) -> None:
    """State dict, deepcopy and pickle give the same layer; a state survives pickle."""
    layer = subject.layer()
    x = subject.data()
    output, state = layer(x)
    loaded = subject.build(subject.seed + 100)
    loaded.load_state_dict(layer.state_dict())
    for twin in (loaded, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert_equal(twin(x)[0], output, "copy of the layer")
    for mine, theirs in zip(state, pickle.loads(pickle.dumps(state.detach())), strict=True):
        assert_equal(theirs, mine.detach(), "copy of the state")


@clause()
def determinism(subject: LayerUnderTest) -> None:
    """Twice the same call, twice the same bits."""
    layer = subject.layer().eval()
    x = subject.data()
    first = collect(layer, x)
    second = collect(layer, x)
    for name, value in first.items():
        assert_equal(second[name], value, name)


@clause()
def float32(subject: LayerUnderTest) -> None:
    """The layer works in float32, and agrees with float64 away from discrete choices."""
    exact = subject.layer()
    rough = subject.layer(dtype=torch.float32)
    x = subject.data(SHORT)
    # Both get the same rounded weights and inputs: only the layer's own rounding is to be seen.
    rough.load_state_dict({name: value.float() for name, value in exact.state_dict().items()})
    exact.load_state_dict({name: value.double() for name, value in rough.state_dict().items()})
    x = x.float().double()
    output, state = rough(x.float())
    same({field.dtype for field in state}, {torch.float32, torch.int64}, "dtypes of the state")
    plain = subject.layer(dtype=torch.float32, backend="reference")
    plain.load_state_dict(rough.state_dict())
    assert_matches({"output": output}, {"output": exact(x)[0]}, {"output": plain(x.float())[0]})


@clause()
def meta_device(subject: LayerUnderTest) -> None:
    """On the meta device shapes come out, and nothing is computed."""
    layer = subject.factory(INPUT, HIDDEN, device="meta", dtype=torch.float64)
    output, state = layer(torch.empty(SHORT, BATCH, INPUT, device="meta", dtype=torch.float64))
    same(tuple(output.shape), (SHORT, BATCH, layer.output_size), "output")
    same({field.device.type for field in (output, *state)}, {"meta"}, "devices")


@clause()
def functional_call(subject: LayerUnderTest) -> None:
    """The layer is a function of its parameters."""
    layer = subject.layer()
    x = subject.data()
    scaled = {name: value * 0.5 for name, value in layer.named_parameters()}
    output, _ = torch.func.functional_call(layer, scaled, (x,))
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(0.5)
    assert_matches({"output": output}, {"output": layer(x)[0]})


@clause()
def cuts_equal_detach(subject: LayerUnderTest) -> None:
    """A gradient cut equals ``.detach()`` at that place: of the recurrent state alone, or of the memory too."""
    x = subject.data()
    k = 5
    whole = subject.layer()
    for reads in ("open", "cut"):
        layer = subject.layer(cuts=TruncatedBPTT(k, reads=reads))
        actual = collect(layer, x)
        chunked = _Detached(whole, memory=reads == "cut")
        sizes = [k] * (LENGTH // k) + [LENGTH % k]
        assert_matches(actual, collect(chunked, x, chunks=sizes))
        uncut = collect(whole, x)
        if torch.allclose(actual["grad.input"], uncut["grad.input"]):
            raise AssertionError("the cut changes nothing")


class _Detached(nn.Module):
    """The layer with the recurrent part of a handed-over state detached, or all of it."""

    def __init__(self, layer: nn.Module, memory: bool) -> None:
        super().__init__()
        self.inner = layer
        self.memory = memory

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        return self.inner.named_parameters(*args, **kwargs)

    def forward(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        if state is not None and self.memory:
            state = state.detach()
        elif state is not None:
            parts = ("s", "c", "h", "chain")
            state = state._replace(**{name: getattr(state, name).detach() for name in parts})
        return self.inner(x, state)


@clause(slow=True)
def gradcheck(subject: LayerUnderTest) -> None:
    """Analytic gradients equal finite differences in float64: input, state and every parameter."""
    layer = subject.layer()
    x = subject.data(batch=PAIR)
    if is_screened(layer):
        same(int(replacements(layer, x).min()) >= REPLACEMENTS, True, "enough replacements")
    _, state = layer(subject.data(length=9, batch=PAIR, seed=3))
    floats = [name for name, field in state._asdict().items() if field.is_floating_point() and field.numel()]
    # Attention is collected without a gradient.
    floats = [name for name in floats if not name.endswith("score")]
    names = [name for name, _ in layer.named_parameters()]
    cotangent = torch.randn(
        LENGTH, PAIR, layer.output_size, dtype=torch.float64, generator=torch.Generator().manual_seed(4)
    )

    def loss(x: Tensor, *values: Tensor) -> Tensor:
        start = state.detach()._replace(**dict(zip(floats, values, strict=False)))
        parameters = dict(zip(names, values[len(floats) :], strict=True))
        output, final = torch.func.functional_call(layer, parameters, (x, start))
        return (output * cotangent).sum() + sum(getattr(final, name).pow(2).sum() for name in floats)

    sources = [x, *(getattr(state, name) for name in floats), *layer.parameters()]
    sources = [source.detach().clone().requires_grad_() for source in sources]
    torch.autograd.gradcheck(loss, sources, fast_mode=True)


@clause(slow=True)
def double_backward(subject: LayerUnderTest) -> None:
    """The reference can be differentiated twice."""
    layer = subject.layer(backend="reference")
    x = subject.data(length=SHORT, batch=1).requires_grad_()

    def loss(x: Tensor) -> Tensor:
        return layer(x)[0].pow(2).sum()

    torch.autograd.gradgradcheck(loss, x, fast_mode=True)


@clause(slow=True)
def compiles(subject: LayerUnderTest) -> None:
    """``torch.compile`` takes the whole layer as one graph, forward and backward."""
    layer = subject.layer()
    _, state = layer(subject.data())
    if subject.grows:
        state = layer.initial_state(BATCH)
    x = subject.data(SHORT)
    state = state.detach()
    torch._dynamo.reset()
    compiled: Any = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert_matches(collect(compiled, x, state), _renamed(collect(layer, x, state)))


def _renamed(found: dict[str, Tensor]) -> dict[str, Tensor]:
    """Names as a compiled module gives them to its parameters."""
    fixed = ("grad.input", "grad.state.")
    return {
        name.replace("grad.", "grad._orig_mod.", 1)
        if name.startswith("grad.") and not name.startswith(fixed)
        else name: v
        for name, v in found.items()
    }


@clause(slow=True)
def exports(subject: LayerUnderTest) -> None:
    """``torch.export`` takes the layer at a fixed length; the program can be saved and loaded."""
    layer = subject.layer().eval()
    x = subject.data(SHORT)
    program = torch.export.export(layer, (x,))
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    loaded = torch.export.load(buffer).module()
    output, state = layer(x)
    other, other_state = loaded(x)
    assert_matches({"output": other} | named(State(*other_state)), {"output": output} | named(state))
