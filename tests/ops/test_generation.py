"""Drawing tokens in one call: the kernel against the specification, against the scan, and against probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from remanence.ops import Full, ScanSpec, Screened, State, Strided, Weights, fused, generate
from remanence.ops._kernel_config import encode
from remanence.ops.generation import draw_tokens
from remanence.testing import assert_matches

SPECS = [
    ScanSpec("rnn"),
    ScanSpec("rnn", None, "modrelu"),
    ScanSpec("lstm"),
    ScanSpec("gru"),
    ScanSpec("goru"),
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
TOKENS, CLASSES = 11, 9
REL = ScanSpec("lstm", Screened(4, 5))


def name_of(spec: ScanSpec) -> str:
    return f"{spec.cell}-{spec.nonlinearity}-{type(spec.memory).__name__}-{getattr(spec.memory, 'screen', '')}"


@dataclass
class Model:
    """A stack with encoder and head, random, and uniform numbers to draw by."""

    spec: ScanSpec
    layers: list[Weights]
    head: Tensor
    head_bias: Tensor
    embedding: Tensor | None
    start: Tensor
    uniforms: Tensor

    def run(self, backend: Any, state: State | None = None, rows: slice = slice(None), **options):
        arguments = {"uniforms": self.uniforms[:, rows], "steps": len(self.uniforms)} | options
        ends = {"head": self.head, "head_bias": self.head_bias, "embedding": self.embedding}
        return generate(self.start[rows], self.layers, state, spec=self.spec, **ends, **arguments, backend=backend)

    def features(self, tokens: Tensor) -> Tensor:
        if self.embedding is None:
            return F.one_hot(tokens, TOKENS).to(self.head.dtype)
        return F.embedding(tokens, self.embedding)

    def scan(self, drawn: Tensor) -> list[State]:
        """Final states of the layers after the fused scan over what a generation read."""
        x = self.features(torch.cat([self.start[None], drawn[:-1]]))
        states = []
        for weights in self.layers:
            x, state, _ = fused.scan(x, weights, None, spec=self.spec)
            states.append(state)
        return states


def draw_model(scans, spec, dtype=torch.float64, steps=30, batch=5, hidden=19, layers=2, embedded=True) -> Model:
    inputs, features = (6 if embedded else TOKENS), spec.output_size(hidden)
    sizes = [inputs] + [features] * (layers - 1)
    drawn = [scans.weights(spec, hidden, size) for size in sizes]
    stack = [Weights._make(w if w is None else w.to(dtype) for w in weights) for weights in drawn]
    return Model(
        spec,
        stack,
        torch.randn(CLASSES, features, dtype=dtype),
        torch.randn(CLASSES, dtype=dtype),
        torch.randn(TOKENS, inputs, dtype=dtype) if embedded else None,
        torch.randint(TOKENS, (batch,)),
        torch.rand(steps, batch, dtype=torch.float64),
    )


def same(first: State, second: State) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


# ---- against the specification --------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
@pytest.mark.parametrize("embedded", [True, False], ids=["embedding", "one-hot"])
@pytest.mark.parametrize("layers", [1, 2])
def test_tokens_and_states_are_the_references(scans, spec, embedded, layers):
    model = draw_model(scans, spec, layers=layers, embedded=embedded)
    tokens, state = model.run("fused")
    expected, expected_state = model.run("reference")
    assert torch.equal(tokens, expected)
    assert_matches(state._asdict(), expected_state._asdict())
    again, state = model.run("fused", state, temperature=0.5)  # goes on from what the memory holds
    expected, expected_state = model.run("reference", expected_state, temperature=0.5)
    assert torch.equal(again, expected)
    assert_matches(state._asdict(), expected_state._asdict())


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_the_likeliest_tokens_are_the_references(scans, spec):
    model = draw_model(scans, spec)
    tokens, state = model.run("fused", uniforms=None)
    expected, expected_state = model.run("reference", uniforms=None)
    assert torch.equal(tokens, expected)
    assert_matches(state._asdict(), expected_state._asdict())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_large_alphabet_is_embedded_step_by_step(scans, dtype):
    model = draw_model(scans, REL, dtype, steps=3, batch=2)
    model.embedding = torch.randn(500, 6, dtype=dtype)  # more tokens than are drawn
    tokens, state = model.run("fused")
    states = [State(*(field[i] for field in state)) for i in range(2)]
    assert all(map(same, states, model.scan(tokens)))


# ---- against the scan: bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
@pytest.mark.parametrize("embedded", [True, False], ids=["embedding", "one-hot"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("hidden", [5, 72])
def test_states_have_the_bits_of_the_scan_over_the_tokens(scans, spec, embedded, dtype, hidden):
    model = draw_model(scans, spec, dtype, batch=21, hidden=hidden, embedded=embedded)
    tokens, state = model.run("fused")
    states = [State(*(field[i] for field in state)) for i in range(2)]
    assert all(map(same, states, model.scan(tokens)))


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_bits_do_not_depend_on_other_rows_or_pieces(scans, spec):
    model = draw_model(scans, spec, torch.float32, batch=21)
    tokens, state = model.run("fused")
    for rows in (slice(0, 1), slice(3, 8), slice(2, 20)):
        alone, alone_state = model.run("fused", rows=rows)
        assert torch.equal(tokens[:, rows], alone)
        assert same(State(*(field[:, rows] for field in state)), alone_state)
    first, half = model.run("fused", steps=13, uniforms=model.uniforms[:13])
    model.start = first[-1]
    second, end = model.run("fused", half, steps=17, uniforms=model.uniforms[13:])
    assert torch.equal(torch.cat([first, second]), tokens)
    assert same(end, state)


def test_bits_do_not_depend_on_threads(scans):
    model = draw_model(scans, REL, torch.float32, batch=37)
    tokens, state = model.run("fused")
    torch.set_num_threads(3)
    try:
        shared, shared_state = model.run("fused")
    finally:
        torch.set_num_threads(1)
    assert torch.equal(tokens, shared)
    assert same(state, shared_state)


# ---- against probability ---------------------------------------------------------------------------------------------


def constant_model(scans, logits: list[float], steps: int, batch: int) -> Model:
    """Logits that are the same at every step."""
    model = draw_model(scans, ScanSpec("rnn"), steps=steps, batch=batch, layers=1, embedded=False)
    model.head, model.head_bias = torch.zeros(len(logits), 19).double(), torch.tensor(logits).double()
    return model


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_uniform_number_falls_into_the_share_of_its_token(scans, backend, temperature):
    chances = torch.tensor([0.1, 0.2, 0.3, 0.4]).double()
    model = constant_model(scans, chances.log().tolist(), steps=1000, batch=1)
    model.uniforms = (torch.arange(1000).double()[:, None] + 0.5) / 1000
    tokens, _ = model.run(backend, temperature=temperature)
    powers = chances ** (1 / temperature)
    expected = 1000 * powers / powers.sum()
    assert ((tokens.flatten().bincount(minlength=4) - expected).abs() <= 1).all()
    assert torch.equal(tokens.flatten(), tokens.flatten().sort().values)


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_impossible_tokens_are_never_drawn(scans, backend):
    nothing = float("-inf")
    model = constant_model(scans, [nothing, nothing, 0.0, nothing, -1e4, 0.0, nothing], steps=6, batch=1)
    model.uniforms = torch.tensor([[0.0], [2**-53], [0.4], [0.6], [0.9], [1 - 2**-53]], dtype=torch.float64)
    assert model.run(backend)[0].flatten().tolist() == [2, 2, 2, 5, 5, 5]
    assert set(model.run(backend, temperature=1e-300)[0].flatten().tolist()) == {2, 5}
    assert model.run(backend, uniforms=None)[0].unique().tolist() == [2]


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("worst", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("greedy", [True, False])
def test_logits_that_are_no_numbers_raise(scans, backend, worst, greedy):
    model = constant_model(scans, [worst, worst], steps=4, batch=3)
    with pytest.raises(RuntimeError, match="logits are not finite"):
        model.run(backend, uniforms=None if greedy else model.uniforms)


def test_draws_follow_the_softmax():
    logits, uniforms = torch.randn(5), torch.rand(40000, dtype=torch.float64)
    counts = draw_tokens(logits.expand(40000, 5), uniforms, 0.7).bincount(minlength=5)
    expected = 40000 * torch.softmax(logits / 0.7, dim=0)
    assert ((counts - expected) ** 2 / expected).sum() < 18.5  # exceeded once in a thousand by four degrees of freedom


# ---- as an operator --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [REL, ScanSpec("gru", Full()), ScanSpec("rnn")], ids=name_of)
def test_opcheck(scans, spec):
    model = draw_model(scans, spec, steps=4, batch=3)
    _, state = model.run("fused")
    before = [field for name, field in state._asdict().items() if name != "chain"]
    weights = [torch.empty(0).double() if w is None else w for layer in model.layers for w in layer.known_to_kernel()]
    ends = (model.head, model.head_bias, model.embedding, model.uniforms)
    arguments = (model.start, weights, *before, *ends, 4, 1.0, encode(spec, 0))
    torch.library.opcheck(torch.ops.remanence.generate.default, arguments)


def test_nothing_learns(scans):
    model = draw_model(scans, REL)
    model.head.requires_grad_()
    model.layers[0].hh.requires_grad_()
    for backend in ("fused", "reference"):
        assert not model.run(backend)[1].s.requires_grad


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": 0}, "`steps` must be an int >= 1"),
        ({"temperature": -1.0}, "`temperature` must be"),
        ({"temperature": 0.0}, "`temperature` must be more than 0"),
        ({"steps": 7}, "`uniforms` must be float64 of shape"),
        ({"uniforms": torch.zeros(30, 5)}, "`uniforms` must be float64 of shape"),
    ],
)
def test_bad_options_are_named(scans, options, words):
    with pytest.raises(ValueError, match=words):
        draw_model(scans, REL).run("auto", **options)


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (torch.tensor([[0]]), "`tokens` must be int64 of shape"),
        (torch.tensor([0.5]), "`tokens` must be int64 of shape"),
        (torch.tensor([-1]), "`tokens` must be from 0 to 10"),
        (torch.tensor([11]), "`tokens` must be from 0 to 10"),
    ],
)
@pytest.mark.parametrize("embedded", [True, False], ids=["embedding", "one-hot"])
def test_bad_tokens_are_named(scans, start, words, embedded):
    model = draw_model(scans, REL, embedded=embedded)
    model.start = start
    with pytest.raises(ValueError, match=words):
        model.run("auto", uniforms=None)


def test_a_head_may_not_draw_what_cannot_be_read(scans):
    model = draw_model(scans, REL)
    model.head = torch.zeros(12, 19).double()
    with pytest.raises(ValueError, match="`head` must have at most 11 classes"):
        model.run("auto")
    with pytest.raises(ValueError, match="`layers` must hold"):
        generate(torch.tensor([0]), [], spec=REL, head=model.head, steps=1)


def test_states_of_another_shape_are_refused_by_the_kernel(scans):
    model = draw_model(scans, REL)
    state = model.run("fused")[1]
    for name in ("s", "c", "recent", "recent_score", "relevant", "relevant_score", "relevant_step", "step"):
        wrong = state._replace(**{name: getattr(state, name)[:, :-1]})
        with pytest.raises(ValueError, match=f"state.{name}"):
            model.run("fused", wrong)
    with pytest.raises(ValueError, match="must not be negative"):
        model.run("fused", state._replace(step=state.step - 100))
