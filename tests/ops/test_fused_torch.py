"""The kernel as a torch operator: registration, tracing, saving, and what it hands to the reference or refuses."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad

from remanence.ops import (
    Full,
    ScanSpec,
    Screened,
    SlowPathWarning,
    State,
    Strided,
    Weights,
    _backend,
    _cells,
    _kernel_config,
    _kernel_tensors,
    _slow_path,
    backend_report,
    reference,
    scan,
)
from remanence.testing import assert_matches

REL = ScanSpec("lstm", Screened(3, 4))


def arguments(scans, spec, save=_kernel_config.SAVE_ALL, **sizes):
    case = scans.make_case(spec, **{"steps": 6, "batch": 3, "hidden": 5, "inputs": 2, **sizes}, started=True)
    state = case.state
    learning = [w if w is None else w.clone().requires_grad_() for w in case.weights.known_to_kernel()]
    carried = (state.s, state.c, state.h, state.recent, state.recent_score, state.relevant)
    tensors = (case.x.clone().requires_grad_(), *learning, *carried, state.relevant_score, state.relevant_step)
    return (*tensors, state.step, *[None] * 6, _kernel_config.encode(spec, save))


@pytest.mark.parametrize(
    "spec",
    [REL, ScanSpec("gru"), ScanSpec("rnn", Full(), output="hidden"), ScanSpec("lstm", Strided(3, 2), combine="half")],
    ids=str,
)
@pytest.mark.parametrize("save", [_kernel_config.SAVE_ALL, _kernel_config.SAVE_LEAN])
@pytest.mark.parametrize("hidden", [5, 16])
def test_opcheck(scans, spec, save, hidden):
    torch.library.opcheck(torch.ops.remanence.scan_forward.default, arguments(scans, spec, save, hidden=hidden))


@pytest.mark.parametrize(("hidden", "batch"), [(5, 1), (5, 12), (130, 12), (130, 150), (256, 17), (256, 150)])
def test_both_languages_know_how_many_cells_are_kept(hidden, batch):
    weights = (torch.randn(4 * hidden, 2), torch.randn(4 * hidden, hidden))
    inputs = _kernel_tensors.ScanInputs(torch.randn(140, batch, 2), *weights, *[None] * 23)
    config = _kernel_config.encode(ScanSpec("lstm"), _kernel_config.SAVE_LEAN)
    history = torch.ops.remanence.scan_forward(*inputs, config)[-1]
    assert history.numel() == _kernel_tensors.history_numbers(inputs, _kernel_config.Config(*config)) > 0


def test_both_languages_have_the_same_names_in_the_same_order():
    forward = torch.ops.remanence.scan_forward.default._schema
    assert [argument.name for argument in forward.arguments] == [*_kernel_tensors.ScanInputs._fields, "config"]
    made = [result.name.removesuffix("_n") for result in forward.returns]
    assert made == list(_kernel_tensors.ScanOutputs._fields)
    backward = torch.ops.remanence.scan_backward.default._schema
    kept = [name for name in _kernel_tensors.ScanInputs._fields if name not in _kernel_tensors.NOT_KEPT]
    taken = (
        [f"d_{name}" for name in _kernel_tensors.COTANGENTS] + kept + ["output", "slot", "history", "config", "wanted"]
    )
    assert [argument.name for argument in backward.arguments] == taken
    given = [result.name.removeprefix("d_").removesuffix("_0") for result in backward.returns]
    assert given == [name for name in _kernel_tensors.ScanInputs._fields if name not in _kernel_tensors.NO_GRADIENT]
    assert torch.ops.remanence.config_fields().split() == list(_kernel_config.Config._fields)
    assert torch.ops.remanence.cell_names().split() == [cell.name for cell in _cells.IN_KERNEL]


@pytest.mark.parametrize("name", ["step", "generate"])
def test_a_stack_takes_the_state_in_the_order_of_its_fields(name):
    arguments = [argument.name for argument in getattr(torch.ops.remanence, name).default._schema.arguments]
    fields = [field for field in State._fields if field != "chain"]
    start = arguments.index("s")
    assert arguments[start : start + len(fields)] == fields


@pytest.mark.parametrize("spec", [REL, ScanSpec("rnn"), ScanSpec("gru", Full())], ids=str)
def test_compiles_without_a_graph_break(scans, spec):
    case = scans.make_case(spec, steps=8, batch=2)

    def loss(x, hh):
        output, state, _ = scan(x, case.weights._replace(hh=hh), spec=spec, backend="fused")
        return output.square().sum() + state.s.sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    results = []
    for function in (loss, compiled):
        x, hh = case.x.clone().requires_grad_(), case.weights.hh.clone().requires_grad_()
        value = function(x, hh)
        results.append((value.detach(), *torch.autograd.grad(value, (x, hh))))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_double_backward_is_refused_by_name(scans):
    case = scans.make_case(REL, steps=4)
    x = case.x.clone().requires_grad_()
    output = scan(x, case.weights, spec=REL, backend="fused")[0]
    (first,) = torch.autograd.grad(output.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="backend='reference'"):
        first.sum().backward()


def test_functorch_goes_to_the_reference_and_is_right(scans):
    case = scans.make_case(REL, steps=5, batch=2, hidden=4)

    def loss(x):
        return scan(x, case.weights, spec=REL)[0].square().sum()

    x = case.x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(reference.scan(x, case.weights, None, spec=REL)[0].square().sum(), x)
    assert_matches({"grad": torch.func.grad(loss)(case.x)}, {"grad": expected})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forward_mode_goes_to_the_reference_and_is_right(scans):
    case = scans.make_case(REL, steps=5, batch=2, hidden=4)
    direction = torch.randn_like(case.x)
    x = case.x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(scan(x, case.weights, spec=REL)[0].sum(), x)
    with forward_ad.dual_level():
        output = scan(forward_ad.make_dual(case.x, direction), case.weights, spec=REL)[0]
        tangent = forward_ad.unpack_dual(output).tangent
    assert tangent is not None
    assert_matches({"jvp": tangent.sum()}, {"jvp": (gradient * direction).sum()})
    with forward_ad.dual_level(), pytest.raises(ValueError, match="forward-mode"):
        scan(case.x, case.weights, spec=REL, backend="fused")


@pytest.mark.parametrize(
    "spec",
    [
        ScanSpec("rnn", Screened(2, 2), combine="concat"),
        ScanSpec("rnn", Strided(2, 1, score="mlp")),
        ScanSpec("rnn", Strided(2, 1, sparse="backward")),
        ScanSpec("rnn", Strided(2, 1, hops="one")),
        ScanSpec("rnn", Strided(2, 1), output="weights", max_steps=9),
        ScanSpec("rnn", Strided(64, 1, keep="k")),
    ],
    ids=str,
)
def test_what_the_kernel_lacks_goes_to_the_reference(spec):
    x = torch.zeros(3, 2, 4)
    assert _backend.choose_backend("auto", spec, x) == "reference"
    with pytest.raises(ValueError, match="cannot run this scan"):
        _backend.choose_backend("fused", spec, x)


def test_other_dtypes_and_devices_go_to_the_reference(monkeypatch):
    monkeypatch.setattr(_slow_path, "_told", set())
    spec = ScanSpec("rnn")
    with pytest.warns(SlowPathWarning, match="complex64"):
        assert _backend.choose_backend("auto", spec, torch.zeros(1, 1, 1, dtype=torch.complex64)) == "reference"
    assert _backend.choose_backend("auto", spec, torch.zeros(1, 1, 1, device="meta")) == "reference"
    assert _backend.choose_backend("auto", spec, torch.zeros(1, 1, 1)) == "fused"


def test_a_graph_can_be_kept_and_used_twice(scans):
    case = scans.make_case(REL, steps=6)
    x = case.x.clone().requires_grad_()
    value = scan(x, case.weights, spec=REL, backend="fused")[0].square().sum()
    first = torch.autograd.grad(value, x, retain_graph=True)
    assert torch.equal(first[0], torch.autograd.grad(value, x)[0])


def test_changing_the_output_in_place_is_noticed(scans):
    case = scans.make_case(REL, steps=6, hidden=16)
    x = case.x.clone().requires_grad_()
    output = scan(x, case.weights, spec=REL, backend="fused")[0]
    value = output.square().sum()
    output.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_strided_inputs_are_taken(scans):
    case = scans.make_case(REL, steps=6)
    turned = case.x.transpose(0, 1).contiguous().transpose(0, 1)
    expected = scan(case.x, case.weights, spec=REL, backend="fused")[0]
    assert torch.equal(expected, scan(turned, case.weights, spec=REL, backend="fused")[0])


def test_the_report_names_library_and_instruction_set():
    report = backend_report()
    assert report["active"] == "fused"
    assert report["library"].endswith(".so")
    assert report["instruction_set"] in ("portable", "avx2", "avx512")


def test_only_wanted_gradients_are_given(scans):
    case = scans.make_case(REL, steps=6)
    weights = Weights._make(w if w is None else w.clone().requires_grad_() for w in case.weights)
    scan(case.x, weights, spec=REL, backend="fused")[0].sum().backward()
    assert case.x.grad is None
    assert all(w.grad is not None for w in weights if w is not None)
