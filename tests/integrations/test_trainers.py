"""Other people's loops: DDP, FSDP2, Lightning, accelerate; and TensorBoard, which watches ours."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from remanence.train import config_from, train

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"


@pytest.fixture
def installed(require_or_skip):
    def check(name: str) -> None:
        if importlib.util.find_spec(name) is None:
            require_or_skip("integrations", f"{name} is not installed")

    return check


def start(*arguments: object) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, *map(str, arguments)], text=True, **pipes)


def printed(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return output


def test_two_processes_under_ddp_and_fsdp2_make_the_update_of_one(tmp_path):
    processes = [start(HERE / "sharded.py", rank, tmp_path / "store") for rank in range(2)]
    assert [printed(process).strip() for process in processes] == ["same", "same"]


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("lightning", "main(steps=120, hidden_size=16, enable_progress_bar=False, enable_model_summary=False)"),
        ("accelerate", "main(epochs=15, hidden_size=16)"),
    ],
)
def test_an_example_learns(installed, package, call):
    """In a process of its own, because the imports are long and warn."""
    installed(package)
    script = f"from runpy import run_path; print(run_path({str(EXAMPLES / f'with_{package}.py')!r})['main']"
    loss = float(printed(start("-c", script + call.removeprefix("main") + ")")).split()[-1])
    assert loss < 1.0  # a guess among eight tokens gets log 8 = 2.08


def test_tensorboard_reads_what_a_run_wrote(installed, tmp_path):
    installed("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    task = {"name": "copy", "options": {"length": 3, "items": 2}, "batch_size": 2}
    settings = {"task": task, "model": {"name": "LSTM", "options": {"hidden_size": 4}}}
    loop = {"budget": {"updates": 3}, "loop": {"log_every": 1}}
    train(config_from(settings | loop), tmp_path / "run")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    scalars = events.Tags()["scalars"]
    assert any("loss" in name for name in scalars), scalars
    name = next(name for name in scalars if "loss" in name)
    assert [event.step for event in events.Scalars(name)][-1] == 3
