"""Every script under examples/ runs, for a few steps, and does what it says."""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from remanence.testing import check_names

EXAMPLES = Path(__file__).parents[1] / "examples"


def main_of(name: str) -> Callable:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]


def test_no_example_is_left_out():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "swap_lstm",
        "stream_forever",
        "recurrent_reset",
        "look_at_memory",
        "memory_policy",
        "own_cell",
        "slurm_engine",
        "torchrl_memory",
        "with_accelerate",  # these two run in tests/integrations
        "with_lightning",
    }


def test_swap_lstm_trains(capsys):
    assert main_of("swap_lstm")(steps=3, length=8, hidden_size=8) > 0
    assert capsys.readouterr().out.count("loss") == 3


def test_stream_forever_keeps_the_size_of_its_state():
    sizes = main_of("stream_forever")(steps=50)
    assert len(sizes) == 6
    assert len(set(sizes)) == 1


def test_recurrent_reset_equals_the_loop_that_it_replaces():
    torch.testing.assert_close(*main_of("recurrent_reset")(rollouts=2, steps=10))


def test_look_at_memory_draws_one_line_per_step(capsys):
    lines = main_of("look_at_memory")(steps=25)
    assert [len(line) for line in lines] == [25] * 25
    assert all(line[step + 1 :].strip() == "" for step, line in enumerate(lines))  # nobody attends to what comes
    assert "in place of" in capsys.readouterr().out


SLURM = {
    # Jobs are processes of this machine, known by the ids of those.
    "sbatch": 'for last; do :; done; setsid sh -c "${last#--wrap=}" >/dev/null 2>&1 & echo $! | tee -a "$0.jobs"',
    "squeue": 'for job in $(cat "${0%squeue}sbatch.jobs"); do kill -0 $job 2>/dev/null && echo $job; done; true',
    "scancel": 'shift 2; kill -TERM "$@"',
}


def test_a_table_is_filled_by_slurm_jobs(tmp_path, monkeypatch):
    for name, script in SLURM.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    first, second = main_of("slurm_engine")(folder=tmp_path / "cells", pause=0.2)
    assert re.fullmatch(r"LSTM: [\d.]+", first)
    assert re.fullmatch(r"RelRNN: [\d.]+", second)
    assert len((tmp_path / "sbatch.jobs").read_text().split()) == 2
    main_of("slurm_engine")(folder=tmp_path / "cells", pause=0.2)
    assert len((tmp_path / "sbatch.jobs").read_text().split()) == 2, "what is done is not submitted again"


@pytest.mark.parametrize("name", ["recurrent_reset", "look_at_memory"])
def test_an_example_runs_as_a_script(name):
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_memory_policy_plays(capsys):
    assert 0 <= main_of("memory_policy")(model="LSTM", frames=704) <= 1
    assert "of 100 fresh episodes won" in capsys.readouterr().out


@pytest.fixture
def own_cell(monkeypatch):
    """The example as a module: pickle must find its classes by name."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module("own_cell")
    del sys.modules["own_cell"]


@pytest.mark.parametrize("kind", ["MGU", "FastGRNN"])
def test_own_cell_passes_the_quick_checks_with_and_without_a_memory(own_cell, kind):
    names = set(check_names(slow=False))
    assert sorted(own_cell.main(names, getattr(own_cell, kind))) == sorted([*names, *names])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["MGU", "FastGRNN"])
def test_own_cell_passes_the_slow_checks_too(own_cell, kind):
    names = set(check_names(slow=True))
    assert sorted(own_cell.main(names, getattr(own_cell, kind))) == sorted([*names, *names])


def test_parameters_of_an_own_cell_are_the_layers(own_cell):
    layer = own_cell.FastGRNN(3, 8, num_layers=2)
    first = {name: layer.state_dict()[name].tolist() for name in ("zeta_l1", "nu_l0")}
    assert first == {"zeta_l1": [1.0], "nu_l0": [-4.0]}
    layer(torch.randn(5, 2, 3))[0].sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in layer.parameters())


def test_own_cell_runs_on_the_reference_and_says_why(own_cell):
    layer = own_cell.MGU(3, 8, backend="fused")
    with pytest.raises(ValueError, match="the cell mgu is not in the fused kernel"):
        layer(torch.randn(4, 2, 3))


@pytest.mark.filterwarnings("ignore")  # TorchRL's own
def test_torchrl_memory_learns_in_torchrl(require_or_skip, capsys):
    if importlib.util.find_spec("torchrl") is None:
        require_or_skip("torchrl", "TorchRL is not installed")
    main_of("torchrl_memory")(length=2, frames=64, steps=32)
    assert capsys.readouterr().out.count("mean return") == 2
