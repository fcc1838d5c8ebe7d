"""ONNX: a loop over the steps and one step of a stream, checked in onnxruntime against the layer."""

from __future__ import annotations

import copy
import importlib.util

import pytest
import torch

from remanence.nn import LSTM, MemLSTM, RelLSTM, SequenceModel
from remanence.nn.onnx import export_sequence, export_step, state_fields
from remanence.testing import assert_matches, replacements, sharpen_


@pytest.fixture(scope="module", autouse=True)
def onnxruntime(require_or_skip):
    if any(importlib.util.find_spec(name) is None for name in ("onnxscript", "onnxruntime")):
        require_or_skip("integrations", "onnxscript or onnxruntime is not installed")
    return pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def layer():
    """Its attention is sharp, so that states are replaced in its memory."""
    torch.manual_seed(0)
    return sharpen_(RelLSTM(3, 8, recent=2, relevant=4, batch_first=True)).eval()


@pytest.fixture(scope="module")
def session(onnxruntime, layer, tmp_path_factory):
    """The exported sequence, read back from its file."""
    path = tmp_path_factory.mktemp("onnx") / "layer.onnx"
    program = export_sequence(layer, path)
    operators = [node.op_type for node in program.model.graph]
    assert operators.count("Scan") == 1
    assert len(operators) < 50
    return onnxruntime.InferenceSession(path)


def assert_like_the_layer(found: dict[str, torch.Tensor], layer: RelLSTM, x: torch.Tensor) -> None:
    """Floats by the one rule, with the reference as the plain computation; steps exactly."""
    exact, plain = copy.deepcopy(layer).double(), copy.deepcopy(layer)
    plain.backend = "reference"
    sides = []
    for twin, given in ((exact, x.double()), (plain, x)):
        output, state = twin(given)
        sides.append({"output": output, "s_out": state.s, "recent_out": state.recent, "relevant_out": state.relevant})
    assert_matches({name: found[name] for name in sides[0]}, *sides)
    assert torch.equal(found["relevant_step_out"], state.relevant_step)
    assert torch.equal(found["step_out"], state.step)


@pytest.mark.parametrize("shape", [(2, 3, 3), (1, 40, 3), (5, 1, 3)])
def test_the_loop_takes_every_length_and_batch(session, layer, shape):
    x = torch.randn(shape)
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, map(torch.from_numpy, session.run(None, {"input": x.numpy()})), strict=True))
    assert_like_the_layer(found, layer, x)


def test_states_are_replaced_in_the_loop(layer):
    assert replacements(layer, torch.randn(4, 40, 3)).sum() >= 10


def test_one_step_streams_with_its_state(onnxruntime, layer, tmp_path):
    export_step(layer, tmp_path / "step.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "step.onnx")
    names = [output.name for output in session.get_outputs()]
    x = torch.randn(3, 20, 3)
    state = {name: field.numpy() for name, field in state_fields(layer.initial_state(3)).items()}
    outputs = []
    for input_t in x.unbind(1):
        found = dict(zip(names, session.run(None, {"input": input_t.numpy(), **state}), strict=True))
        outputs.append(torch.from_numpy(found["output"]))
        state = {name: found[f"{name}_out"] for name in state}
    last = {name: torch.from_numpy(value) for name, value in found.items()}
    assert_like_the_layer({**last, "output": torch.stack(outputs, dim=1)}, layer, x)


def test_a_model_reads_tokens(onnxruntime, tmp_path):
    model = SequenceModel(10, "LSTM", 9, hidden_size=4).eval()
    export_step(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    tokens = torch.tensor([1, 7, 3])
    state = {name: field.numpy() for name, field in state_fields(model.core.initial_state(3)).items()}
    logits = torch.from_numpy(session.run(["output"], {"input": tokens.numpy(), **state})[0])
    exact, plain = (twin.step(tokens)[0] for twin in (copy.deepcopy(model).double(), model))
    assert_matches({"logits": logits}, {"logits": exact}, {"logits": plain})


@pytest.mark.parametrize(
    ("model", "error", "reason"),
    [
        (LSTM(3, 4, bidirectional=True), ValueError, "run forward only"),
        (MemLSTM(3, 4), ValueError, "state that does not grow"),
        (torch.nn.LSTM(3, 4), TypeError, "torch.onnx.export takes torch's own layers"),
    ],
)
def test_what_cannot_be_exported_is_refused(model, error, reason):
    with pytest.raises(error, match=reason):
        export_sequence(model)
