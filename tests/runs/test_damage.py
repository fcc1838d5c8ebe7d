"""Damage is seen: no silent other numbers, no traceback, no hang, and nothing is written through a link."""

import fcntl
import hashlib
import itertools
import json
import os
import shutil
import threading
import time
from pathlib import Path

import pytest
import safetensors.torch
import torch

from remanence.runs import (
    Checkpoint,
    CheckpointError,
    DamagedFileError,
    MetricsFile,
    NewerVersionError,
    RunLockedError,
    StorageError,
    TensorBoard,
    find_folders,
    list_checkpoints,
    load_best,
    load_checkpoint,
    locked,
    locked_file,
    read_json,
    read_table,
    replace_file,
    save_best,
    save_checkpoint,
)
from remanence.runs import _files as files
from remanence.runs import _run as module
from remanence.train import ComparedRun, Run, carry_out, config_from, resume, train

TINY = {
    "task": {"name": "copy", "options": {"length": 3, "items": 2}, "batch_size": 2},
    "model": {"options": {"hidden_size": 3}},
    "budget": {"updates": 4},
    "loop": {"log_every": 1, "save_every": 2},
    "evaluation": {"every": 2, "batches": 1, "batch_size": 2},
}


@pytest.fixture
def folder(tmp_path) -> Path:
    train(config_from(TINY), tmp_path / "run")
    return tmp_path / "run"


def test_every_flipped_byte_of_the_best_weights_is_seen(tmp_path):
    save_best(tmp_path, {"a": torch.arange(3.0), "b": torch.ones(2, 2, dtype=torch.float64)}, update=3)
    path = tmp_path / "best.safetensors"
    whole = path.read_bytes()
    for place in range(8, len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            found = load_best(tmp_path)
        except CheckpointError:
            continue
        assert found is not None  # a blank of the header that pads it
        assert torch.equal(found[0]["a"], torch.arange(3.0))
        assert found[1] == {"update": 3}


def test_best_weights_that_are_gone_are_missed(folder):
    assert Run(folder).weights("best").name == "best"
    (folder / "checkpoint" / "best.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"best\.safetensors is missing, though update \d was the best one"):
        Run(folder).load()
    assert Run(folder).weights("last")[1:] == ("last", 4)


def test_a_run_that_was_never_evaluated_says_that_its_last_weights_are_taken(tmp_path):
    train(config_from({**TINY, "budget": {"updates": 4}}), tmp_path / "run")
    (tmp_path / "run" / "checkpoint" / "best.safetensors").unlink()
    (tmp_path / "run" / "metrics.jsonl").unlink()
    assert Run(tmp_path / "run").weights("best").name == "last"


def test_checksums_open_nothing_outside_their_folder(tmp_path):
    path = save_checkpoint(tmp_path, Checkpoint(1, {}, {}))
    secret = tmp_path / "secret"
    os.mkfifo(secret)
    sums = json.loads((path / "sha256.json").read_text())
    (path / "sha256.json").write_text(json.dumps({**sums, "../secret": "0"}))
    with pytest.raises(CheckpointError):
        load_checkpoint(tmp_path, warn=lambda text: None)


@pytest.mark.parametrize("loss", ["gone", "empty", "not listable"])
def test_resume_never_begins_anew_in_silence(folder, loss, monkeypatch):
    before = (folder / "metrics.jsonl").read_bytes()
    Run(folder).set_status("interrupted", update=4)
    if loss == "not listable":
        real = Path.iterdir
        denied = PermissionError(13, "Permission denied")

        def iterdir(path):
            if path.name == "checkpoint":
                raise denied
            return real(path)

        monkeypatch.setattr(Path, "iterdir", iterdir)
    else:
        (folder / "checkpoint").rename(folder.parent / "lost")
        if loss == "empty":
            (folder / "checkpoint").mkdir()
    with pytest.raises(CheckpointError, match=r"had reached update 4|cannot be listed: Permission denied"):
        resume(folder)
    assert (folder / "metrics.jsonl").read_bytes() == before


LOSABLE = ("status.json", "manifest.json", "metrics.jsonl", "tensorboard", "checkpoint")


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A run of four updates, as a kill leaves it: its status is that of its start."""
    folder = tmp_path_factory.mktemp("begun") / "run"
    train(config_from(TINY), folder)
    Run(folder).set_status("running", update=0)
    return folder


@pytest.mark.parametrize("lost", [lost for n in range(6) for lost in itertools.combinations(LOSABLE, n)], ids="-".join)
def test_whatever_files_are_lost_a_run_is_not_begun_anew_in_silence(begun, tmp_path, lost):
    folder = tmp_path / "run"
    shutil.copytree(begun, folder)
    for name in lost:
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
        else:
            (folder / name).unlink(missing_ok=True)
    left = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    if "checkpoint" in lost and any((folder / name).exists() for name in LOSABLE):
        with pytest.raises(CheckpointError, match=r"holds no checkpoint, though the run had (reached update 4|begun)"):
            resume(folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == left
    else:
        learnt = []
        assert resume(folder, learnt.append).update == 4
        assert any(line["kind"] == "train" for line in learnt) == ("checkpoint" in lost)


def test_a_run_with_nothing_but_measurements_is_not_new(begun, tmp_path):
    shutil.copytree(begun, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoint")
    (tmp_path / "run" / "status.json").unlink()
    status = Run(tmp_path / "run").status
    assert (status["status"], status["update"], status["reason"]) == ("killed", 4, "status.json is missing")


def test_a_killed_run_tells_how_far_it_came(folder):
    Run(folder).set_status("running", update=0)  # as it was written at its start
    assert (Run(folder).status["status"], Run(folder).status["update"]) == ("killed", 4)


def test_a_metrics_line_that_says_nothing_does_not_block_resuming(folder):
    with (folder / "metrics.jsonl").open("a") as file:
        file.write("{}\n[1]\n" + "[" * 100_000 + "\n")
    outcome = resume(folder, config=config_from({"budget": {"updates": 6}}, Run(folder).config))
    assert outcome.update == 6
    assert Run(folder).history.update == 6


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "{}", '{"status": 3}', '{"update": 1}', "[" * 100_000, "\xff"])
def test_a_damaged_status_is_named(folder, text):
    (folder / "status.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(DamagedFileError, match=r"status\.json is damaged"):
        resume(folder)


@pytest.mark.parametrize("validation", [None, 3, {"loss": "x"}, {"loss": 10**400}])
def test_a_status_that_does_not_say_how_the_run_ended_is_named(folder, validation):
    Run(folder).set_status("done", update=4, reason="budget used up", validation=validation)
    with pytest.raises(DamagedFileError, match=r"status\.json is damaged: it does not say how the run ended"):
        resume(folder)


@pytest.mark.parametrize("text", ["{}", '{"a": {}}'])
@pytest.mark.parametrize("name", ["status", "manifest"])
def test_facts_of_nothing_are_not_taken_for_none(folder, name, text):
    """An object without a checksum could be an older version's; that one said more."""
    (folder / f"{name}.json").write_text(text)
    with pytest.raises(DamagedFileError, match=rf"{name}\.json is damaged: it does not say"):
        getattr(Run(folder), name)


def test_a_newer_status_is_refused_by_name(folder):
    (folder / "status.json").write_text('{"kind": "status", "version": 99, "status": "done", "update": 4}')
    with pytest.raises(NewerVersionError, match=r"status\.json: the status is of version 99"):
        _ = Run(folder).status


@pytest.mark.parametrize("name", ["config.toml", "status.json", "manifest.json", "metrics.jsonl"])
def test_pipes_do_not_hang(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    run = Run(folder)
    questions = {"status.json": lambda: run.status, "manifest.json": lambda: run.manifest}
    questions |= {"config.toml": lambda: run.config, "metrics.jsonl": lambda: run.history}
    with pytest.raises(DamagedFileError, match=r"not a regular file|is missing"):
        questions[name]()


def test_nothing_is_written_through_a_link(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("dear")
    for name in ("status.json", files.draft_of(tmp_path / "status.json").name, "metrics.jsonl"):
        (tmp_path / name).symlink_to(victim)
    replace_file(tmp_path / "status.json", b"{}")
    assert not (tmp_path / "status.json").is_symlink()
    with pytest.raises(DamagedFileError, match=r"metrics\.jsonl is a link"):
        MetricsFile(tmp_path / "metrics.jsonl").append({"kind": "train", "update": 1})
    (tmp_path / "lock").symlink_to(tmp_path / "made")
    with pytest.raises(DamagedFileError, match="lock is a link"), locked(tmp_path):
        pass
    (tmp_path / ".a.lock").symlink_to(tmp_path / "made")
    with pytest.raises(DamagedFileError, match=r"\.a\.lock is a link"), locked_file(tmp_path / "a"):
        pass
    assert victim.read_text() == "dear"
    assert not (tmp_path / "made").exists()


def test_settings_with_a_number_that_cannot_be_printed_are_named(folder):
    path = folder / "config.toml"
    path.write_text(path.read_text().replace("seed = 0", f"seed = 0x{'f' * 9000}", 1))
    with pytest.raises(DamagedFileError, match=r"config\.toml is damaged: it holds a whole number of thousands"):
        read_table(path)


def test_settings_that_lost_their_end_are_refused(folder):
    path = folder / "config.toml"
    lines = path.read_text().splitlines(keepends=True)
    for kept in (0, *(place for place, line in enumerate(lines) if line.startswith("["))):
        path.write_text("".join(lines[:kept]))
        with pytest.raises(DamagedFileError, match=r"config\.toml is damaged: it says nothing of .*curriculum"):
            Run(folder).load()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("training.json", {"update": "x"}),
        ("training.json", {"training": 3}),
        ("training.json", {"training": {"dict": [["optimiser", {"value": 1}]]}}),
        ("training.json", {"training": {"list": []}}),
    ],
)
def test_a_checkpoint_with_right_checksums_and_other_contents_is_named(folder, name, change):
    for path in list_checkpoints(folder / "checkpoint"):
        _forge(path, name, json.loads((path / name).read_text()) | change)
    with pytest.raises(CheckpointError, match=r"can be read|does not belong to this training"):
        resume(folder, config=config_from({"budget": {"updates": 6}}, Run(folder).config))


def _forge(checkpoint, name, values):
    contents = json.dumps(values).encode()
    (checkpoint / name).write_bytes(contents)
    sums = json.loads((checkpoint / "sha256.json").read_text())
    (checkpoint / "sha256.json").write_text(json.dumps(sums | {name: hashlib.sha256(contents).hexdigest()}))


def test_a_checkpoint_of_a_newer_version_is_refused_and_kept(folder):
    newest = list_checkpoints(folder / "checkpoint")[-1]
    values = json.loads((newest / "training.json").read_text())
    assert (values["kind"], values["version"]) == ("checkpoint", 1)
    _forge(newest, "training.json", values | {"version": 2})
    with pytest.raises(CheckpointError, match=f"{newest.name}: the checkpoint is of version 2"):
        load_checkpoint(folder / "checkpoint", repair=True)
    assert list_checkpoints(folder / "checkpoint")[-1] == newest


def test_a_checkpoint_without_a_version_is_read(folder):
    newest = list_checkpoints(folder / "checkpoint")[-1]
    values = json.loads((newest / "training.json").read_text())
    del values["kind"], values["version"]
    _forge(newest, "training.json", values)
    assert load_checkpoint(folder / "checkpoint").update == int(newest.name)


def test_every_json_file_of_a_run_says_its_kind_and_version(folder):
    files = {path.name: json.loads(path.read_text()) for path in folder.rglob("*.json")}
    assert sorted(files) == ["manifest.json", "sha256.json", "status.json", "training.json"]
    assert all(isinstance(values["kind"], str) and values["version"] == 1 for values in files.values())


def test_checksums_without_a_version_are_read_and_newer_ones_are_refused(folder):
    newest = list_checkpoints(folder / "checkpoint")[-1]
    sums = json.loads((newest / "sha256.json").read_text())
    assert (sums["kind"], sums["version"]) == ("checksum-list", 1)
    before = {name: sums[name] for name in sums if name not in ("kind", "version")}
    (newest / "sha256.json").write_text(json.dumps(before))
    assert load_checkpoint(folder / "checkpoint").update == int(newest.name)
    (newest / "sha256.json").write_text(json.dumps(sums | {"version": 2}))
    with pytest.raises(CheckpointError, match=f"{newest.name}: the checksum-list is of version 2"):
        load_checkpoint(folder / "checkpoint", repair=True)


def test_an_optimiser_of_other_parameters_is_refused(folder):
    for path in list_checkpoints(folder / "checkpoint"):
        tensors = safetensors.torch.load_file(path / "training.safetensors")
        tensors = {name: torch.zeros(2, 2) if "optimiser.state" in name else value for name, value in tensors.items()}
        contents = safetensors.torch.save(tensors)
        (path / "training.safetensors").write_bytes(contents)
        sums = json.loads((path / "sha256.json").read_text())
        sums["training.safetensors"] = hashlib.sha256(contents).hexdigest()
        (path / "sha256.json").write_text(json.dumps(sums))
    with pytest.raises(CheckpointError, match="of the optimiser must have the size of its parameter"):
        resume(folder, config=config_from({"budget": {"updates": 6}}, Run(folder).config))


def test_weights_that_do_not_fit_are_one_line(folder):
    settings = folder / "config.toml"
    settings.write_text(settings.read_text().replace("hidden_size = 3", "hidden_size = 5"))
    with pytest.raises(CheckpointError, match=r"do not fit .*config\.toml: Error\(s\) in loading") as caught:
        Run(folder).load()
    assert "\n" not in str(caught.value)


def test_json_and_folders_that_are_not_there(tmp_path):
    with pytest.raises(DamagedFileError, match="is missing"):
        read_json(tmp_path / "no.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be listed"):
        list_checkpoints(tmp_path / "file")


def test_of_two_starts_with_different_settings_one_decides(tmp_path):
    """Threads of one process share a draft's name, processes do not; the lock makes even threads wait."""
    for number in range(10):
        folder = tmp_path / str(number)
        made: list[int] = []
        barrier = threading.Barrier(4)

        def work(
            seed: int, folder: Path = folder, made: list[int] = made, barrier: threading.Barrier = barrier
        ) -> None:
            barrier.wait()
            try:
                Run.place(folder, config_from({**TINY, "seed": seed}))
            except ValueError:
                return
            made.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [Run(folder).config.seed]


def test_a_folder_that_another_process_is_making_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CLAIM_PATIENCE", 0.05)
    folder = tmp_path / "run"
    folder.mkdir()
    with locked(folder), pytest.raises(RunLockedError):
        Run.place(folder, config_from(TINY))
    assert Run.place(folder, config_from(TINY)).exists


def test_a_look_at_the_lock_refuses_nobody(tmp_path):
    """Whoever asks whether a folder is locked holds the lock for a moment."""
    with (tmp_path / "lock").open("w") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        end = threading.Timer(0.05, fcntl.flock, (looking, fcntl.LOCK_UN))
        end.start()
        with locked(tmp_path):
            end.join()


def test_a_lock_that_was_removed_meanwhile_is_none(tmp_path):
    """Who waited for a file's lock has opened what the holder removes; another process may hold a new one by then."""
    lock = tmp_path / ".a.lock"
    with lock.open("w") as removed:
        lock.unlink()
        assert not files._is_still(lock, removed)
        lock.touch()
        assert not files._is_still(lock, removed)


def test_drafts_of_a_living_process_are_left_alone(tmp_path):
    from remanence.runs import forget_drafts

    ours = files.draft_of(tmp_path / "a")
    living = tmp_path / f"{files.WRITING}{os.getppid()}-a"
    dead = tmp_path / f"{files.WRITING}999999999-a"
    for path in (ours, living, dead):
        path.write_text("half")
    forget_drafts(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [living.name]


@pytest.mark.parametrize("name", ["status.json", "manifest.json"])
def test_every_flipped_byte_of_a_file_of_facts_is_seen(folder, name):
    run, path = Run(folder), folder / name
    whole, facts = path.read_bytes(), {**run.status, **run.manifest}
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            found = {**run.status, **run.manifest}
        except (DamagedFileError, NewerVersionError):
            continue
        assert {key: found[key] for key in facts} == facts  # a blank, or the name of the checksum


def test_facts_without_a_checksum_are_of_an_older_version(folder):
    path = folder / "status.json"
    told = json.loads(path.read_text())
    del told["sha256"]
    path.write_text(json.dumps({**told, "update": 3}))
    assert Run(folder).status["update"] == 3


def test_a_folder_that_may_not_be_listed_is_named_and_not_left_out(folder, monkeypatch):
    real = os.scandir

    def scandir(path):
        if Path(path) == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert find_folders(["config.toml"], folder.parent) == ([], [folder])
    assert [run.folder for run in Run.below(folder.parent)] == [folder]


def forbid(monkeypatch, method, name):
    """As for a user who is not root, which a test may be: a method of paths is not permitted on files of this name."""
    real = getattr(Path, method)

    def forbidden(path, *arguments, **options):
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, method, forbidden)


def test_best_weights_that_may_not_be_seen_are_not_said_to_be_missing(folder, monkeypatch):
    forbid(monkeypatch, "lstat", "best.safetensors")
    monkeypatch.setattr(os.path, "lexists", lambda path: False)  # as it says where it is not permitted to look
    with pytest.raises(CheckpointError, match=r"best\.safetensors cannot be read: Permission denied"):
        load_best(folder / "checkpoint")


def test_a_folder_that_may_not_be_written_to_says_so(folder, monkeypatch):
    forbid(monkeypatch, "open", "lock")
    with (
        pytest.raises(StorageError, match=r"lock could not be written: Permission denied.*make it writable"),
        locked(folder),
    ):
        pass


def add_many(events: TensorBoard) -> None:
    """Until the thread that writes has met the error."""
    for update in range(1000):
        events.add({"kind": "train", "update": update, "loss": 0.5})
        time.sleep(0.001)


def test_events_without_room_are_an_error_in_words(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tensorboard")
    import tensorboard.summary.writer.record_writer as records

    def write(self, data):
        raise OSError(28, "No space left on device")

    before = threading.excepthook
    events = TensorBoard(tmp_path, 0, say=lambda text: None)
    monkeypatch.setattr(records.RecordWriter, "write", write)
    with pytest.raises(StorageError, match="No space left"):
        add_many(events)
    events.close()
    assert "Traceback" not in capsys.readouterr().err
    assert threading.excepthook == before


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_log_that_is_no_file_is_refused_and_not_waited_for(folder, kind):
    (folder / "output.txt").unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(folder / "output.txt")
    else:
        (folder / "output.txt").symlink_to(folder.parent / "elsewhere")
    Run(folder).set_status("interrupted", update=4)
    with pytest.raises(DamagedFileError, match=r"output\.txt is (a link|not a regular file)"):
        carry_out([ComparedRun("LSTM", 3, 0, Run(folder))], jobs=1)
    assert not (folder.parent / "elsewhere").exists()
