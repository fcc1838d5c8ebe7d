"""On the fused path a row's bits depend on no other row, on chunking, on step or whole, on batch size or threads."""

from __future__ import annotations

import threading

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from remanence.ops import Full, ScanSpec, Screened, State, Strided, Weights, fused

SPECS = [
    ScanSpec("lstm"),
    ScanSpec("lstm", Screened(4, 5)),
    ScanSpec("lstm", Screened(4, 5, screen="mean")),
    ScanSpec("rnn", Screened(4, 5, screen="value")),
    ScanSpec("gru", Screened(4, 5, screen="learned")),
    ScanSpec("rnn", Screened(4, 5, screen="random")),
    ScanSpec("rnn", Screened(3, 4, score="dot"), "relu", combine="half"),
    ScanSpec("gru", Full()),
    ScanSpec("gru", Full(limit=5)),
    ScanSpec("lstm", Strided(3, 2), combine="half"),
    ScanSpec("goru", Strided(2, 1, score="tanh", underfull="raw", start="zero"), combine="half"),
]
HIDDEN = (5, 72)


def name_of(spec: ScanSpec) -> str:
    return f"{spec.cell}-{type(spec.memory).__name__}-{getattr(spec.memory, 'screen', '')}"


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request) -> torch.dtype:
    return request.param


@pytest.fixture(params=SPECS, ids=name_of)
def spec(request) -> ScanSpec:
    return request.param


def draw(scans, spec, dtype, hidden, steps=45, batch=29, inputs=6) -> tuple[torch.Tensor, Weights]:
    weights = scans.weights(spec, hidden, inputs)
    cast = Weights._make(None if weight is None else weight.to(dtype) for weight in weights)
    return torch.randn(steps, batch, inputs, dtype=dtype), cast


def same(first: State, second: State) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("hidden", HIDDEN)
def test_bits_do_not_depend_on_other_rows(scans, spec, dtype, hidden):
    x, weights = draw(scans, spec, dtype, hidden)
    output, state, log = fused.scan(x, weights, None, spec=spec)
    for rows in (slice(0, 1), slice(3, 10), slice(11, 28)):
        alone, alone_state, alone_log = fused.scan(x[:, rows], weights, None, spec=spec)
        assert torch.equal(output[:, rows], alone)
        assert torch.equal(log.slot[:, rows], alone_log.slot)
        assert same(State._make(field[rows] for field in state), alone_state)


@pytest.mark.parametrize(("lean", "steps"), [(False, 400), (True, 1200)], ids=["all", "lean"])
def test_bits_do_not_depend_on_the_size_of_the_history(scans, spec, lean, steps):
    """A history over 16 MB is written past the caches; only lean cells without a memory stay below that here."""
    x, weights = draw(scans, spec, torch.float32, hidden=64, steps=steps, batch=64)
    cotangent = torch.randn(steps, 64, 64)

    def run(rows: slice) -> list[torch.Tensor]:
        inputs = x[:, rows].clone().requires_grad_()
        output, state, _ = fused.scan(inputs, weights, None, spec=spec, lean=lean)
        return [output, state.s, *torch.autograd.grad(output, inputs, cotangent[:, rows])]

    few, many = run(slice(10, 13)), run(slice(None))
    assert torch.equal(many[0][:, 10:13], few[0])
    assert torch.equal(many[1][10:13], few[1])
    assert torch.equal(many[2][:, 10:13], few[2])


@pytest.mark.parametrize("hidden", HIDDEN)
def test_bits_do_not_depend_on_chunks_or_steps(scans, spec, dtype, hidden):
    x, weights = draw(scans, spec, dtype, hidden, batch=5)
    output, final, _ = fused.scan(x, weights, None, spec=spec)
    for cuts in ([45], [20, 25], [1, 1, 13, 30], [1] * 45):
        state, parts = None, []
        for part in x.split(cuts):
            out, state, _ = fused.scan(part, weights, state, spec=spec)
            parts.append(out)
        assert torch.equal(output, torch.cat(parts))
        assert state is not None
        assert same(final, state)


def test_bits_do_not_depend_on_saving(scans, spec, dtype):
    x, weights = draw(scans, spec, dtype, 24)
    plain = fused.scan(x, weights, None, spec=spec)[0]
    for lean in (False, True):
        learning = fused.scan(x.clone().requires_grad_(), weights, None, spec=spec, lean=lean)[0]
        assert torch.equal(plain, learning)


@pytest.mark.parametrize("batch", [1, 10, 64, 131])
def test_gradients_do_not_depend_on_threads_or_mode(scans, spec, dtype, batch):
    x, weights = draw(scans, spec, dtype, 20, batch=batch)

    def gradients(threads: int, lean: bool) -> list[torch.Tensor]:
        leaves = [tensor.clone().requires_grad_() for tensor in (x, *weights) if tensor is not None]
        given = iter(leaves[1:])
        used = Weights._make(None if weight is None else next(given) for weight in weights)
        torch.set_num_threads(threads)
        try:
            fused.scan(leaves[0], used, None, spec=spec, lean=lean)[0].square().sum().backward()
        finally:
            torch.set_num_threads(1)
        return [leaf.grad for leaf in leaves if leaf.grad is not None]

    first = gradients(1, False)
    for threads, lean in ((2, False), (5, False), (2, True)):
        assert all(torch.equal(a, b) for a, b in zip(first, gradients(threads, lean), strict=True))


def test_concurrent_calls_do_not_disturb_each_other(scans):
    spec = ScanSpec("lstm", Screened(4, 5))
    cases = [draw(scans, spec, torch.float32, 32, batch=size) for size in (3, 17, 8, 40)]
    alone = [fused.scan(x, weights, None, spec=spec)[0] for x, weights in cases]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(10):
            if not torch.equal(fused.scan(*cases[i], None, spec=spec)[0], alone[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("name", ["portable", "avx2", "avx512"])
def test_every_instruction_set_agrees_with_the_specification(scans, spec, name, monkeypatch):
    monkeypatch.setenv("REMANENCE_KERNEL", name)
    if torch.ops.remanence.instruction_set() != name:
        pytest.skip(f"this processor has no {name}")
    scans.compare(scans.make_case(spec, steps=25, started=True, events=True))
    scans.compare(scans.make_case(ScanSpec("lstm", Screened(3, 4)), steps=20, hidden=24, sharp=4.0), torch.float32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("lean", [False, True])
def test_packed_rows_have_the_bits_of_padded_ones(scans, spec, dtype, lean, threads):
    lengths = torch.tensor([45, 45, 30, 21, 9, 9, 4, *[1] * 22])
    x, weights = draw(scans, spec, dtype, 20)
    weights = Weights._make(None if weight is None else weight.requires_grad_() for weight in weights)
    offset, cotangent = torch.randn(*x.shape[:2], 20, dtype=dtype), torch.randn(*x.shape[:2], 20, dtype=dtype)
    reset = torch.rand(*x.shape[:2]) < 0.05
    results = []
    torch.set_num_threads(threads)
    for by_time in (lambda tensor: tensor, lambda tensor: pack_padded_sequence(tensor, lengths).data):
        learning, moved = by_time(x).clone().requires_grad_(), by_time(offset).clone().requires_grad_()
        options = {"spec": spec, "lengths": lengths, "reset": by_time(reset), "h_offset": moved, "lean": lean}
        output, state, log = fused.scan(learning, weights, None, **options)
        value = (output * by_time(cotangent)).sum() + state.s.square().sum()
        leaves = [learning, moved, *(weight for weight in weights if weight is not None)]
        results.append((output, log.slot, *torch.autograd.grad(value, leaves, allow_unused=True), state))
    torch.set_num_threads(1)
    padded, packed = results
    for wide, close in zip(padded[:4], packed[:4], strict=True):
        assert torch.equal(pack_padded_sequence(wide, lengths).data, close)
    for first, second in zip((*padded[4:-1], *padded[-1]), (*packed[4:-1], *packed[-1]), strict=True):
        assert first is second if first is None or second is None else torch.equal(first, second)


@pytest.mark.parametrize("lengths", [[3, 4], [4, 3, 3], [0, 7], [7, 0]], ids=str)
def test_packed_rows_that_do_not_fit_are_refused(scans, lengths):
    spec = ScanSpec("lstm", Screened(4, 5))
    x, weights = draw(scans, spec, torch.float64, 5)
    with pytest.raises(RuntimeError, match=r"lengths|sorted"):
        fused.scan(x[:7, 0], weights, None, spec=spec, lengths=torch.tensor(lengths))
