"""Clauses of the layer contract about time: chunks, steps, causality, resets, and what a state weighs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from remanence.ops import State

from ._layer_under_test import BATCH, LENGTH, LayerUnderTest, clause, named, random_chunks, same
from ._running import collect, is_screened
from ._tolerance import assert_matches


@clause()
def chunks(subject: LayerUnderTest) -> None:
    """One run equals any chunking with the state handed over: outputs, states, logs and gradients."""
    layer = subject.layer()
    x = subject.data()
    whole = collect(layer, x, layer.initial_state(BATCH))
    recent = getattr(getattr(layer.spec, "memory", None), "recent", None) or 4
    # Around the size of the buffer: there the ring of the next chunk begins at another slot.
    for size in {1, max(1, recent - 1), recent, recent + 1}:
        sizes = [size] * (LENGTH // size) + ([LENGTH % size] if LENGTH % size else [])
        assert_matches(collect(layer, x, layer.initial_state(BATCH), chunks=sizes), whole)
    pieces = random_chunks(LENGTH)
    assert_matches(collect(layer, x, layer.initial_state(BATCH), chunks=pieces), whole)
    entries = _entries(layer, x, pieces)
    assert_matches(entries, _entries(layer, x, [LENGTH]))
    if is_screened(layer):
        same(_crosses_a_border(entries["displaced"], pieces, recent), True, "a state is replaced in a later chunk")


def _entries(layer: Any, x: Tensor, sizes: list[int]) -> dict[str, Tensor]:
    """Who entered and who was displaced, over all chunks; some of it across their borders."""
    traces = []
    state = None
    for piece in x.split(sizes):
        traces.append(layer.trace(piece, state)[0])
        state = layer(piece, state)[1]
    return {name: torch.cat([getattr(trace, name) for trace in traces]) for name in ("entered", "displaced")}


def _crosses_a_border(displaced: Tensor, sizes: list[int], recent: int) -> bool:
    """Whether some state entered in one chunk (``recent`` steps after its own) and was displaced in another."""
    chunk_of = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    time, row = (displaced >= 0).nonzero(as_tuple=True)
    return bool((chunk_of[time] > chunk_of[displaced[time, row] + recent]).any())


@clause()
def step_by_step(subject: LayerUnderTest) -> None:
    """A stream of single steps gives the numbers of the whole run."""
    layer = subject.layer(num_layers=2)
    x = subject.data()
    output, final = layer(x)
    state = layer.initial_state(BATCH)
    outputs = []
    for x_t in x:
        y_t, state = layer.step(x_t, state)
        outputs.append(y_t)
    assert_matches({"output": torch.stack(outputs)} | named(state), {"output": output} | named(final))


@clause()
def causality(subject: LayerUnderTest) -> None:
    """An output does not depend on later inputs: the gradient is exactly zero there, and not before."""
    layer = subject.layer()
    x = subject.data().requires_grad_()
    moment = LENGTH // 2
    (gradient,) = torch.autograd.grad(layer(x)[0][moment].sum(), x)
    same(float(gradient[moment + 1 :].abs().max()), 0.0, "gradient of later inputs")
    if not float(gradient[moment].abs().max()) > 0:
        raise AssertionError("the output does not depend on its own input")


@clause()
def rows_are_independent(subject: LayerUnderTest) -> None:
    """A row's numbers depend on no other row."""
    layer = subject.layer()
    x = subject.data()
    output, state = layer(x)
    changed = x.clone()
    changed[:, 1:] = torch.randn_like(changed[:, 1:])
    other, other_state = layer(changed)
    first = {"output": output[:, :1]} | named(state.select([0]))
    assert_matches({"output": other[:, :1]} | named(other_state.select([0])), first)
    alone, alone_state = layer(x[:, :1])
    assert_matches({"output": alone} | named(alone_state), first)


@clause()
def reset_is_a_fresh_start(subject: LayerUnderTest) -> None:
    """A row that is reset goes on as if it began there, gradients included; the others do not notice."""
    layer = subject.layer()
    x = subject.data()
    moment = 7
    reset = torch.zeros(LENGTH, BATCH, dtype=torch.bool)
    reset[moment, 0] = True
    _, before = layer(subject.data(seed=5))
    before = before.detach()
    run = collect(layer, x, before, reset=reset)
    fresh, fresh_state = layer(x[moment:, :1])
    rest, rest_state = layer(x[:, 1:], before.select([1, 2]))
    final = State(*(run[f"state.{name}"] for name in State._fields))
    # Joined, both have as many slots: the memory that grew before the reset has more than the fresh one.
    pair = State.cat([final.select([0]), fresh_state])
    actual = {"output": run["output"][moment:, :1]} | named(pair.select([0]))
    assert_matches(actual, {"output": fresh} | named(pair.select([1])))
    pair = State.cat([final.select([1, 2]), rest_state])
    assert_matches(
        {"output": run["output"][:, 1:]} | named(pair.select([0, 1])), {"output": rest} | named(pair.select([2, 3]))
    )


@clause()
def nan_does_not_survive_reset(subject: LayerUnderTest) -> None:
    """A reset selects and does not multiply: NaN in the given state is gone, from gradients too."""
    layer = subject.layer()
    x = subject.data()
    _, state = layer(x)
    poisoned = State(*(torch.full_like(f, torch.nan) if f.is_floating_point() else f for f in state.detach()))
    reset = torch.zeros(LENGTH, BATCH, dtype=torch.bool)
    reset[0] = True
    actual = collect(layer, x, poisoned, reset=reset)
    fresh = collect(layer, x)
    same(all(bool(value.isfinite().all()) for value in actual.values() if value.is_floating_point()), True, "finite")
    grown = State.cat([State(*(v[f"state.{n}"] for n in State._fields)) for v in (actual, fresh)])
    for part, rows in ((actual, range(BATCH)), (fresh, range(BATCH, 2 * BATCH))):
        part.update(named(grown.select(list(rows))))
    # A growing state is longer after the first run, so its random cotangents are other ones.
    common = [name for name in fresh if not (subject.grows and name.startswith("grad."))]
    assert_matches({name: actual[name] for name in common}, {name: fresh[name] for name in common})


@clause()
def state_size(subject: LayerUnderTest) -> None:
    """The state does not grow with the sequence, unless it is meant to."""
    layer = subject.layer()
    sizes = [layer(subject.data(length))[1].nbytes for length in (LENGTH // 2, LENGTH)]
    same(sizes[0] < sizes[1], subject.grows, f"state grows ({sizes[0]} to {sizes[1]} bytes)")
    if not subject.grows:
        same(layer.initial_state(BATCH).nbytes, sizes[0], "bytes of the empty state")
