"""Fetching: whole, resumed, broken, wrong and missing files."""

import gc
import hashlib
import os

import pytest

from remanence.data import ChecksumError, Form, MissingDataError, fetch

BODY = bytes(range(256)) * 10  # 2,560 bytes; the server that breaks sends 1,000 at a time
SHA = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "sub" / "file.bin"


def form(web, *behaviours, size: int | None = len(BODY), sha256: str | None = SHA):
    web.files["file.bin"] = BODY
    return Form("sub/file.bin", size, sha256, tuple(web.url(behaviour, "file.bin") for behaviour in behaviours))


def leftovers(target):
    return [path.name for path in target.parent.iterdir() if path != target]


def test_whole_file_arrives_and_leaves_nothing_else(web, target):
    fetch(form(web, "good"), target)
    assert target.read_bytes() == BODY
    assert leftovers(target) == []


def test_broken_transfers_are_taken_up_where_they_broke(web, target):
    fetch(form(web, "breaks"), target)
    assert target.read_bytes() == BODY
    assert [asked for _, asked in web.requests] == [None, "bytes=1000-", "bytes=2000-"]


@pytest.mark.parametrize("size", [len(BODY), None])
def test_a_later_call_goes_on_where_an_earlier_one_gave_up(web, target, size):
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(BODY[:100])
    fetch(form(web, "good", size=size), target)
    assert target.read_bytes() == BODY
    assert web.requests == [("good", "bytes=100-")]


def test_a_server_without_ranges_starts_again(web, target):
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(BODY[:100])
    fetch(form(web, "no-ranges"), target)
    assert target.read_bytes() == BODY


@pytest.mark.parametrize("length", [100, len(BODY)])
def test_a_mirror_is_not_blamed_for_what_lay_there_before(web, target, length):
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(bytes(length))
    fetch(form(web, "good"), target)
    assert target.read_bytes() == BODY
    assert web.requests[-1] == ("good", None)


@pytest.mark.parametrize("size", [len(BODY), None])
def test_a_part_that_is_too_long_is_thrown_away(web, target, size):
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(bytes(len(BODY) + 1))
    fetch(form(web, "good", size=size), target)
    assert target.read_bytes() == BODY


def test_truncated_for_good_is_an_error_and_keeps_what_came(web, target):
    with pytest.raises(MissingDataError, match="ended after 2560 of 5000 bytes"):
        fetch(form(web, "no-ranges", size=5000), target)
    assert not target.exists()
    assert leftovers(target) == ["file.bin.part"]


def test_wrong_checksum_names_both_sums_and_is_not_used(web, target):
    wrong = hashlib.sha256(bytes(len(BODY))).hexdigest()
    with pytest.raises(ChecksumError, match=f"{wrong}.*{SHA}"):
        fetch(form(web, "corrupt"), target)
    assert not target.exists()
    assert leftovers(target) == []


def test_the_next_mirror_is_tried(web, target):
    wanted = form(web, "corrupt", "good")
    missing = Form(wanted.path, wanted.size, wanted.sha256, (web.url("good", "absent"), *wanted.urls))
    fetch(missing, target)
    assert target.read_bytes() == BODY
    assert [behaviour for behaviour, _ in web.requests] == ["good", "corrupt", "good"]


def test_when_no_mirror_has_it_the_error_lists_them(web, target):
    urls = (web.url("good", "a"), web.url("good", "b"))
    with pytest.raises(MissingDataError, match=r"good/a: HTTP Error 404.*\n.*good/b: HTTP Error 404"):
        fetch(Form("sub/file.bin", None, SHA, urls), target)


def test_unreachable_host_is_an_error_of_ours(target):
    with pytest.raises(MissingDataError, match="could not be fetched"):
        fetch(Form("sub/file.bin", None, SHA, ("http://127.0.0.1:9/file.bin",)), target)


def test_progress_is_shown_on_a_terminal_and_nowhere_else(web, target, monkeypatch, capsys):
    fetch(form(web, "good"), target)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    fetch(form(web, "good"), target.with_name("again.bin"))
    assert "again.bin" in capsys.readouterr().err


def test_without_a_known_checksum_the_size_still_counts(web, target):
    fetch(form(web, "breaks", size=None, sha256=None), target)
    assert target.read_bytes() == BODY


def test_a_length_that_is_no_number_does_not_stop_the_transfer(web, target):
    fetch(form(web, "unnumbered"), target)
    assert target.read_bytes() == BODY


def test_a_file_of_unknown_size_has_a_limit_too(web, target, monkeypatch):
    monkeypatch.setattr("remanence.data._fetch.MOST_FETCHED", 100_000)
    with pytest.raises(MissingDataError, match="more than 100,000 bytes"):
        fetch(form(web, "endless", size=None, sha256=None), target)
    assert leftovers(target) == []


def test_more_bytes_than_the_file_has_are_not_stored(web, target):
    with pytest.raises(MissingDataError, match=f"more than {len(BODY):,} bytes"):
        fetch(form(web, "endless"), target)
    assert leftovers(target) == []
    assert len(web.requests) == 1
    fetch(form(web, "endless", "good"), target)
    assert target.read_bytes() == BODY


def test_a_planted_link_is_not_written_through(web, target, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("dear")
    target.parent.mkdir(exist_ok=True)
    target.with_name("file.bin.part").symlink_to(victim)
    fetch(form(web, "good"), target)
    assert victim.read_text() == "dear"
    assert target.read_bytes() == BODY
    assert not target.is_symlink()


def test_a_planted_hard_link_is_not_written_through(web, target, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(BODY[:3])  # looks like the beginning of the file, to which the rest would be appended
    target.parent.mkdir(exist_ok=True)
    target.with_name("file.bin.part").hardlink_to(victim)
    fetch(form(web, "good"), target)
    assert victim.read_bytes() == BODY[:3]
    assert target.read_bytes() == BODY


def test_a_planted_pipe_is_not_written_into(web, target):
    target.parent.mkdir()
    pipe = target.with_name("file.bin.part")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)  # whoever opens it to write then does not wait for ever
    try:
        fetch(form(web, "good"), target)
    finally:
        os.close(reader)
    assert target.read_bytes() == BODY


@pytest.mark.filterwarnings("ignore:Exception ignored in")
@pytest.mark.parametrize("broken", ["no-host", "no-label", "no-letters", "less-than-nothing"])
def test_a_mirror_that_talks_nonsense_does_not_stop_the_next_one(web, target, broken):
    fetch(form(web, broken, "good"), target)
    assert target.read_bytes() == BODY
    with pytest.raises(MissingDataError, match="could not be fetched"):
        fetch(form(web, broken), target.with_name("other"))
    gc.collect()  # urllib leaves the answer open that led nowhere


def test_a_folder_in_the_place_of_the_file_is_an_error_of_ours(web, target):
    target.mkdir(parents=True)
    with pytest.raises(MissingDataError, match="could not be fetched"):
        fetch(form(web, "good"), target)
