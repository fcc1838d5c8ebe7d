"""Folders of the Hugging Face Hub, on this machine only."""

from __future__ import annotations

import importlib.util

import pytest
import torch


@pytest.fixture(autouse=True)
def hub_model(require_or_skip):
    if importlib.util.find_spec("huggingface_hub") is None:
        require_or_skip("transformers", "huggingface_hub is not installed")
    from remanence.nn.hub import HubModel

    return HubModel


OPTIONS = [
    pytest.param({"hidden_size": 8, "recent": 3, "relevant": 2}, id="one-hot"),
    pytest.param({"hidden_size": 8, "encoder": "embedding", "embedding_size": 8, "tied": True}, id="tied"),
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_model_comes_back_from_its_folder(hub_model, tmp_path, options):
    model = hub_model(10, "RelLSTM", 10, **options)
    model.save_pretrained(tmp_path)
    assert {"config.json", "model.safetensors"} <= {path.name for path in tmp_path.iterdir()}
    loaded = hub_model.from_pretrained(tmp_path, local_files_only=True)
    tokens = torch.randint(10, (12, 2))
    assert torch.equal(loaded(tokens)[0], model.eval()(tokens)[0])
    assert loaded.core.spec == model.core.spec


def test_an_option_can_be_changed_when_loading(hub_model, tmp_path):
    hub_model(10, "RelLSTM", 9, hidden_size=8).save_pretrained(tmp_path)
    assert hub_model.from_pretrained(tmp_path, backend="reference").core.backend == "reference"


def test_what_a_folder_cannot_hold_is_refused(hub_model):
    with pytest.raises(TypeError, match="`core` must be the name of a model"):
        hub_model(10, torch.nn.LSTM(10, 4), 9)
    with pytest.raises(TypeError, match="`dtype` must be something that JSON can hold"):
        hub_model(10, "LSTM", 9, hidden_size=4, dtype=torch.float64)
