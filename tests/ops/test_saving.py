"""Saving less changes neither outputs nor gradients, on either path."""

from __future__ import annotations

import _thread
import threading

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from remanence import nn
from remanence.ops import Full, Log, ScanSpec, Screened, Strided, Weights, saving, scan
from remanence.testing import assert_matches

SPECS = [
    ScanSpec("lstm", Screened(3, 4)),
    ScanSpec("lstm", Screened(3, 4, screen="mean")),
    ScanSpec("gru", Screened(3, 4, screen="learned")),
    ScanSpec("gru", Full(), combine="half"),
    ScanSpec("rnn", Strided(3, 2), combine="half"),
]


def run(case, backend: str, log: Log | None = None, **choice) -> dict[str, torch.Tensor]:
    x = case.x.clone().requires_grad_()
    weights = Weights._make(w if w is None else w.clone().requires_grad_() for w in case.weights)
    with saving(**choice):
        options = {"spec": case.spec, "backend": backend, "forced_log": log, **case.options}
        output, state, made = scan(x, weights, case.state, **options)
    (output.square().sum() + state.s.sum() + state.relevant.sum()).backward()
    named = {
        "output": output.detach(),
        "s": state.s.detach(),
        "slot": made.slot,
        "d.x": x.grad,
        "d.hh": weights.hh.grad,
    }
    assert all(value is not None for value in named.values())
    return named  # type: ignore[return-value]


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("choice", [{"lean": True}, {"segment": 7}, {"segment": 1}, {"lean": True, "segment": 16}])
def test_results_stay_the_same(scans, spec, backend, choice):
    case = scans.make_case(spec, steps=33, started=True, events=True)
    whole = run(case, backend)
    assert_matches(run(case, backend, **choice), whole)


def test_a_forced_log_is_cut_into_segments(scans):
    case = scans.make_case(SPECS[0], steps=33)
    slot = run(case, "fused")["slot"]
    with saving(segment=10):
        assert torch.equal(run(case, "fused", Log(slot, torch.full_like(slot, -1)))["slot"], slot)


def test_the_choice_ends_with_the_block():
    from remanence.ops._backward_memory import Saving, present

    with saving(lean=True, segment=3):
        assert present() == Saving(lean=True, segment=3)
    assert present() == Saving()


def test_a_segment_of_no_steps_is_refused():
    with pytest.raises(ValueError, match="segment"), saving(segment=0):
        pass


def test_gradients_of_a_long_sequence_stay_exact_in_segments(scans):
    case = scans.make_case(SPECS[0], steps=3000, batch=2, hidden=8)
    assert_matches(run(case, "fused", segment=256), run(case, "fused"))


@pytest.mark.parametrize("layer", [nn.RelLSTM, nn.LSTM, nn.RelGRU], ids=lambda layer: layer.__name__)
@pytest.mark.parametrize(("batch", "steps"), [(1, 300), (7, 70), (40, 40), (150, 20)])  # few chunks and many
@pytest.mark.parametrize("packed", [False, True])
def test_lean_gradients_have_the_bits_of_the_others(layer, batch, steps, packed):
    torch.manual_seed(0)
    sizes = {} if layer is nn.LSTM else {"recent": 3, "relevant": 2}
    recurrent = layer(3, 6, backend="fused", **sizes)
    x = torch.randn(steps, batch, 3)
    lengths = torch.randint(1, steps + 1, (batch,)).sort(descending=True).values
    lengths[0] = steps
    given = pack_padded_sequence(x, lengths) if packed else x

    def gradients(**choice: bool) -> list[torch.Tensor]:
        recurrent.zero_grad()
        with saving(**choice):
            output = recurrent(given)[0]
        (output.data if packed else output).square().sum().backward()
        return [w.grad.clone() for w in recurrent.parameters() if w.grad is not None]

    assert all(map(torch.equal, gradients(lean=True), gradients()))


def test_the_choice_is_that_of_one_thread():
    from remanence.ops._backward_memory import Saving, present

    seen = []
    with saving(lean=True):
        thread = threading.Thread(target=lambda: seen.append(present()))
        thread.start()
        thread.join()
    assert seen == [Saving()]


def test_a_backward_pass_in_a_thread_of_autograd_sees_the_block():
    from remanence.ops._backward_memory import Saving, present

    seen = []
    done = threading.Event()
    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda gradient: seen.append(present()))

    def go_back() -> None:
        seen.append(present())  # not yet in a backward pass
        (2 * x).backward()
        done.set()

    with saving(segment=5):
        _thread.start_new_thread(go_back, ())  # one that Python's threading did not start, as autograd's are
        assert done.wait(30)
    assert seen == [Saving(), Saving(segment=5)]
