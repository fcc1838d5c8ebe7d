"""One step in one call: the bits of the scan, the numbers of the specification."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from remanence.ops import Full, ScanSpec, Screened, State, Strided, Weights, fused, step
from remanence.ops._kernel_config import encode
from remanence.ops.state_shapes import empty_state
from remanence.ops.stream import flatten
from remanence.testing import assert_matches

SPECS = [
    ScanSpec("rnn"),
    ScanSpec("rnn", None, "modrelu"),
    ScanSpec("lstm"),
    ScanSpec("gru"),
    ScanSpec("lstm", Screened(4, 5)),
    ScanSpec("lstm", Screened(4, 5, screen="mean")),
    ScanSpec("rnn", Screened(4, 5, screen="value")),
    ScanSpec("gru", Screened(4, 5, screen="learned")),
    ScanSpec("rnn", Screened(4, 5, screen="random")),
    ScanSpec("rnn", Screened(3, 4, score="dot"), "relu", combine="half", output="hidden"),
    ScanSpec("gru", Screened(3, 4), output="summary"),
    ScanSpec("gru", Full()),
    ScanSpec("lstm", Full(limit=5)),
    ScanSpec("lstm", Strided(3, 2), combine="half"),
    ScanSpec("goru", Strided(2, 1, score="tanh", underfull="raw", start="zero"), combine="half"),
]
REL = ScanSpec("lstm", Screened(4, 5))
STEPS = 12


def name_of(spec: ScanSpec) -> str:
    return f"{spec.cell}-{spec.nonlinearity}-{type(spec.memory).__name__}-{getattr(spec.memory, 'screen', '')}"


@pytest.fixture(params=SPECS, ids=name_of)
def spec(request) -> ScanSpec:
    return request.param


def draw(scans, spec, dtype, hidden=19, batch=3, layers=2, inputs=6) -> tuple[Tensor, list[Weights], State]:
    sizes = [inputs] + [spec.output_size(hidden)] * (layers - 1)
    drawn = [scans.weights(spec, hidden, size) for size in sizes]
    stack = [Weights._make(w if w is None else w.to(dtype) for w in weights) for weights in drawn]
    empty = empty_state(spec, hidden, (layers, batch), stack[0].hh)
    return torch.randn(STEPS, batch, inputs, dtype=dtype), stack, empty


def stream(x: Tensor, stack: list[Weights], state: State, spec: ScanSpec, backend: Any = "fused"):
    outputs = []
    for x_t in x:
        output, state = step(x_t, stack, state, spec=spec, backend=backend)
        outputs.append(output)
    return torch.stack(outputs), state


def whole(x: Tensor, stack: list[Weights], spec: ScanSpec) -> tuple[Tensor, State]:
    finals = []
    for weights in stack:
        x, final, _ = fused.scan(x, weights, None, spec=spec)
        finals.append(final)
    return x, State(*(torch.stack(fields) for fields in zip(*finals, strict=True)))


def same(first: State, second: State) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("hidden", [5, 72])
@pytest.mark.parametrize("batch", [1, 5, 20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_have_the_bits_of_the_whole(scans, spec, dtype, batch, hidden):
    x, stack, empty = draw(scans, spec, dtype, hidden, batch)
    output, state = stream(x, stack, empty, spec)
    expected, final = whole(x, stack, spec)
    assert torch.equal(output, expected)
    assert same(state, final)


@pytest.mark.parametrize("inputs", [1, 15, 16, 40])
def test_no_size_of_the_input_is_special(scans, inputs):
    x, stack, empty = draw(scans, REL, torch.float32, 33, 2, inputs=inputs)
    assert torch.equal(stream(x, stack, empty, REL)[0], whole(x, stack, REL)[0])


def test_steps_are_the_references(scans, spec):
    x, stack, empty = draw(scans, spec, torch.float64)
    output, state = stream(x, stack, empty, spec)
    expected, final = stream(x, stack, empty, spec, "reference")
    assert_matches({"output": output, **state._asdict()}, {"output": expected, **final._asdict()})


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_unbatched_steps_are_those_of_one_row(scans, spec, backend):
    x, stack, empty = draw(scans, spec, torch.float64, batch=1)
    output, state = stream(x, stack, empty, spec, backend)
    alone, alone_state = stream(x[:, 0], stack, State(*(field[:, 0] for field in empty)), spec, backend)
    assert torch.equal(output[:, 0], alone)
    assert same(State(*(field[:, 0] for field in state)), alone_state)


@pytest.mark.parametrize("spec", [REL, ScanSpec("gru", Full()), ScanSpec("gru", Screened(3, 4), output="summary")])
@pytest.mark.parametrize("batched", [True, False])
def test_opcheck(scans, spec, batched):
    x, stack, state = draw(scans, spec, torch.float64)
    x_t = x[0]
    if not batched:
        x_t, state = x_t[0], State(*(field[:, 0] for field in state))
    carried = [field for name, field in state._asdict().items() if name != "chain"]
    arguments = (x_t, flatten(stack), *carried, encode(spec, 0))
    torch.library.opcheck(torch.ops.remanence.step.default, arguments)


def test_nothing_learns(scans):
    x, stack, state = draw(scans, REL, torch.float64)
    stack[0].hh.requires_grad_()
    for backend in ("fused", "reference"):
        assert not step(x[0], stack, state, spec=REL, backend=backend)[0].requires_grad


def test_what_does_not_fit_is_refused_by_the_kernel(scans):
    x, stack, state = draw(scans, REL, torch.float64)
    for name in ("s", "c", "recent", "recent_score", "relevant", "relevant_score", "relevant_step", "step"):
        wrong = state._replace(**{name: getattr(state, name)[:, :-1]})
        with pytest.raises(ValueError, match=f"state.{name}"):
            step(x[0], stack, wrong, spec=REL)
    with pytest.raises(RuntimeError, match="features"):
        step(x[0, :, :-1], stack, state, spec=REL)
    with pytest.raises(RuntimeError, match="`ih`"):
        step(x[0].float(), stack, state, spec=REL)
    with pytest.raises(RuntimeError, match="`key`"):
        step(x[0], [stack[0], stack[1]._replace(key=None)], state, spec=REL)
