"""torch's own tools: compile, export, autocast, loading with weights only, scripting.

What the conformance suite checks of every layer (functional_call, compile, export at one length) is not repeated here.
"""

from __future__ import annotations

import io

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch.export import Dim, export

from remanence.nn import SABLSTM, CacheState, MemLSTM, RelGRU, RelLSTM, SequenceModel, State, Transformer

LAYERS = [
    pytest.param(lambda: RelLSTM(3, 8, recent=3, relevant=2), id="RelLSTM"),
    pytest.param(lambda: MemLSTM(3, 8), id="MemLSTM"),
    pytest.param(lambda: SABLSTM(3, 8, top_k=2, every=2), id="SABLSTM"),
    pytest.param(lambda: RelGRU(3, 8, 2, recent=3, relevant=2, bidirectional=True), id="RelGRU"),
]
ANY_LENGTH_AND_BATCH = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}


def test_a_compiled_layer_takes_every_length_and_batch_without_compiling_again():
    layer = RelLSTM(3, 8, recent=3, relevant=2)
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=counter)
    compiled(torch.randn(7, 4, 3))[0].sum().backward()
    compiled_once = counter.frame_count
    for steps, batch in [(9, 4), (30, 2), (50, 6)]:
        x = torch.randn(steps, batch, 3)
        layer.zero_grad()
        found = compiled(x)[0]
        found.square().sum().backward()
        gradients = {name: p.grad for name, p in layer.named_parameters()}
        layer.zero_grad()
        expected = layer(x)[0]
        expected.square().sum().backward()
        assert torch.equal(found, expected)
        assert all(torch.equal(gradients[name], p.grad) for name, p in layer.named_parameters())
    assert counter.frame_count == compiled_once


@pytest.mark.parametrize("make", LAYERS)
def test_an_exported_layer_takes_every_length_and_batch(make):
    layer = make().eval()
    program = export(layer, (torch.randn(7, 4, 3),), dynamic_shapes=(ANY_LENGTH_AND_BATCH,)).module()
    for shape in [(20, 2, 3), (1, 1, 3), (50, 9, 3)]:
        x = torch.randn(shape)
        output, state = layer(x)
        exported, exported_state = program(x)
        assert torch.equal(exported, output)
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(state, exported_state, strict=True))


def test_an_exported_layer_goes_on_from_a_state_of_any_batch():
    layer = RelLSTM(3, 8, recent=3, relevant=2).eval()
    shapes = (ANY_LENGTH_AND_BATCH, State(*[{1: Dim.DYNAMIC}] * len(State._fields)))
    program = export(layer, (torch.randn(7, 4, 3), layer.initial_state(4)), dynamic_shapes=shapes)
    # torch 2.13 writes wrong code for its guards where one field's name begins with another's, as `chain` with `c`.
    program = program.module(check_guards=False)
    x = torch.randn(12, 3, 3)
    _, state = layer(x[:5])
    assert torch.equal(program(x[5:], state)[0], layer(x)[0][5:])


def test_an_exported_model_survives_its_file_with_every_length_and_batch():
    model = SequenceModel(10, "RelLSTM", 9, hidden_size=8, recent=3, relevant=2).eval()
    program = export(model, (torch.randint(10, (7, 4)),), dynamic_shapes=(ANY_LENGTH_AND_BATCH,))
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    tokens = torch.randint(10, (20, 2))
    logits, state = torch.export.load(buffer).module()(tokens)
    expected, expected_state = model(tokens)
    assert isinstance(state, State)
    assert torch.equal(logits, expected)
    assert torch.equal(state.relevant, expected_state.relevant)


def test_autocast_trains_and_keeps_the_weights_in_float32():
    layer, x = RelLSTM(3, 8, recent=3, relevant=2), torch.randn(12, 4, 3)
    with torch.autocast("cpu", torch.bfloat16):
        loss = layer(x)[0].float().square().mean()
    loss.backward()
    expected = layer(x)[0].square().mean()
    assert abs(loss - expected) < torch.finfo(torch.bfloat16).eps
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in layer.parameters())
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize(
    ("core", "kind"),
    [
        pytest.param(RelLSTM(4, 8, recent=3, relevant=2), State, id="RelLSTM"),
        pytest.param(Transformer(4, 1, 2), CacheState, id="Transformer"),
    ],
)
def test_a_state_is_loaded_with_weights_only(core, kind, tmp_path):
    _, state = core(torch.randn(5, 2, 4))
    torch.save({"state": state.detach(), "weights": core.state_dict()}, tmp_path / "stream.pt")
    loaded = torch.load(tmp_path / "stream.pt", weights_only=True)["state"]
    assert type(loaded) is kind
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(state, loaded, strict=True))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    "module",
    [
        pytest.param(RelLSTM(3, 8), id="layer"),
        pytest.param(SequenceModel(10, torch.nn.LSTM(10, 8), 9), id="model"),
        pytest.param(torch.nn.Sequential(torch.nn.Linear(3, 3), RelLSTM(3, 8)), id="inside"),
    ],
)
def test_scripting_is_refused_with_what_takes_its_place(module):
    with pytest.raises(TypeError, match=r"cannot be compiled by torch\.jit\.script.*use torch\.compile"):
        torch.jit.script(module)
