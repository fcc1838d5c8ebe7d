import json
import sys
from types import ModuleType

import pytest

from remanence.runs import TensorBoard
from remanence.train import MetricsFile, Run, train


def test_numbers_that_json_cannot_hold_become_null(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.append({"kind": "train", "update": 1, "loss": float("nan"), "norm": float("inf")})
    assert file.read() == [{"kind": "train", "update": 1, "loss": None, "norm": None}]


def test_events_go_to_tensorboard_where_it_is_installed(tmp_path, monkeypatch):
    written = []

    class SummaryWriter:
        def __init__(self, folder, purge_step):
            written.append((folder, purge_step))

        def add_scalar(self, name, value, update):
            written.append((name, value, update))

        def close(self):
            written.append("closed")

    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = SummaryWriter  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    events = TensorBoard(tmp_path, 5, say=pytest.fail)
    events.add({"kind": "train", "update": 6, "loss": 0.5, "best": True})
    events.close()
    assert written == [(str(tmp_path), 6), ("train/loss", 0.5, 6), "closed"]


def test_without_tensorboard_it_is_said_once_and_the_run_goes_on(faults, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    heard = []
    assert train(faults.tiny_config(), tmp_path / "run", heard.append).status == "done"
    assert sum("TensorBoard" in line.get("text", "") for line in heard) == 1


def test_the_manifest_names_what_made_the_run(faults, reference):
    import torch

    manifest = Run(reference).manifest
    assert manifest["torch"] == str(torch.__version__)
    assert (manifest["seed"], manifest["threads"], manifest["world_size"]) == (5, 1, 1)
    assert manifest["config_digest"] == Run(reference).config.digest
    assert manifest["backend"] in ("reference", "fused")
    assert {"git", "host", "command", "python", "numpy", "cpu_capability"} <= manifest.keys()


def test_the_story_of_a_run_is_told_in_order(reference):
    lines = [json.loads(line) for line in (reference / "metrics.jsonl").read_text().splitlines()]
    assert [line["update"] for line in lines] == sorted(line["update"] for line in lines)
    assert [line["update"] for line in lines if line["kind"] == "validation"] == [5, 10, 15, 20, 24]
    assert [line["update"] for line in lines if line["kind"] == "train"] == list(range(2, 25, 2))
