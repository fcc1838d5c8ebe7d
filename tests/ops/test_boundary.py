"""No public call ends the interpreter or returns what was never computed, whatever it is given."""

from __future__ import annotations

import os
import random
import threading
import time
import warnings
from typing import Any

import pytest
import torch

from remanence.nn import GRU, LSTM, SABLSTM, MemLSTM, RecurrentLayer, RelLSTM, RelRNN
from remanence.ops import Full, Log, ScanSpec, Screened, State, Strided, Weights, generate, scan, step
from remanence.ops.state_shapes import empty_state
from remanence.testing import assert_matches


def draw(*shape: int, **options: Any) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, **options)


FIELDS = [name for name in State._fields if name != "chain"]


def weights_for(spec: ScanSpec, inputs: int = 3, hidden: int = 5) -> Weights:
    gates = len(spec.cell.gates) * hidden
    read = {}
    if isinstance(spec.memory, Strided) and spec.memory.score != "mlp":
        read = {"query": draw(hidden), "key": draw(hidden), "score": draw(1)}
    elif spec.memory is not None:
        read = {"query": draw(hidden, hidden), "key": draw(hidden, hidden), "score": draw(hidden)}
    return Weights(ih=draw(gates, inputs), hh=draw(gates, hidden) / hidden**0.5, **read)


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("memory", [None, Screened(2, 2), Strided(2, 1), Full()], ids=str)
def test_no_rows_give_no_rows_and_no_gradient(backend, memory):
    spec = ScanSpec("lstm", memory)
    weights = weights_for(spec)
    weights = weights._replace(hh=weights.hh.requires_grad_())
    output, state, _ = scan(draw(4, 0, 3), weights, spec=spec, backend=backend)
    assert output.shape == (4, 0, 5)
    assert state.s.shape == (0, 5)
    output.sum().backward()
    assert weights.hh.grad is not None
    assert not weights.hh.grad.any()


@pytest.mark.parametrize("every", [2**32, 2**32 + 2])
def test_a_large_stride_is_no_small_one(every):
    spec = ScanSpec("rnn", Strided(2, every))
    weights, x = weights_for(spec), draw(9, 2, 3)
    fused, exact = (scan(x, weights, spec=spec, backend=backend) for backend in ("fused", "reference"))
    assert bool((fused[2].slot == -1).all())
    assert_matches({"output": fused[0]}, {"output": exact[0]})


def test_a_stride_beyond_all_steps_is_refused_whatever_computes_it():
    with pytest.raises(ValueError, match="`every` must be an int >= 1 and <= 4611686018427387904"):
        Strided(2, 2**62 + 1)


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_no_steps_are_refused(backend):
    spec = ScanSpec("rnn")
    with pytest.raises(ValueError, match="`x` must hold at least one step"):
        scan(draw(0, 2, 3), weights_for(spec), spec=spec, backend=backend)


def test_the_operator_itself_refuses_no_steps():
    from remanence.ops import fused

    spec = ScanSpec("rnn")
    with pytest.raises(RuntimeError, match="at least one step"):
        fused.scan(draw(0, 2, 3), weights_for(spec), None, spec=spec)


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("count", [2**63 - 3, 2**62 + 1, -1])
def test_a_count_of_steps_that_cannot_go_on_is_refused(count, backend):
    layer = RelLSTM(3, 5, recent=2, relevant=2, backend=backend, dtype=torch.float64)
    state = layer.initial_state(2)
    state = state._replace(step=torch.full_like(state.step, count))
    words = rf"`state\.step` must (not be negative|be at most 2\^62); got {count}"
    with torch.no_grad(), pytest.raises(ValueError, match=words):
        layer.step(draw(2, 3), state)
    with pytest.raises(ValueError, match=words):
        layer(draw(4, 2, 3), state)


@pytest.mark.parametrize("field", ["recent_score", "relevant_score", "recent", "relevant", "relevant_step", "c", "s"])
def test_an_emptied_field_is_refused(field):
    spec = ScanSpec("lstm", Screened(2, 2))
    weights = weights_for(spec, inputs=4)
    state = empty_state(spec, 5, (1, 2), weights.hh)
    value = getattr(state, field)
    broken = state._replace(**{field: value[..., :0]}, step=torch.full((1, 2), 7))
    with pytest.raises(ValueError, match=f"state.{field}"):
        step(draw(2, 4), [weights], broken, spec=spec, backend="fused")
    with pytest.raises(ValueError, match=f"state.{field}"):
        generate(torch.zeros(2, dtype=torch.int64), [weights], broken, spec=spec, head=draw(4, 5), steps=3)
    with pytest.raises(ValueError, match=f"state.{field}"):
        scan(draw(3, 2, 4), weights, State(*(part[0] for part in broken)), spec=spec, backend="fused")


def test_a_layer_without_data_gives_no_answer():
    layer = RelLSTM(3, 4, recent=2, relevant=1, dtype=torch.float64)
    x, state = draw(2, 3), layer.initial_state(2)
    with torch.no_grad():
        layer.step(x, state)
        layer.to("meta")
        with pytest.raises((RuntimeError, ValueError), match="meta"):
            layer.step(x, state)


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_without_data_gives_no_answer(field):
    layer = RelLSTM(3, 4, recent=2, relevant=1, dtype=torch.float64)
    state = layer.initial_state(2)
    state = state._replace(**{field: getattr(state, field).to("meta")})
    with torch.no_grad(), pytest.raises((RuntimeError, ValueError), match="meta"):
        layer.step(draw(2, 3), state)
    rows, weights = State(*(part[0] for part in state)), layer.weights()
    with pytest.raises((RuntimeError, ValueError), match="meta"):
        scan(draw(4, 2, 3), weights, rows, spec=layer.spec)
    with pytest.raises((RuntimeError, ValueError), match="meta"):
        generate(torch.zeros(2, dtype=torch.int64), [weights], state, spec=layer.spec, head=draw(3, 4), steps=3)


def test_all_on_meta_still_gives_shapes():
    layer = RelLSTM(3, 4, recent=2, relevant=1, device="meta", dtype=torch.float64)
    with torch.no_grad():
        output, state = layer.step(draw(2, 3, device="meta"), layer.initial_state(2))
    assert output.is_meta
    assert state.recent.shape == (1, 2, 2, 4)


def corrupt(state: State, rng: random.Random) -> State:
    """A state with one field of another size, dtype, or with numbers that mean nothing."""
    name = rng.choice(FIELDS)
    value = getattr(state, name)
    dimension = rng.randrange(value.dim())
    changes = [
        lambda: value.narrow(dimension, 0, max(value.shape[dimension] - 1, 0)),
        lambda: torch.cat([value, value], dimension),
        lambda: value.unsqueeze(dimension),
        lambda: value.flatten(),
        lambda: value.to(torch.int32),
        lambda: value.float(),
        lambda: torch.full_like(value, rng.choice([-1, 0, 1, 5, 2**40, -(2**40), 2**62, -(2**63)])),
        lambda: value.transpose(0, dimension),
    ]
    return state._replace(**{name: rng.choice(changes)()})


@pytest.mark.parametrize("make", [RelLSTM, RelRNN, MemLSTM, SABLSTM, LSTM, GRU], ids=lambda make: make.__name__)
def test_malformed_states_are_refused_or_mean_what_the_reference_says(make):
    rng = random.Random(5)
    torch.manual_seed(5)
    layer = make(3, 5, backend="auto", dtype=torch.float64)
    _, good = layer(draw(6, 2, 3))
    good = good.detach()
    for _ in range(60):
        state, x = corrupt(good, rng), draw(2, 3)
        answers = []
        for backend in ("auto", "reference"):
            layer.backend = backend
            try:
                with torch.no_grad():
                    answers.append(layer.step(x, state)[0])
            except (ValueError, TypeError, RuntimeError, IndexError):
                answers.append(None)
        if answers[0] is not None and answers[1] is not None:
            assert_matches({"output": answers[0]}, {"output": answers[1]})


MEMORIES = [None, Screened(2, 2), Strided(2, 1), Full(), Full(limit=3)]


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
def test_malformed_states_are_refused_by_both_or_by_none(memory):
    """By every function that takes one: the reference must not stretch a field to fit, and so answer something else."""
    rng = random.Random(6)
    torch.manual_seed(6)
    spec = ScanSpec("lstm", memory)
    weights = weights_for(spec, inputs=4)
    tokens, head = torch.tensor([1, 3]), draw(4, 5)
    _, good = generate(tokens, [weights], spec=spec, head=head, steps=6)

    def drawn(state: State, backend: Any) -> torch.Tensor:
        return generate(tokens, [weights], state, spec=spec, head=head, steps=4, backend=backend)[0]

    def stepped(state: State, backend: Any) -> torch.Tensor:
        return step(torch.ones(2, 4, dtype=torch.float64), [weights], state, spec=spec, backend=backend)[0]

    def scanned(state: State, backend: Any) -> torch.Tensor:
        rows = State(*(part[0] for part in state))
        return scan(torch.ones(3, 2, 4, dtype=torch.float64), weights, rows, spec=spec, backend=backend)[0]

    for _ in range(60):
        state = corrupt(good, rng)
        for call in (drawn, stepped, scanned):
            answers = []
            for backend in ("fused", "reference"):
                try:
                    answers.append(call(state, backend))
                except (ValueError, TypeError, RuntimeError, IndexError) as error:
                    answers.append(type(error))
            refused = [isinstance(answer, type) for answer in answers]
            assert refused[0] == refused[1], (call.__name__, answers)
            if not any(refused):
                assert_matches({"output": answers[0].double()}, {"output": answers[1].double()})


SPECS = {
    "LSTM": ScanSpec("lstm"),
    "GRU with a ring": ScanSpec("gru", Full(limit=3)),
    "full": ScanSpec("lstm", Full()),
    "screened": ScanSpec("lstm", Screened(2, 2)),
    "strided": ScanSpec("lstm", Strided(2, 1)),
    "one hop": ScanSpec("lstm", Strided(2, 1, hops="one")),
    "growing": ScanSpec("lstm", Strided(2, 1, score="mlp")),
}
ABSURD = {"negative": -1, "least": -(2**63), "beyond": 2**62 + 1, "most": 2**63 - 1}


def spoilt(name: str, value: torch.Tensor) -> dict[str, Any]:
    """What a field of a state must not be, by what is wrong with it."""
    wrong: dict[str, Any] = {
        "one layer more": torch.cat([value, value]),
        "one row more": torch.cat([value, value[:, :1]], dim=1),
        "one dimension more": value.unsqueeze(-1),
        "flat": value.flatten(),
        "dtype": value.to(torch.float32),
        "bool": value.bool(),
        "meta": value.to("meta"),
        "sparse": value.to_sparse(),
        "None": None,
        "list": value.tolist(),
    }
    if value.dim() > 2 and value.shape[-1]:
        wrong["emptied"] = value[..., :0]
        wrong["short"] = value[..., :-1]
    if value.dim() > 2:
        wrong["long"] = torch.cat([value, value.new_zeros(*value.shape[:-1], 1)], dim=-1)
    if name == "step":
        wrong |= {words: torch.full_like(value, count) for words, count in ABSURD.items()}
    return wrong


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_every_field_of_a_state_is_checked_by_name(spec, backend):
    """By every function that takes one, on both backends, whatever is wrong with it."""
    weights, tokens, head = weights_for(spec), torch.zeros(2, dtype=torch.int64), draw(3, 5)
    _, good = generate(tokens, [weights], spec=spec, head=head, steps=4, backend=backend)
    for name, value in good._asdict().items():
        for what, wrong in spoilt(name, value).items():
            if grows(spec, name) and what in ("long", "emptied", "short"):
                continue  # it may have any number of slots
            broken = good._replace(**{name: wrong})
            with pytest.raises((ValueError, TypeError), match=rf"`state\.{name}` must"):
                step(draw(2, 3), [weights], broken, spec=spec, backend=backend)
            with pytest.raises((ValueError, TypeError), match=rf"`state\.{name}` must"):
                generate(tokens, [weights], broken, spec=spec, head=head, steps=3, backend=backend)
            if what in ("one layer more", "flat"):
                continue  # a scan has one layer
            rows = State(*(part[0] for part in good))
            if isinstance(wrong, torch.Tensor):
                wrong = wrong[0]
            rows = rows._replace(**{name: wrong})
            with pytest.raises((ValueError, TypeError), match=rf"`state\.{name}` must"):
                scan(draw(3, 2, 3), weights, rows, spec=spec, backend=backend)


def grows(spec: ScanSpec, name: str) -> bool:
    return name in spec.rule.growing


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize("make", [LSTM, GRU, RelLSTM, MemLSTM, SABLSTM], ids=lambda make: make.__name__)
def test_every_field_of_a_layers_state_is_checked_by_name(make, backend):
    layer = make(3, 5, backend=backend, dtype=torch.float64)
    _, good = layer(draw(6, 2, 3))
    good = good.detach()
    for name, value in good._asdict().items():
        for what, wrong in spoilt(name, value).items():
            if grows(layer.spec, name) and what in ("long", "emptied", "short"):
                continue
            broken = good._replace(**{name: wrong})
            with pytest.raises((ValueError, TypeError), match=rf"`state\.{name}` must"):
                layer(draw(3, 2, 3), broken)
            with torch.no_grad(), pytest.raises((ValueError, TypeError), match=rf"`state\.{name}` must"):
                layer.step(draw(2, 3), broken)


def test_stored_states_and_their_steps_have_one_number_of_slots():
    spec = SPECS["growing"]
    weights = weights_for(spec)
    state = empty_state(spec, 5, (2,), weights.hh)
    state = state._replace(relevant=draw(2, 3, 5), step=torch.full((2,), 9))
    with pytest.raises(ValueError, match=r"`state\.relevant_step` must have shape \(2, 3\); got \(2, 0\)"):
        scan(draw(3, 2, 3), weights, state, spec=spec)


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        (ScanSpec("lstm", Screened(2, 2)), "score"),
        (ScanSpec("lstm", Screened(2, 2)), "query"),
        (ScanSpec("rnn", nonlinearity="modrelu"), "modrelu"),
        (ScanSpec("lstm", Screened(2, 2, screen="learned")), "gate"),
        (ScanSpec("lstm"), "hh"),
        (ScanSpec("lstm"), "ih"),
    ],
    ids=["score", "query", "modrelu", "gate", "hh", "ih"],
)
def test_a_weight_that_is_missing_is_named_and_not_taken_for_zero(spec, missing, backend):
    whole = weights_for(spec)._replace(modrelu=draw(5), gate=draw(5), gate_bias=draw(1))
    scan(draw(3, 2, 3), whole, spec=spec, backend=backend)
    weights = whole._replace(**{missing: None})
    with pytest.raises(TypeError, match=rf"`weights\.{missing}` must be a tensor"):
        scan(draw(3, 2, 3), weights, spec=spec, backend=backend)
    with pytest.raises((RuntimeError, TypeError), match=f"{missing}|own"):
        step(draw(2, 3), [weights], empty_state(spec, 5, (1, 2), whole.hh), spec=spec, backend=backend)
    tokens, head = torch.zeros(2, dtype=torch.int64), draw(3, 5)
    with pytest.raises(TypeError, match=rf"`weights\.{missing}` must be a tensor"):
        generate(tokens, [weights], spec=spec, head=head, steps=3, backend=backend)


NEVER = torch.zeros(3, 2, dtype=torch.bool)
ODD = {
    "x": [draw(3, 2), draw(3, 2, 4), draw(3, 2, 3).float(), draw(3, 2, 3).to("meta"), draw(3, 2, 3).long(), None, 7],
    "reset": [NEVER[:, :1], NEVER[:1], NEVER.long(), NEVER.to("meta"), True],
    "cut_h": [NEVER[:2], NEVER.double(), NEVER[..., None], [[False]]],
    "cut_c": [NEVER[:2], NEVER.double(), NEVER.to("meta")],
    "lengths": [torch.tensor(length) for length in ([0, 3], [3, 4], [-1, 2], [2**62, 1], [3], [1.0, 2.0], 3)],
    "h_offset": [draw(3, 2), draw(3, 2, 4), draw(3, 1, 5), draw(3, 2, 5).float(), 0.5],
    "forced_log": [Log(NEVER, NEVER), Log(NEVER[:1].long(), NEVER), 3],
}


@pytest.mark.filterwarnings("ignore::remanence.ops.SlowPathWarning")
@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize("name", ODD)
def test_every_odd_argument_of_a_scan_is_named(name, backend):
    spec = SPECS["screened"]
    weights = weights_for(spec)
    for value in ODD[name]:
        arguments: dict[str, Any] = {"x": draw(3, 2, 3)} | {name: value}
        with pytest.raises((ValueError, TypeError), match=rf"`({name}|forced_log\.slot|weights\.ih)` must"):
            scan(weights=weights, spec=spec, backend=backend, **arguments)


ODD_DRAWS = {
    "tokens": [torch.zeros(2), torch.zeros(2, 1).long(), torch.tensor([0, 9]), torch.tensor([-1, 0]), [0, 1], None],
    "layers": [[], [None], [draw(3)]],
    "head": [draw(3, 4), draw(3), draw(0, 5), draw(9, 5), draw(3, 5).to("meta"), None],
    "head_bias": [draw(4), draw(3).float(), draw(3, 1), draw(3).to("meta"), 1.0],
    "embedding": [draw(3, 4), draw(3), draw(3, 3).float(), draw(3, 3).to("meta"), "abc"],
    "steps": [0, -1, 2**31, 2**63, 2**80, 4.0, None],
    "uniforms": [
        draw(3, 2).abs() + 1,
        torch.rand(4, 2),
        torch.full((4, 2), -0.1).double(),
        torch.full((4, 2), torch.nan).double(),
        torch.ones(4, 2).double(),
        torch.rand(4, 2).double().to("meta"),
        0.5,
    ],
    "temperature": [0, -1, torch.nan, torch.inf, 10**400, "hot"],
}


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize("name", ODD_DRAWS)
def test_every_odd_argument_of_a_generation_is_named(name, backend):
    spec = SPECS["screened"]
    usual: dict[str, Any] = {"tokens": torch.tensor([0, 2]), "layers": [weights_for(spec)], "head": draw(3, 5)}
    usual |= {"steps": 4, "uniforms": torch.rand(4, 2, dtype=torch.float64)}
    generate(**usual, spec=spec, backend=backend)
    for value in ODD_DRAWS[name]:
        with pytest.raises((ValueError, TypeError), match=f"`{name}` must"):
            generate(**usual | {name: value}, spec=spec, backend=backend)


def gradient(parameter: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()


@pytest.mark.parametrize("hidden", [5, 16, 19])
@pytest.mark.parametrize("make", [LSTM, RelLSTM, RelRNN, GRU, SABLSTM], ids=lambda make: make.__name__)
def test_an_infinite_input_spoils_no_more_than_in_the_reference(make, hidden):
    x = draw(6, 3, 4)
    x[2, 1, 0] = torch.inf
    results = []
    layer = make(4, hidden, dtype=torch.float64)
    for backend in ("fused", "reference"):
        layer.backend = backend
        layer.zero_grad()
        output, _ = layer(x)
        output.nan_to_num(0.0, 0.0, 0.0).sum().backward()
        results.append({"output": output.detach()} | {name: gradient(p) for name, p in layer.named_parameters()})
    for name, fused in results[0].items():
        exact = results[1][name]
        assert torch.equal(fused.isfinite(), exact.isfinite()), name
        assert_matches({name: fused.nan_to_num(0, 0, 0)}, {name: exact.nan_to_num(0, 0, 0)})


def test_raw_scores_that_overflow_spoil_the_same_rows_in_both():
    torch.manual_seed(0)
    spec = ScanSpec("rnn", Strided(3, 1, underfull="raw"), "identity", combine="half")
    weights = weights_for(spec)
    x = draw(6, 3, 3)
    x[:, 1] *= 1e200  # its scores are finite, their products with the states are not
    outputs = [scan(x, weights, spec=spec, backend=backend)[0] for backend in ("fused", "reference")]
    assert torch.equal(outputs[0].isfinite(), outputs[1].isfinite())
    assert bool(outputs[0][:, [0, 2]].isfinite().all())


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("nonlinearity", ["tanh", "identity"])
def test_a_raw_score_that_overflows_spoils_its_row_until_a_reset_and_no_other(nonlinearity, backend):
    """As docs/maths.md says."""
    torch.manual_seed(1)
    spec = ScanSpec("rnn", Strided(20, 1, underfull="raw"), nonlinearity)
    weights, x = weights_for(spec), draw(9, 3, 3)
    weights = weights._replace(hh=weights.hh / 10, key=weights.key / 10, query=weights.query / 10)
    state = empty_state(spec, 5, (3,), weights.hh)
    relevant, steps = state.relevant.clone(), state.relevant_step.clone()
    relevant[:, 0], steps[:, 0] = 0.5, 0
    relevant[1, 0] = torch.finfo(torch.float64).max / 2  # its score is finite; times itself it is not
    state = state._replace(relevant=relevant, relevant_step=steps, step=torch.ones(3, dtype=torch.int64))
    reset = torch.zeros(9, 3, dtype=torch.bool)
    reset[6, 1] = True
    output, _, _ = scan(x, weights, state, spec=spec, reset=reset, backend=backend)
    assert not output[:6, 1].isfinite().all(dim=1).any()
    assert bool(output[6:].isfinite().all())
    others = [0, 2]
    alone, _, _ = scan(
        x[:, others],
        weights,
        State(*(field[others] for field in state)),
        spec=spec,
        reset=reset[:, others],
        backend=backend,
    )
    assert_matches({"output": output[:, others]}, {"output": alone})
    fresh, _, _ = scan(x[6:, 1:2], weights, spec=spec, backend=backend)
    assert_matches({"output": output[6:, 1:2]}, {"output": fresh})


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("apart", [0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1.0])
def test_normalised_weights_fade_where_scores_hardly_differ(apart, backend):
    """Divided by their sum and 1e-7, as docs/maths.md says: nothing explodes, and equal scores give an empty read."""
    spec = ScanSpec("rnn", Strided(2, 1, normalise=True), "identity")
    first = torch.tensor([1.0, 0.0], dtype=torch.float64)
    nothing = torch.zeros(2, 2, dtype=torch.float64)
    weights = Weights(ih=torch.eye(2, dtype=torch.float64), hh=nothing, query=first, key=first)
    x = torch.tensor([[[0.0, 5.0]], [[apart, 3.0]], [[7.0, 7.0]]], dtype=torch.float64)  # scores 0 and `apart`
    output, _, _ = scan(x, weights, spec=spec, backend=backend)
    share = apart / (apart + 1e-7)
    assert_matches({"output": output[2]}, {"output": x[2] + share * x[1]})


def test_equal_scores_normalise_to_an_empty_read_in_both():
    spec = ScanSpec("rnn", Strided(3, 1, normalise=True))
    weights = weights_for(spec)._replace(key=torch.zeros(5, dtype=torch.float64))
    x = draw(6, 3, 3)
    for backend in ("fused", "reference"):
        output = scan(x, weights, spec=spec, backend=backend)[0]
        plain = scan(x, weights._replace(query=None, key=None, score=None), spec=ScanSpec("rnn"), backend=backend)[0]
        assert_matches({"output": output}, {"output": plain})


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("memory", [Screened(2, 3), Strided(3, 4)])
def test_a_slot_that_holds_nothing_gets_no_gradient(memory, backend):
    """It stays empty or is overwritten; in either case nothing of it is read or given back."""
    spec = ScanSpec("rnn", memory)
    weights = weights_for(spec)
    state = empty_state(spec, 5, (2,), weights.hh)
    relevant = draw(*state.relevant.shape).requires_grad_()
    _, final, _ = scan(draw(4, 2, 3), weights, state._replace(relevant=relevant), spec=spec, backend=backend)
    assert bool((final.relevant_step[:, 0] >= 0).all())
    assert bool((final.relevant_step[:, 2] == -1).all())
    assert not final.relevant[:, 2].any()
    final.relevant.sum().backward()
    assert relevant.grad is not None
    assert not relevant.grad.any()


def test_symbols_beyond_the_alphabet_are_refused_by_the_operator_itself():
    symbols = torch.full((5000,), 7, dtype=torch.uint8)
    edges = torch.tensor([0, 5000])
    with pytest.raises(RuntimeError, match="beyond the alphabet"):
        torch.ops.remanence.pair_counts(symbols, torch.tensor([1]), edges, edges, 3)


@pytest.mark.parametrize("edges", [[0, 6000], [5, 5000], [0, 4000, 3000, 5000], [5000]])
def test_edges_beyond_the_symbols_are_refused_by_the_operator_itself(edges):
    symbols, whole = torch.zeros(5000, dtype=torch.uint8), torch.tensor([0, 5000])
    with pytest.raises(RuntimeError, match="must rise from 0 to 5000"):
        torch.ops.remanence.pair_counts(symbols, torch.tensor([1]), torch.tensor(edges), whole, 3)


def test_children_of_busy_threads_do_not_hang():
    layer, x = LSTM(8, 64, dtype=torch.float64), draw(40, 16, 8)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            layer(x)[0].sum().backward()

    torch.set_num_threads(1)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(60):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, from Python 3.12 on
                child = os.fork()
            if child == 0:
                with torch.no_grad():
                    layer(x)
                os._exit(0)
            end = time.monotonic() + 60
            while os.waitpid(child, os.WNOHANG) == (0, 0):
                if time.monotonic() > end:
                    os.kill(child, 9)
                    os.waitpid(child, 0)
                    pytest.fail("a forked child hangs")
                time.sleep(0.002)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


class AnyLSTM(RecurrentLayer):
    cell = "lstm"


SCREENS = ("attention", "mean", "value", "learned", "random", "newest")
MEMORIES = [*(Screened(3, 3, screen) for screen in SCREENS), Strided(3, 1), Full(4), Full()]


def spoil_empty_slots(state: State, value: float) -> State:
    """The state with a number in all that holds nothing: the ring behind row 0's two steps, the free relevant slots."""
    free = state.relevant_step == -1
    not_yet = torch.arange(state.recent.shape[2]) >= state.step[..., None]
    fields = {
        "recent": state.recent.masked_fill(not_yet[..., None], value),
        "relevant": state.relevant.masked_fill(free[..., None], value),
    }
    if state.recent_score.shape[2]:
        fields["recent_score"] = state.recent_score.masked_fill(not_yet, value)
        fields["relevant_score"] = state.relevant_score.masked_fill(free, value)
    return state._replace(**fields)


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@pytest.mark.parametrize("value", [torch.nan, torch.inf, 1e308])
def test_what_stands_in_an_empty_slot_never_matters(value, memory, backend):
    layer = AnyLSTM(3, 5, memory=memory, dtype=torch.float64, backend=backend)
    given = layer(draw(2, 2, 3))[1].detach()
    x = draw(3, 2, 3)
    found = []
    for state in (given, spoil_empty_slots(given, value)):
        layer.zero_grad()
        leaf = state.relevant.clone().requires_grad_()
        output, final = layer(x, state._replace(relevant=leaf))
        (output.sum() + final.relevant.sum()).backward()
        found.append([output, *final, gradient(leaf), *map(gradient, layer.parameters()), layer.step(x[0], state)[0]])
    for clean, spoilt in zip(*found, strict=True):
        assert torch.equal(clean, spoilt)


@pytest.mark.parametrize("hidden", [1, 4, 17])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_score_weights_near_the_largest_number_choose_alike(dtype, sign, hidden):
    """A sum of such weights overflows where the scores themselves do not: one state gets all the attention."""
    torch.manual_seed(0)
    layer = RelLSTM(3, hidden, recent=2, relevant=2, dtype=dtype)
    with torch.no_grad():
        layer.weight_score_l0.fill_(sign * torch.finfo(dtype).max / hidden)
    x = torch.randn(9, 2, 3, dtype=dtype)
    outputs = {}
    for backend in ("fused", "reference"):
        layer.backend = backend
        outputs[backend] = layer(x)[0].detach()
    assert all(bool(output.isfinite().all()) for output in outputs.values())
    if dtype == torch.float64:  # in single precision rounding may choose another state
        assert_matches({"output": outputs["fused"]}, {"output": outputs["reference"]})


CELLS = {"rnn": ("tanh", "relu", "modrelu", "identity"), "lstm": ("",), "gru": ("",), "goru": ("",)}


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("field", ["s", "c", "h", "x", "recent", "relevant"])
@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
def test_an_infinite_state_reaches_the_same_numbers_in_both(value, field, cell):
    """A closed gate times infinity is NaN, an open one infinity; that of a GORU was infinity in either case."""
    torch.manual_seed(0)
    for nonlinearity in CELLS[cell]:
        for memory in (None, Screened(2, 2), Strided(2, 1, underfull="raw")):
            options = {"nonlinearity": nonlinearity} if nonlinearity else {}
            layer = type("Any", (RecurrentLayer,), {"cell": cell})(3, 5, memory=memory, dtype=torch.float64, **options)
            state = layer(draw(4, 2, 3))[1].detach()
            x = draw(5, 2, 3)
            spoilt = x if field == "x" else getattr(state, field)
            spoilt.view(-1)[:1] = value  # nothing, if this layer has no such field
            results = {}
            for backend in ("fused", "reference"):
                layer.backend = backend
                output, final = layer(x, state)
                results[backend] = {"output": output.detach()} | final.detach()._asdict()
            compare_not_finite(results["fused"], results["reference"])


def compare_not_finite(fused: dict[str, torch.Tensor], exact: dict[str, torch.Tensor]) -> None:
    """NaN and each infinity at the same places, and the rest by the one rule."""
    for name in exact:
        for same in (torch.isnan, torch.isposinf, torch.isneginf):
            assert torch.equal(same(fused[name]), same(exact[name])), name
    finite = [{name: value.nan_to_num(0, 0, 0) for name, value in found.items()} for found in (fused, exact)]
    assert_matches(*finite)


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("memory", [Screened(2, 2, "mean"), Strided(2, 1)], ids=str)
@pytest.mark.parametrize("step", [-3, -(2**63), 9, 2**63 - 1])
def test_steps_that_no_state_can_have_are_refused(step, memory, backend):
    layer = AnyLSTM(3, 5, memory=memory, dtype=torch.float64, backend=backend)
    x = draw(4, 2, 3)
    state = layer(draw(9, 2, 3))[1].detach()
    layer(x, state)
    state.relevant_step[0, 1, 1] = step
    for call in (lambda: layer(x, state), lambda: layer.step(x[0], state), lambda: layer.trace(x, state)):
        with pytest.raises(ValueError, match=r"`state\.relevant_step` must hold steps before `state\.step`"):
            call()


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_a_free_slot_is_free_beside_a_nan_and_nothing_beats_a_nan(backend):
    spec = ScanSpec("rnn", Screened(1, 3))
    weights = weights_for(spec)
    state = empty_state(spec, 5, (2,), weights.hh)
    state.step.fill_(5)
    state.relevant_step[:, 0] = 0
    state.relevant_score[:, 0] = torch.nan
    _, final, log = scan(draw(4, 2, 3), weights, state, spec=spec, backend=backend)
    assert log.slot[:, 0].tolist() == [1, 2, -1, -1]
    assert bool((final.relevant_step[:, 0] == 0).all())
