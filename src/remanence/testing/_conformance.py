"""The layer contract as named checks, for the layers of this package and for anybody's own."""

from __future__ import annotations

import copy
import functools
import io
import pickle
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from remanence.nn import TruncatedBPTT
from remanence.ops import State

from ._running import collect, is_screened, replacements, sharpen_
from ._tolerance import assert_matches

INPUT, HIDDEN, LENGTH, BATCH = 3, 4, 48, 3
SHORT = 12
"""Steps of the checks that trace a program: its size grows with the length."""
REPLACEMENTS = 5

LayerFactory = Callable[..., nn.Module]


@dataclass(frozen=True)
class Check:
    """One clause of the contract: call it, and it raises if the layer breaks the clause."""

    name: str
    slow: bool
    run: Callable[[], None]

    def __call__(self) -> None:
        """Run the check."""
        self.run()


@dataclass(frozen=True)
class Subject:
    """A layer under test: how to build it, and data on which it does something."""

    factory: LayerFactory
    grows: bool = False

    def build(self, seed: int = 0, **options: Any) -> Any:
        """A layer in float64 with decisive attention."""
        torch.manual_seed(seed)
        options = {"dtype": torch.float64, **options}
        return sharpen_(self.factory(INPUT, HIDDEN, **options), seed)

    def data(self, length: int = LENGTH, batch: int = BATCH, seed: int = 0) -> Tensor:
        """Input ``(T, B, INPUT)``."""
        return torch.randn(length, batch, INPUT, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    @functools.cached_property
    def seed(self) -> int:
        """A seed with which every row's relevant set is replaced at least five times, if it has one."""
        for seed in range(50):
            layer = self.build(seed)
            if not is_screened(layer) or int(replacements(layer, self.data()).min()) >= REPLACEMENTS:
                return seed
        raise AssertionError(f"no seed below 50 gives {REPLACEMENTS} replacements in every row: this would test little")

    def layer(self, **options: Any) -> Any:
        """The layer that the checks use."""
        return self.build(self.seed, **options)


_CHECKS: list[tuple[str, bool, Callable[[Subject], None]]] = []


def _check(*, slow: bool = False) -> Callable[[Callable[[Subject], None]], Callable[[Subject], None]]:
    def register(function: Callable[[Subject], None]) -> Callable[[Subject], None]:
        _CHECKS.append((function.__name__, slow, function))
        return function

    return register


def check_recurrent_layer(
    factory: LayerFactory, *, grows: bool = False, without: Collection[str] = ()
) -> Iterator[Check]:
    """The checks that a recurrent layer must pass, by name.

    Args:
        factory: called with ``(input_size, hidden_size, **options)``; the options are those of ``torch.nn.LSTM``,
            and ``cuts``.
        grows: the layer's state is meant to grow with the sequence.
        without: names of checks that do not apply.

    Yields:
        :class:`Check` objects; call each of them.

    Example:
        >>> import functools, remanence
        >>> small = functools.partial(remanence.nn.RelRNN, recent=4, relevant=6)
        >>> for check in check_recurrent_layer(small):
        ...     if check.name in ("shapes", "causality"):
        ...         check()
    """
    subject = Subject(factory, grows)
    unknown = set(without) - {name for name, _, _ in _CHECKS}
    if unknown:
        raise ValueError(f"`without` must name checks; got {sorted(unknown)}, known are {check_names()}")
    for name, slow, function in _CHECKS:
        if name not in without:
            yield Check(name, slow, functools.partial(function, subject))


def check_names(*, slow: bool | None = None) -> list[str]:
    """Names of all checks; only the slow or only the fast ones on request.

    Example:
        >>> "causality" in check_names()
        True
    """
    return [name for name, is_slow, _ in _CHECKS if slow is None or slow == is_slow]


def _same(actual: Any, expected: Any, what: str) -> None:
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected}, got {actual}")


def _assert_equal(actual: Tensor, expected: Tensor, what: str) -> None:
    if not torch.equal(actual, expected):
        raise AssertionError(f"{what}: values differ by up to {float((actual - expected).detach().abs().max()):.2e}")


def _named(state: State, prefix: str = "state") -> dict[str, Tensor]:
    return {f"{prefix}.{name}": field for name, field in state._asdict().items()}


def _random_chunks(length: int, seed: int = 0) -> list[int]:
    generator, sizes = torch.Generator().manual_seed(seed), []
    while sum(sizes) < length:
        sizes.append(int(torch.randint(1, 10, (), generator=generator)))
    return [*sizes[:-1], length - sum(sizes[:-1])]


@_check()
def shapes(subject: Subject) -> None:
    """Output, state and their leading dimensions."""
    layer = subject.layer()
    output, state = layer(subject.data())
    _same(tuple(output.shape), (LENGTH, BATCH, layer.output_size), "output")
    for name, field in state._asdict().items():
        _same(tuple(field.shape[:2]), (1, BATCH), f"leading dimensions of state.{name}")
    _same(state.step.tolist(), [[LENGTH] * BATCH], "state.step")
    entering = state.hx[0] if isinstance(state.hx, tuple) else state.hx
    _assert_equal(entering, state.s, "state.hx")


@_check()
def batch_first(subject: Subject) -> None:
    """``batch_first`` moves the batch of input, output and reset, never that of the state."""
    x, plain, swapped = subject.data(), subject.layer(), subject.layer(batch_first=True)
    reset = torch.rand(LENGTH, BATCH, generator=torch.Generator().manual_seed(1)) < 0.1
    output, state = plain(x, reset=reset)
    other, other_state = swapped(x.transpose(0, 1), reset=reset.T)
    assert_matches({"output": other.transpose(0, 1)} | _named(other_state), {"output": output} | _named(state))
    one, _ = swapped.step(x[0])
    assert_matches({"step": one}, {"step": swapped(x[:1].transpose(0, 1))[0][:, 0]})


@_check()
def unbatched(subject: Subject) -> None:
    """Input without a batch dimension gives output and state without one."""
    layer, x = subject.layer(), subject.data(batch=1)
    output, state = layer(x)
    alone, alone_state = layer(x[:, 0], layer.initial_state())
    expected = State(*(field[:, 0] for field in state))
    assert_matches({"output": alone} | _named(alone_state), {"output": output[:, 0]} | _named(expected))


@_check()
def packed_sequence(subject: Subject) -> None:
    """Packed in, packed out; every row as if it ran alone; padding touches neither state nor memory."""
    layer, x = subject.layer(num_layers=2, bidirectional=True), subject.data()
    lengths = [LENGTH // 2, LENGTH, 1]
    packed = pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
    result, state = layer(packed)
    padded, got = pad_packed_sequence(result)
    _same(got.tolist(), lengths, "lengths")
    for row, length in enumerate(lengths):
        output, alone = layer(x[:length, row : row + 1])
        kept = State.cat([state.select([row]), alone])  # a growing memory of a short row has empty slots at its end
        actual = {"output": padded[:length, row]} | _named(kept.select([0]))
        assert_matches(actual, {"output": output[:, 0]} | _named(kept.select([1])))
    padding = float(padded[lengths[0] :, 0].detach().abs().max())
    _same(padding, 0.0, "output at padding")


@_check()
def padding_gets_no_gradient(subject: Subject) -> None:
    """What stands behind the end of a row has no influence, and its gradient is zero."""
    layer, x = subject.layer(), subject.data().requires_grad_()
    packed = pack_padded_sequence(x, torch.tensor([LENGTH, 20, 5]), enforce_sorted=False)
    output, state = layer(packed)
    loss = output.data.sum() + sum(field.sum() for field in state if field.is_floating_point())
    (gradient,) = torch.autograd.grad(loss, x)
    _same(float(gradient[20:, 1].abs().max()), 0.0, "gradient of padding")
    if not float(gradient[:20, 1].abs().min(dim=1).values.max()) > 0:
        raise AssertionError("no gradient reaches the real steps")


@_check()
def several_layers(subject: Subject) -> None:
    """Two layers are the first layer's output put into the second."""
    layer, x = subject.layer(num_layers=2), subject.data()
    output, state = layer(x)
    _same(tuple(state.s.shape[:2]), (2, BATCH), "leading dimensions of state.s")
    lower, upper = subject.layer(), subject.factory(layer.output_size, HIDDEN, dtype=torch.float64)
    _copy_layer(layer, lower, "_l0")
    _copy_layer(layer, upper, "_l1")
    middle, lower_state = lower(x)
    expected, upper_state = upper(middle)
    joined = State(*(torch.cat(fields) for fields in zip(lower_state, upper_state, strict=True)))
    assert_matches({"output": output} | _named(state), {"output": expected} | _named(joined))


def _copy_layer(source: nn.Module, target: nn.Module, suffix: str) -> None:
    values = {name: value for name, value in source.state_dict().items() if name.endswith(suffix)}
    renamed = {name.removesuffix(suffix) + "_l0": value for name, value in values.items()}
    target.load_state_dict(renamed, strict=False)
    missing = {name for name, _ in target.named_parameters()} - set(renamed)
    _same(missing, set(), "parameters without a counterpart")


@_check()
def dropout_between_layers(subject: Subject) -> None:
    """Dropout acts between layers, in training mode only."""
    layer, x = subject.layer(num_layers=2, dropout=0.5), subject.data()
    torch.manual_seed(0)
    first = layer(x)[0]
    if torch.equal(first, layer(x)[0]):
        raise AssertionError("dropout does nothing in training mode")
    layer.eval()
    _assert_equal(layer(x)[0], layer(x)[0], "evaluation mode")
    lower = layer(x)[1].s[0]
    assert_matches({"first layer": layer.train()(x)[1].s[0]}, {"first layer": lower})


@_check()
def bidirectional(subject: Subject) -> None:
    """The second direction is the layer run from the end, with weights of its own."""
    layer, x = subject.layer(bidirectional=True), subject.data()
    output, state = layer(x)
    one = subject.layer()
    half = one.output_size
    _same(tuple(output.shape), (LENGTH, BATCH, 2 * half), "output")
    values = {name.removesuffix("_reverse"): v for name, v in layer.state_dict().items() if name.endswith("_reverse")}
    one.load_state_dict(values, strict=False)
    backward, final = one(x.flip(0))
    expected = {"output": backward.flip(0)} | _named(State(*(field[0] for field in final)))
    assert_matches({"output": output[..., half:]} | _named(State(*(field[1] for field in state))), expected)


@_check()
def chunks(subject: Subject) -> None:
    """One run equals any chunking with the state handed over: outputs, states, logs and gradients."""
    layer, x = subject.layer(), subject.data()
    whole = collect(layer, x, layer.initial_state(BATCH))
    recent = getattr(getattr(layer.spec, "memory", None), "recent", None) or 4
    for size in {1, max(1, recent - 1), recent, recent + 1}:
        sizes = [size] * (LENGTH // size) + ([LENGTH % size] if LENGTH % size else [])
        assert_matches(collect(layer, x, layer.initial_state(BATCH), chunks=sizes), whole)
    pieces = _random_chunks(LENGTH)
    assert_matches(collect(layer, x, layer.initial_state(BATCH), chunks=pieces), whole)
    entries = _entries(layer, x, pieces)
    assert_matches(entries, _entries(layer, x, [LENGTH]))
    if is_screened(layer):
        _same(_crosses_a_border(entries["displaced"], pieces, recent), True, "a state is replaced in a later chunk")


def _entries(layer: Any, x: Tensor, sizes: list[int]) -> dict[str, Tensor]:
    """Who entered and who was displaced, over all chunks; some of it across their borders."""
    traces, state = [], None
    for piece in x.split(sizes):
        traces.append(layer.trace(piece, state)[0])
        state = layer(piece, state)[1]
    return {name: torch.cat([getattr(trace, name) for trace in traces]) for name in ("entered", "displaced")}


def _crosses_a_border(displaced: Tensor, sizes: list[int], recent: int) -> bool:
    """Whether some state entered in one chunk (``recent`` steps after its own) and was displaced in another."""
    chunk_of = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    time, row = (displaced >= 0).nonzero(as_tuple=True)
    return bool((chunk_of[time] > chunk_of[displaced[time, row] + recent]).any())


@_check()
def step_by_step(subject: Subject) -> None:
    """A stream of single steps gives the numbers of the whole run."""
    layer, x = subject.layer(num_layers=2), subject.data()
    output, final = layer(x)
    state, outputs = layer.initial_state(BATCH), []
    for x_t in x:
        y_t, state = layer.step(x_t, state)
        outputs.append(y_t)
    assert_matches({"output": torch.stack(outputs)} | _named(state), {"output": output} | _named(final))


@_check()
def causality(subject: Subject) -> None:
    """An output does not depend on later inputs: the gradient is exactly zero there, and not before."""
    layer, x = subject.layer(), subject.data().requires_grad_()
    moment = LENGTH // 2
    (gradient,) = torch.autograd.grad(layer(x)[0][moment].sum(), x)
    _same(float(gradient[moment + 1 :].abs().max()), 0.0, "gradient of later inputs")
    if not float(gradient[moment].abs().max()) > 0:
        raise AssertionError("the output does not depend on its own input")


@_check()
def rows_are_independent(subject: Subject) -> None:
    """A row's numbers depend on no other row."""
    layer, x = subject.layer(), subject.data()
    output, state = layer(x)
    changed = x.clone()
    changed[:, 1:] = torch.randn_like(changed[:, 1:])
    other, other_state = layer(changed)
    first = {"output": output[:, :1]} | _named(state.select([0]))
    assert_matches({"output": other[:, :1]} | _named(other_state.select([0])), first)
    alone, alone_state = layer(x[:, :1])
    assert_matches({"output": alone} | _named(alone_state), first)


@_check()
def reset_is_a_fresh_start(subject: Subject) -> None:
    """A row that is reset goes on as if it began there, gradients included; the others do not notice."""
    layer, x, moment = subject.layer(), subject.data(), 7
    reset = torch.zeros(LENGTH, BATCH, dtype=torch.bool)
    reset[moment, 0] = True
    _, before = layer(subject.data(seed=5))
    before = before.detach()
    run = collect(layer, x, before, reset=reset)
    fresh, fresh_state = layer(x[moment:, :1])
    rest, rest_state = layer(x[:, 1:], before.select([1, 2]))
    final = State(*(run[f"state.{name}"] for name in State._fields))
    pair = State.cat([final.select([0]), fresh_state])
    actual = {"output": run["output"][moment:, :1]} | _named(pair.select([0]))
    assert_matches(actual, {"output": fresh} | _named(pair.select([1])))
    pair = State.cat([final.select([1, 2]), rest_state])
    assert_matches(
        {"output": run["output"][:, 1:]} | _named(pair.select([0, 1])), {"output": rest} | _named(pair.select([2, 3]))
    )


@_check()
def nan_does_not_survive_reset(subject: Subject) -> None:
    """A reset selects and does not multiply: NaN in the given state is gone, from gradients too."""
    layer, x = subject.layer(), subject.data()
    _, state = layer(x)
    poisoned = State(*(torch.full_like(f, torch.nan) if f.is_floating_point() else f for f in state.detach()))
    reset = torch.zeros(LENGTH, BATCH, dtype=torch.bool)
    reset[0] = True
    actual = collect(layer, x, poisoned, reset=reset)
    fresh = collect(layer, x)
    _same(all(bool(value.isfinite().all()) for value in actual.values() if value.is_floating_point()), True, "finite")
    grown = State.cat([State(*(v[f"state.{n}"] for n in State._fields)) for v in (actual, fresh)])
    for part, rows in ((actual, range(BATCH)), (fresh, range(BATCH, 2 * BATCH))):
        part.update(_named(grown.select(list(rows))))
    # A growing state is longer after the first run, so its random cotangents are other ones.
    common = [name for name in fresh if not (subject.grows and name.startswith("grad."))]
    assert_matches({name: actual[name] for name in common}, {name: fresh[name] for name in common})


@_check()
def state_size(subject: Subject) -> None:
    """The state does not grow with the sequence, unless it is meant to."""
    layer = subject.layer()
    sizes = [layer(subject.data(length))[1].nbytes for length in (LENGTH // 2, LENGTH)]
    _same(sizes[0] < sizes[1], subject.grows, f"state grows ({sizes[0]} to {sizes[1]} bytes)")
    if not subject.grows:
        _same(layer.initial_state(BATCH).nbytes, sizes[0], "bytes of the empty state")


@_check()
def copies(subject: Subject) -> None:
    """State dict, deepcopy and pickle give the same layer; a state survives pickle."""
    layer, x = subject.layer(), subject.data()
    output, state = layer(x)
    loaded = subject.build(subject.seed + 100)
    loaded.load_state_dict(layer.state_dict())
    for twin in (loaded, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        _assert_equal(twin(x)[0], output, "copy of the layer")
    for mine, theirs in zip(state, pickle.loads(pickle.dumps(state.detach())), strict=True):
        _assert_equal(theirs, mine.detach(), "copy of the state")


@_check()
def determinism(subject: Subject) -> None:
    """Twice the same call, twice the same bits."""
    layer, x = subject.layer().eval(), subject.data()
    first, second = collect(layer, x), collect(layer, x)
    for name, value in first.items():
        _assert_equal(second[name], value, name)


@_check()
def float32(subject: Subject) -> None:
    """The layer works in float32, and agrees with float64 away from discrete choices."""
    exact, rough, x = subject.layer(), subject.layer(dtype=torch.float32), subject.data(SHORT)
    rough.load_state_dict({name: value.float() for name, value in exact.state_dict().items()})
    exact.load_state_dict({name: value.double() for name, value in rough.state_dict().items()})
    x = x.float().double()
    output, state = rough(x.float())
    _same({field.dtype for field in state}, {torch.float32, torch.int64}, "dtypes of the state")
    plain = subject.layer(dtype=torch.float32, backend="reference")
    plain.load_state_dict(rough.state_dict())
    assert_matches({"output": output}, {"output": exact(x)[0]}, {"output": plain(x.float())[0]})


@_check()
def meta_device(subject: Subject) -> None:
    """On the meta device shapes come out, and nothing is computed."""
    layer = subject.factory(INPUT, HIDDEN, device="meta", dtype=torch.float64)
    output, state = layer(torch.empty(SHORT, BATCH, INPUT, device="meta", dtype=torch.float64))
    _same(tuple(output.shape), (SHORT, BATCH, layer.output_size), "output")
    _same({field.device.type for field in (output, *state)}, {"meta"}, "devices")


@_check()
def functional_call(subject: Subject) -> None:
    """The layer is a function of its parameters."""
    layer, x = subject.layer(), subject.data()
    scaled = {name: value * 0.5 for name, value in layer.named_parameters()}
    output, _ = torch.func.functional_call(layer, scaled, (x,))
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(0.5)
    assert_matches({"output": output}, {"output": layer(x)[0]})


@_check()
def cuts_equal_detach(subject: Subject) -> None:
    """A gradient cut equals ``.detach()`` at that place: of the recurrent state alone, or of the memory too."""
    x, k = subject.data(), 5
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
        self.inner, self.memory = layer, memory

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        return self.inner.named_parameters(*args, **kwargs)

    def forward(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        if state is not None and self.memory:
            state = state.detach()
        elif state is not None:
            parts = ("s", "c", "h", "chain")
            state = state._replace(**{name: getattr(state, name).detach() for name in parts})
        return self.inner(x, state)


@_check(slow=True)
def gradcheck(subject: Subject) -> None:
    """Analytic gradients equal finite differences in float64: input, state and every parameter."""
    layer, x = subject.layer(), subject.data(batch=2)
    if is_screened(layer):
        _same(int(replacements(layer, x).min()) >= REPLACEMENTS, True, "enough replacements")
    _, state = layer(subject.data(length=9, batch=2, seed=3))
    floats = [name for name, field in state._asdict().items() if field.is_floating_point() and field.numel()]
    floats = [name for name in floats if not name.endswith("score")]
    names = [name for name, _ in layer.named_parameters()]
    cotangent = torch.randn(
        LENGTH, 2, layer.output_size, dtype=torch.float64, generator=torch.Generator().manual_seed(4)
    )

    def loss(x: Tensor, *values: Tensor) -> Tensor:
        start = state.detach()._replace(**dict(zip(floats, values, strict=False)))
        parameters = dict(zip(names, values[len(floats) :], strict=True))
        output, final = torch.func.functional_call(layer, parameters, (x, start))
        return (output * cotangent).sum() + sum(getattr(final, name).pow(2).sum() for name in floats)

    sources = [x, *(getattr(state, name) for name in floats), *layer.parameters()]
    sources = [source.detach().clone().requires_grad_() for source in sources]
    torch.autograd.gradcheck(loss, sources, fast_mode=True)


@_check(slow=True)
def double_backward(subject: Subject) -> None:
    """The reference can be differentiated twice."""
    layer, x = subject.layer(backend="reference"), subject.data(length=SHORT, batch=1).requires_grad_()

    def loss(x: Tensor) -> Tensor:
        return layer(x)[0].pow(2).sum()

    torch.autograd.gradgradcheck(loss, x, fast_mode=True)


@_check(slow=True)
def compiles(subject: Subject) -> None:
    """``torch.compile`` takes the whole layer as one graph, forward and backward."""
    layer = subject.layer()
    _, state = layer(subject.data())
    if subject.grows:
        state = layer.initial_state(BATCH)
    x, state = subject.data(SHORT), state.detach()
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


@_check(slow=True)
def exports(subject: Subject) -> None:
    """``torch.export`` takes the layer at a fixed length; the program can be saved and loaded."""
    layer, x = subject.layer().eval(), subject.data(SHORT)
    program = torch.export.export(layer, (x,))
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    loaded = torch.export.load(buffer).module()
    output, state = layer(x)
    other, other_state = loaded(x)
    assert_matches({"output": other} | _named(State(*other_state)), {"output": output} | _named(state))
