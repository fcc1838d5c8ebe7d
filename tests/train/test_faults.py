"""No run may be lost, and every resumed run ends with the bits of one that was never stopped."""

import errno
import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from remanence.runs import _files as files
from remanence.train import (
    Checkpoint,
    CheckpointError,
    NonFiniteError,
    Run,
    RunLockedError,
    StorageError,
    config_from,
    load_checkpoint,
    resume,
    train,
)

HERE = Path(__file__).parent


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "run"


def last(folder: Path) -> Checkpoint:
    found = load_checkpoint(Run(folder).checkpoints)
    assert found is not None
    return found


def test_two_runs_of_one_configuration_are_the_same(faults, reference, folder):
    train(faults.tiny_config(), folder)
    assert faults.same_end(folder, reference)


def test_another_seed_gives_other_weights(faults, reference, folder):
    train(faults.tiny_config(seed=6), folder)
    assert not faults.same_end(folder, reference)


def test_killed_runs_go_on_and_end_with_the_same_weights():
    """In a process of its own, which forks and kills: pytest's own process has threads, and those do not like forks."""
    code = (
        f"import sys, json, random; sys.path.insert(0, {str(HERE)!r})\n"
        "import pathlib, tempfile, torch, faults\n"
        "torch.set_num_threads(1)\n"
        "scratch = pathlib.Path(tempfile.mkdtemp())\n"
        "config = faults.tiny_config()\n"
        "faults.train(config, scratch / 'reference')\n"
        "kills = [faults.kill_at_random(scratch / 'killed', config, random.Random(1))]\n"
        "same = [faults.same_end(scratch / 'killed', scratch / 'reference')]\n"
        "for moment in (0, 2, 5, 13, 34):\n"
        "    folder = scratch / f'write-{moment}'\n"
        "    kills.append(faults.kill_at_write(folder, config, moment))\n"
        "    faults.train(config, folder)\n"
        "    same.append(faults.same_end(folder, scratch / 'reference'))\n"
        "faults.shutil.rmtree(scratch)\n"
        "print(json.dumps([kills, same]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kills, same = json.loads(done.stdout.splitlines()[-1])
    assert kills[1:] == [True] * 5
    assert same == [True] * 6


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_stops_at_once(faults, reference, folder, number):
    def observer(line):
        if line["kind"] == "train" and line["update"] == 8:
            signal.raise_signal(number)

    outcome = train(faults.tiny_config(), folder, observer)
    assert (outcome.status, outcome.update, outcome.signal) == ("interrupted", 8, number)
    assert Run(folder).status["status"] == "interrupted"
    assert last(folder).update == 8
    assert resume(folder).status == "done"
    assert faults.same_end(folder, reference)


def test_a_done_run_is_left_alone(faults, reference):
    before = (reference / "metrics.jsonl").read_bytes()
    outcome = train(faults.tiny_config(), reference)
    assert (outcome.status, outcome.update) == ("done", faults.UPDATES)
    assert (reference / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("moment", [0, 1, 2, 3, 7, 11, 20, 33])
def test_a_full_disk_stops_the_run_and_loses_nothing(faults, reference, folder, moment):
    assert faults.fill_disk(folder, faults.tiny_config(), moment)
    assert not list(folder.rglob(".writing-*"))
    train(faults.tiny_config(), folder)
    assert faults.same_end(folder, reference)


def test_a_full_disk_while_metrics_are_written(faults, reference, folder, monkeypatch):
    real = Path.open

    def no_room(path, mode="r", **options):
        if path.name == "metrics.jsonl" and mode == "a" and path.exists() and path.stat().st_size > 400:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, mode, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", no_room)
        with pytest.raises(StorageError, match=r"metrics\.jsonl could not be written: No space left"):
            train(faults.tiny_config(), folder)
    resume(folder)
    assert faults.same_end(folder, reference)


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_checkpoint_is_set_aside_for_the_one_before(faults, reference, folder, seed):
    faults.stop_midway(folder, faults.tiny_config())
    faults.damage(folder, random.Random(seed))
    heard = []
    resume(folder, heard.append)
    assert any("is damaged" in line.get("text", "") for line in heard)
    assert next(line["update"] for line in heard if line["kind"] == "resumed") == 15
    assert faults.same_end(folder, reference)


def test_a_reader_takes_the_one_before_and_changes_nothing(faults, folder):
    faults.stop_midway(folder, faults.tiny_config())
    faults.damage(folder, random.Random(0))
    names = sorted(path.name for path in Run(folder).checkpoints.iterdir())
    Run(folder).load("last")
    assert sorted(path.name for path in Run(folder).checkpoints.iterdir()) == names


def test_all_checkpoints_damaged_is_an_error(faults, folder):
    faults.stop_midway(folder, faults.tiny_config())
    for path in Run(folder).checkpoints.glob("*/training.json"):
        path.write_bytes(b"{")
    with pytest.raises(CheckpointError, match="none of the checkpoints"):
        resume(folder)


def test_a_torn_last_line_of_metrics_is_dropped(faults, reference, folder):
    faults.stop_midway(folder, faults.tiny_config())
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "upd')
    resume(folder)
    assert faults.same_end(folder, reference)


def test_the_last_two_checkpoints_are_kept(faults, reference):
    names = [path.name for path in Run(reference).checkpoints.iterdir()]
    assert sorted(names) == ["000000021", "000000024", "best.safetensors"]


def test_two_processes_on_one_folder_are_refused(faults, folder):
    code = (
        "import sys, pathlib\nfrom remanence.train import resume, RunError\n"
        "try:\n    resume(sys.argv[1])\nexcept RunError as error:\n    print(error)\n    sys.exit(error.exit_code)\n"
    )
    Run.create(folder, faults.tiny_config())
    with files.locked(folder):
        assert files.is_locked(folder)
        done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)
        with pytest.raises(RunLockedError):
            resume(folder)
    assert done.returncode == RunLockedError.exit_code
    assert "in use by another process" in done.stdout
    assert not files.is_locked(folder)


def poisoned(faults, monkeypatch, update, truncate=None):
    """A configuration whose batch number `update` holds a NaN."""
    from remanence.tasks import Copy

    real = Copy.batch

    def batch(self, position, *arguments, **options):
        drawn = real(self, position, *arguments, **options)
        if position == update and options.get("split", "train") == "train":
            drawn.inputs[0, 0, 0] = torch.nan
        return drawn

    monkeypatch.setattr(Copy, "batch", batch)
    return faults.tiny_config(loop={"truncate": truncate})


def test_nan_stops_keeps_the_last_good_state_and_names_the_group(faults, folder, monkeypatch):
    config = poisoned(faults, monkeypatch, update=7)
    with pytest.raises(
        NonFiniteError, match=r"update 7: the loss is not finite \(group other \(gradient\): .*weight_ih"
    ):
        train(config, folder)
    kept = last(folder)
    assert kept.update == 7
    assert all(bool(weight.isfinite().all()) for weight in kept.weights.values())
    assert bool(load_file(folder / "failure" / "batch.safetensors")["inputs"].isnan().any())
    report = json.loads((folder / "failure" / "report.json").read_text())
    assert (report["kind"], report["version"], report["update"]) == ("failure", 1, 7)
    assert Run(folder).status["status"] == "failed"


def test_after_nan_the_run_goes_on_once_the_cause_is_gone(faults, reference, folder, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(NonFiniteError):
        train(poisoned(faults, patch, update=7), folder)
    resume(folder)
    assert faults.same_end(folder, reference)


def test_weights_that_are_not_finite_are_never_saved(faults, folder):
    config = faults.tiny_config(optimiser={"name": "sgd", "learning_rate": 1e38}, loop={"clip_norm": None})
    with pytest.raises(NonFiniteError):
        train(config, folder)
    kept = last(folder)
    assert all(bool(weight.isfinite().all()) for weight in kept.weights.values())


def test_nan_within_a_batch_of_several_updates_keeps_the_checkpoint_before(faults, folder, monkeypatch):
    from remanence.tasks import Copy

    config = poisoned(faults, monkeypatch, update=-1, truncate=2)
    real = Copy.batch

    def late(self, position, *arguments, **options):
        drawn = real(self, position, *arguments, **options)
        if position == 7 and "split" not in options:
            drawn.inputs[-1, 0, 0] = torch.nan
        return drawn

    monkeypatch.setattr(Copy, "batch", late)
    with pytest.raises(NonFiniteError):
        train(config, folder)
    assert last(folder).update == 6


def test_resuming_elsewhere_warns_that_bits_may_differ(faults, folder):
    faults.stop_midway(folder, faults.tiny_config())
    manifest = json.loads((folder / "manifest.json").read_text())
    Run(folder).write_table("manifest.json", {**manifest, "torch": "1.0", "threads": 7})
    heard = []
    resume(folder, heard.append)
    (warning,) = [line["text"] for line in heard if "bits may differ" in line.get("text", "")]
    assert "torch was '1.0'" in warning
    assert "threads was 7 and is 1" in warning


def test_a_folder_of_another_configuration_is_refused(faults, reference):
    with pytest.raises(ValueError, match="holds a run of another configuration"):
        train(faults.tiny_config(seed=6), reference)


def test_a_folder_that_is_no_run_is_refused(faults, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(ValueError, match="exists and is not a run"):
        train(faults.tiny_config(), tmp_path)


def test_training_leaves_the_callers_generators_and_threads_alone(faults, folder):
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    train(faults.tiny_config(), folder)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == threads


def test_a_bad_batch_is_kept_even_if_inputs_and_targets_share_their_memory(folder):
    """Targets of a text are its inputs, one step on: two views of one tensor."""
    config = {"task": {"name": "binary-power-law", "options": {"length": 9}}, "budget": {"updates": 3}}
    config |= {"model": {"name": "RNN", "options": {"hidden_size": 2}}, "optimiser": {"name": "sgd"}}
    config["optimiser"]["learning_rate"] = 1e38
    with pytest.raises(NonFiniteError):
        train(config_from({**config, "loop": {"clip_norm": "none"}}), folder)
    kept = load_file(folder / "failure" / "batch.safetensors")
    assert kept["inputs"][1:].tolist() == kept["targets"][:-1].tolist()
