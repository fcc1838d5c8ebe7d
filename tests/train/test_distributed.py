"""Two gloo processes must do what one does with the same global batch, in one run folder."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from remanence.testing import assert_matches
from remanence.train import Processes, Run, config_from, load_checkpoint, to_toml, train

WORKER = """
import sys, signal
from remanence.train import Run, joined_processes, read_config, train
config, folder, stop_at = read_config(sys.argv[1]), sys.argv[2], int(sys.argv[3])
def observer(line):
    if line["kind"] == "train" and line["update"] == stop_at:
        signal.raise_signal(signal.SIGTERM)
with joined_processes() as together:
    assert together
    outcome = train(config, folder, observer)
sys.exit(0 if outcome.status == "done" else 128 + outcome.signal)
"""

LIMIT = 600.0
"""Seconds that both may take: on a busy machine most of them are spent on imports."""


def configuration(text: Path):
    """Stateful batches, parts, gradient cuts drawn for the whole batch; float64, to compare to rounding."""
    return config_from(
        {
            "task": {"name": "text", "options": {"path": str(text), "length": 6}, "batch_size": 5},
            "model": {"name": "HDetachLSTM", "options": {"hidden_size": 6}},
            "budget": {"updates": 8},
            "loop": {"precision": "float64", "log_every": 1, "save_every": 3, "accumulate": 2},
            "evaluation": {"every": 4, "batches": 1, "batch_size": 3},
        }
    )


def run_two(config_file: Path, folder: Path, stop_at: int = -1) -> list[int]:
    """Starts two processes as torchrun does and gives their exit codes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    command = [sys.executable, "-c", WORKER, str(config_file), str(folder), str(stop_at)]
    workers = [
        subprocess.Popen(command, env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    try:
        errors = [worker.communicate(timeout=LIMIT)[1].decode() for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    codes = [worker.returncode for worker in workers]
    assert all(code in (0, 128 + signal.SIGTERM) for code in codes), errors
    return codes


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    text = folder / "mine.txt"
    text.write_text("what stays in a magnet once the field is gone; " * 30)
    config = configuration(text)
    (folder / "config.toml").write_text(to_toml(config))
    train(config, folder / "one")
    return folder


def losses(folder: Path) -> torch.Tensor:
    return torch.tensor([line["loss"] for line in Run(folder).metrics.read()], dtype=torch.float64)


def assert_same_curve_and_weights(folder: Path, reference: Path) -> None:
    assert_matches({"loss": losses(folder)}, {"loss": losses(reference)})
    one, other = load_checkpoint(Run(folder).checkpoints), load_checkpoint(Run(reference).checkpoints)
    assert one is not None
    assert other is not None
    assert one.update == other.update
    assert_matches(one.weights, other.weights)


def test_two_processes_give_the_curve_of_one(setting):
    assert run_two(setting / "config.toml", setting / "two") == [0, 0]
    assert Run(setting / "two").manifest["world_size"] == 2
    assert_same_curve_and_weights(setting / "two", setting / "one")


@pytest.mark.slow
def test_two_processes_stop_together_and_resume(setting):
    """The signal reaches rank 0 alone; both save at the same update."""
    assert run_two(setting / "config.toml", setting / "stopped", stop_at=4) == [143, 143]
    kept = load_checkpoint(Run(setting / "stopped").checkpoints)
    assert kept is not None
    assert kept.update == 4
    assert len(kept.training["carried"]) == 2
    assert run_two(setting / "config.toml", setting / "stopped") == [0, 0]
    assert_same_curve_and_weights(setting / "stopped", setting / "one")


@pytest.mark.parametrize(("size", "parts", "rows"), [(1, 1, [(0, 5)]), (1, 2, [(0, 2), (2, 5)]), (2, 1, [(0, 2)])])
def test_rows_are_shared_out_without_gaps(size, parts, rows):
    processes = Processes()
    processes.size = size
    assert processes.rows(5, parts) == rows


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match=r"`task\.batch_size` must be at least 3"):
        Processes().rows(2, 3)
