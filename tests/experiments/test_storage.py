"""Cells whose folders are mirrored on a storage: nothing is lost with the machine."""

import contextlib
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time

import fsspec
import pytest
import torch

from remanence.experiments import (
    Measure,
    TableCell,
    Work,
    carry_out,
    find_experiment,
    make_engine,
    plan_cells,
    refresh,
    run_cells,
)
from remanence.experiments import _storage as storage
from remanence.experiments._storage import Archive, TakenOverError, packed
from remanence.runs import DamagedFileError, locked
from remanence.train import Run, with_settings

TABLE = find_experiment("kerg2020/table-2")
LENGTHY = ["budget.updates=600", "loop.save_every=50", "loop.log_every=50", "evaluation.every=300"]


def cell_in(folder, url, settings=()):
    (cell,) = plan_cells(TABLE, "smoke", folder, ["model=LSTM"], [0], storage=url)
    return TableCell(cell.place, Work(with_settings(cell.work.config, settings), cell.work.measures), cell.root, url)


def weights(folder):
    return Run.open(folder / "run").load("last")[0].state_dict()


@pytest.fixture
def memory():
    """A storage in memory, empty before and after."""
    yield "memory://cells"
    fsspec.filesystem("memory").store.clear()


def test_a_cell_comes_back_as_it_was(tmp_path, memory):
    here, there = cell_in(tmp_path / "here", memory), cell_in(tmp_path / "there", memory)
    assert not Archive(memory, here.folder).fetch()
    assert carry_out(here.work, here.folder, storage=memory) is None
    assert there.state.status == "new"
    refresh([there])
    assert there.state.is_done
    assert there.result("answers") == here.result("answers")
    torch.testing.assert_close(weights(there.folder), weights(here.folder), rtol=0, atol=0)


def test_an_archive_holds_checkpoints_first_and_no_lock(tmp_path, memory):
    cell = cell_in(tmp_path, memory)
    carry_out(cell.work, cell.folder)
    with tarfile.open(fileobj=io.BytesIO(packed(cell.folder))) as archive:
        names = archive.getnames()
    assert "checkpoint" in names[0]
    assert any(name.endswith("metrics.jsonl") for name in names)
    assert not any(name.endswith("lock") for name in names)


def test_nobody_sees_half_an_archive(tmp_path, memory, monkeypatch):
    archive = Archive(memory, tmp_path / "cell")
    archive.folder.mkdir()
    (archive.folder / "file").write_text("first", encoding="utf-8")
    archive.push()
    (archive.folder / "file").write_text("second", encoding="utf-8")
    monkeypatch.setattr(fsspec.filesystem("memory"), "mv", lambda *names: (_ for _ in ()).throw(OSError("lost")))
    with pytest.raises(OSError, match="lost"):
        archive.push()
    archive.fetch()
    assert (archive.folder / "file").read_text(encoding="utf-8") == "first"


@pytest.fixture
def cell_at_work(tmp_path, memory):
    """An archive, and its folder with one file."""
    archive = Archive(memory, tmp_path / "cell")
    archive.folder.mkdir()
    (archive.folder / "file").write_text("first", encoding="utf-8")
    return archive


def in_archive(archive, elsewhere):
    """What the file of the archive says."""
    copy = Archive(archive.storage, elsewhere / archive.folder.name)
    assert copy.fetch()
    return (copy.folder / "file").read_text(encoding="utf-8")


def taken_up_elsewhere(archive, work=lambda: None):
    """Another worker takes it up, this one goes on."""
    archive.take("another worker")
    (archive.folder / "file").write_text("late", encoding="utf-8")
    work()


def test_a_worker_whose_cell_was_taken_up_elsewhere_mirrors_no_more(cell_at_work, tmp_path):
    cell_at_work.push()
    with pytest.raises(TakenOverError, match="one driver at a time"), cell_at_work.mirrored():
        taken_up_elsewhere(cell_at_work)
    assert in_archive(cell_at_work, tmp_path / "there") == "first"
    assert "taken up by another" in (cell_at_work.folder / "error.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN], ids=["heeded", "ignored"])
def test_a_worker_whose_cell_was_taken_up_elsewhere_is_interrupted(cell_at_work, monkeypatch, handler):
    """Also where a shell has started it in its background, where Ctrl-C is ignored."""
    monkeypatch.setattr(storage, "PAUSE", 0.01)
    before = signal.signal(signal.SIGINT, handler)
    try:
        began = time.monotonic()
        with pytest.raises(TakenOverError), cell_at_work.mirrored():
            taken_up_elsewhere(cell_at_work, work=lambda: time.sleep(60))
        assert time.monotonic() - began < 60
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_still_ctrl_c(cell_at_work, tmp_path):
    with pytest.raises(KeyboardInterrupt), cell_at_work.mirrored():
        raise KeyboardInterrupt
    assert in_archive(cell_at_work, tmp_path / "there") == "first"


def test_what_a_lost_worker_has_half_written_is_cleared_away(cell_at_work, memory):
    system = fsspec.filesystem("memory")
    cell_at_work.take("lost")
    system.pipe_file("cells/cell.tar.lost", b"half")
    cell_at_work.take("next")
    assert not system.exists("cells/cell.tar.lost")
    assert cell_at_work.owner == "next"


def test_looking_at_a_storage_leaves_a_worker_in_the_same_folder_alone(cell_at_work):
    cell_at_work.push()
    (cell_at_work.folder / "file").write_text("later", encoding="utf-8")
    with locked(cell_at_work.folder):
        cell_at_work.look()
        assert (cell_at_work.folder / "file").read_text(encoding="utf-8") == "later"
    cell_at_work.look()
    assert (cell_at_work.folder / "file").read_text(encoding="utf-8") == "first"


def test_a_crash_is_on_the_storage_too(tmp_path, memory):
    here, there = cell_in(tmp_path / "here", memory), cell_in(tmp_path / "there", memory)
    impossible = Work(here.work.config, (Measure("no such measurement"),))
    with pytest.raises(ValueError, match="no such measurement"):
        carry_out(impossible, here.folder, storage=memory)
    refresh([there])
    assert (there.state.status, "no such measurement" in there.state.reason) == ("failed", True)


def test_a_protocol_that_is_not_known_is_named(tmp_path):
    with pytest.raises(ValueError, match="be a folder or a URL that fsspec knows"):
        refresh([cell_in(tmp_path, "nosuch://runs")])


def test_the_local_engine_leaves_its_cells_on_the_storage_and_does_nothing_twice(tmp_path):
    url = f"file://{tmp_path}/storage"
    first = cell_in(tmp_path / "first", url)
    assert run_cells([first], make_engine("local", 1)) == []
    again = cell_in(tmp_path / "second", url)
    assert run_cells([again], make_engine("local", 1)) == []
    assert again.state.is_done
    assert (again.folder / "output.txt").read_text().count("done at update") == 1


def test_a_killed_cell_goes_on_elsewhere_with_the_same_bits(tmp_path):
    url = f"file://{tmp_path}/storage"
    first, second = cell_in(tmp_path / "first", url, LENGTHY), cell_in(tmp_path / "second", url, LENGTHY)
    code = "import sys, json; from remanence.experiments import _storage, carry_out, Work; _storage.PAUSE = 0.2; "
    code += "carry_out(Work.from_dict(json.loads(sys.stdin.read())), sys.argv[1], storage=sys.argv[2])"
    process = subprocess.Popen([sys.executable, "-c", code, str(first.folder), url], stdin=subprocess.PIPE)
    process.stdin.write(json.dumps(first.work.to_dict()).encode())
    process.stdin.close()
    until = time.monotonic() + 600
    while not _has_checkpoint(Archive(url, first.folder)):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < until
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert carry_out(second.work, second.folder, storage=url) is None
    updates = [line.update for line in second.history.training]
    assert updates == sorted(set(updates)), "it went on from the checkpoint, and nothing stands there twice"
    whole = cell_in(tmp_path / "whole", "", LENGTHY)
    carry_out(whole.work, whole.folder)
    found, wanted = weights(second.folder), weights(whole.folder)
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def _has_checkpoint(archive):
    if not archive.exists:
        return False
    system, path = archive._place
    with tarfile.open(fileobj=io.BytesIO(system.cat_file(path))) as found:
        return any("checkpoint" in name for name in found.getnames())


def test_what_changes_is_mirrored_while_a_cell_is_at_work(tmp_path, memory, monkeypatch):
    monkeypatch.setattr(storage, "PAUSE", 0.01)
    archive = Archive(memory, tmp_path / "cell")
    archive.folder.mkdir()
    with archive.mirrored():
        (archive.folder / "file").write_text("now", encoding="utf-8")
        until = time.monotonic() + 20
        while not archive.exists:
            assert time.monotonic() < until
            time.sleep(0.01)
    assert Archive(memory, tmp_path / "there" / "cell").fetch()


def test_a_file_that_is_replaced_while_it_is_packed_is_whole(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"the first")
    look = tarfile.TarFile.gettarinfo

    def look_then_replace(*arguments, **named):
        found = look(*arguments, **named)
        (tmp_path / "new").write_bytes(b"a later one that is longer")
        (tmp_path / "new").replace(file)
        return found

    monkeypatch.setattr(tarfile.TarFile, "gettarinfo", look_then_replace)
    with tarfile.open(fileobj=io.BytesIO(packed(tmp_path))) as archive:
        assert archive.extractfile("file").read() == b"the first"


def test_a_storage_that_fails_for_a_while_is_tried_again(tmp_path, memory, monkeypatch, capsys):
    monkeypatch.setattr(storage, "PAUSE", 0.01)
    archive = Archive(memory, tmp_path / "cell")
    archive.folder.mkdir()
    (archive.folder / "file").write_text("now", encoding="utf-8")
    push = Archive.push
    tries = []

    def fail_twice(self, *named):
        tries.append(True)
        if len(tries) <= 2:
            raise ConnectionError("no route")
        push(self, *named)

    monkeypatch.setattr(Archive, "push", fail_twice)
    with archive.mirrored():
        (archive.folder / "other").write_text("new", encoding="utf-8")
        until = time.monotonic() + 20
        while not archive.exists:
            assert time.monotonic() < until
            time.sleep(0.01)
    assert capsys.readouterr().out.count("no route") == 2


def test_what_a_link_leads_to_is_not_mirrored(tmp_path):
    (tmp_path / "secret").write_text("nobody's business")
    folder = tmp_path / "cell"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    (folder / "link").symlink_to(tmp_path / "secret")
    with tarfile.open(fileobj=io.BytesIO(packed(folder))) as archive:
        assert archive.getnames() == ["mine"]


def test_what_is_on_the_storage_and_damaged_is_named_and_nothing_here_is_lost(tmp_path, memory):
    archive = Archive(memory, tmp_path / "cell")
    kept = archive.folder / "run" / "metrics.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text("precious", encoding="utf-8")
    archive.push()
    system, path = fsspec.filesystem("memory"), "/cells/cell.tar"
    whole = system.cat_file(path)
    flipped = bytearray(whole)
    flipped[600] ^= 1
    for contents in (b"", b"x", whole[:-1], whole[: len(whole) // 2], bytes(flipped), b"\0" * 10_240):
        system.pipe_file(path, contents)
        with pytest.raises(DamagedFileError, match=r"cell.tar on memory://cells is damaged"):
            archive.fetch()
        assert kept.read_text() == "precious"
    system.pipe_file(path, whole)
    assert archive.fetch()


def hostile(member):
    """An archive with a right checksum, which holds one member."""
    made = member.tobuf() + b"x" * tarfile.BLOCKSIZE + b"\0" * 2 * tarfile.BLOCKSIZE
    return made + hashlib.sha256(made).digest()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("../outside", {"size": 8}),
        ("/outside", {"size": 8}),
        ("run", {"type": tarfile.SYMTYPE, "linkname": ".."}),
        ("run", {"type": tarfile.LNKTYPE, "linkname": "../outside"}),
        ("run", {"type": tarfile.FIFOTYPE}),
        ("run/huge", {"size": 2**40}),
    ],
)
def test_a_hostile_archive_writes_nothing_elsewhere(tmp_path, memory, name, change):
    member = tarfile.TarInfo(name)
    for key, value in change.items():
        setattr(member, key, value)
    fsspec.filesystem("memory").pipe_file("/cells/cell.tar", hostile(member))
    archive = Archive(memory, tmp_path / "place" / "cell")
    with contextlib.suppress(DamagedFileError):  # an absolute name is taken as one inside
        archive.fetch()
    assert not (tmp_path / "place" / "outside").exists()
    found = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")]
    assert set(found) <= {"place", "place/cell", "place/cell/outside"}


def test_the_name_of_an_owner_leads_to_no_other_file(tmp_path):
    """Whoever takes a cell up removes what the last owner has half written."""
    storage = tmp_path / "storage"
    (storage / "cell.tar.x").mkdir(parents=True)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (storage / "cell.tar.owner").write_text("x/../../precious")
    Archive(f"file://{storage}", tmp_path / "cell").take("next")
    assert precious.read_text() == "mine"
