"""Looking files up: order of directories, checks, packed forms, the catalogue."""

import gzip
import hashlib
import io
import lzma
import re
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from remanence import data
from remanence.data import ChecksumError, DataError, DataFile, Form, MissingDataError, _catalogue, _files
from remanence.data._files import unpack

TEXT = b"the contents\n" * 50


def sha(raw):
    return hashlib.sha256(raw).hexdigest()


def tgz(raw):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("./inside/a.txt")
        info.size = len(raw)
        archive.addfile(info, io.BytesIO(raw))
    return buffer.getvalue()


def zipped(raw):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("inside/a.txt", raw)
    return buffer.getvalue()


@pytest.fixture
def known(monkeypatch):
    """Puts an entry into the catalogue."""

    def add(*forms, contents=TEXT):
        item = DataFile("set/a.txt", len(contents), sha(contents), forms)
        monkeypatch.setitem(_catalogue._CATALOGUE, item.name, item)

    return add


def place(folder, path, raw):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(raw)


PACKINGS = {
    "set/a.txt": (TEXT, None),
    "set/a.txt.gz": (gzip.compress(TEXT), None),
    "set/a.txt.xz": (lzma.compress(TEXT), None),
    "set/b.zip": (zipped(TEXT), "inside/a.txt"),
    "set/b.tgz": (tgz(TEXT), "./inside/a.txt"),
}


@pytest.mark.parametrize("path", PACKINGS)
def test_every_packing_gives_the_contents(folders, known, path):
    raw, member = PACKINGS[path]
    known(Form(path, len(raw), sha(raw), member=member))
    place(folders[0], path, raw)
    assert data.load_bytes("set/a.txt") == TEXT
    assert data.is_available("set/a.txt")


@pytest.mark.parametrize("path", PACKINGS)
def test_wrong_checksum_on_disk_names_both_sums(folders, known, path):
    raw, member = PACKINGS[path]
    known(Form(path, len(raw), sha(raw), member=member))
    place(folders[0], path, raw + b"!")
    with pytest.raises(ChecksumError, match=f"{sha(raw + b'!')}.*{sha(raw)}"):
        data.load_bytes("set/a.txt")


def test_contents_of_an_archive_without_checksum_are_checked(folders, known):
    known(Form("set/b.zip", None, None, member="inside/a.txt"))
    place(folders[0], "set/b.zip", zipped(b"something else"))
    with pytest.raises(ChecksumError, match=f"{sha(b'something else')}.*{sha(TEXT)}"):
        data.load_bytes("set/a.txt")


def test_a_changed_file_is_checked_again(folders, known):
    known(Form("set/a.txt", len(TEXT), sha(TEXT)))
    place(folders[0], "set/a.txt", TEXT)
    data.locate("set/a.txt")
    place(folders[0], "set/a.txt", TEXT + b"!")
    with pytest.raises(ChecksumError):
        data.locate("set/a.txt")


def test_named_directory_comes_before_the_cache(folders, known):
    known(Form("set/a.txt", len(TEXT), sha(TEXT)))
    for folder in folders:
        place(folder, "set/a.txt", TEXT)
    assert data.locate("set/a.txt") == folders[0] / "set/a.txt"
    (folders[0] / "set/a.txt").unlink()
    assert data.locate("set/a.txt") == folders[1] / "set/a.txt"


def test_what_is_missing_is_fetched_into_the_cache_once(folders, known, web):
    raw = gzip.compress(TEXT)
    web.files["a.gz"] = raw
    known(Form("set/a.txt.gz", len(raw), sha(raw), (web.url("good", "a.gz"),)))
    assert not data.is_available("set/a.txt")
    assert data.load_bytes("set/a.txt") == TEXT
    assert data.locate("set/a.txt") == folders[1] / "set/a.txt.gz"
    assert len(web.requests) == 1
    assert list(folders[0].iterdir()) == []


def test_many_at_once_fetch_it_once(folders, known, web):
    web.files["a.txt"] = TEXT
    known(Form("set/a.txt", len(TEXT), sha(TEXT), (web.url("good", "a.txt"),)))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: data.load_bytes("set/a.txt"), range(8)))
    assert found == [TEXT] * 8
    assert len(web.requests) == 1


def test_another_form_is_fetched_when_the_first_is_not_to_be_had(folders, known, web):
    web.files["b.zip"] = zipped(TEXT)
    known(
        Form("set/a.txt", len(TEXT), sha(TEXT), (web.url("good", "absent"),)),
        Form("set/b.zip", None, None, (web.url("good", "b.zip"),), member="inside/a.txt"),
    )
    assert data.load_bytes("set/a.txt") == TEXT


def test_fetching_can_be_forbidden(folders, known, web):
    known(Form("set/a.txt", len(TEXT), sha(TEXT), (web.url("good", "a.txt"),)))
    with pytest.raises(MissingDataError, match="not allowed"):
        data.locate("set/a.txt", download=False)
    assert web.requests == []


def test_without_a_mirror_the_error_says_what_to_do(folders, known):
    known(Form("set/a.txt", len(TEXT), sha(TEXT)))
    with pytest.raises(MissingDataError, match=r"no public mirror.*set/a.txt.*REMANENCE_DATA"):
        data.locate("set/a.txt")


def test_all_forms_failing_lists_all(folders, known, web):
    known(
        Form("set/a.txt", len(TEXT), sha(TEXT), (web.url("good", "x"),)),
        Form("set/a.txt.gz", 1, sha(TEXT), (web.url("good", "y"),)),
    )
    with pytest.raises(MissingDataError, match=r"(?s)good/x.*good/y.*REMANENCE_DATA"):
        data.locate("set/a.txt")


def test_damaged_archives_are_errors_of_ours(tmp_path):
    for path, (raw, member) in PACKINGS.items():
        if path == "set/a.txt":
            continue
        place(tmp_path, path, raw[: len(raw) // 2])
        with pytest.raises(DataError, match="cannot be unpacked"):
            unpack(tmp_path / path, member)
    place(tmp_path, "set/b.zip", zipped(TEXT))
    with pytest.raises(DataError, match="absent"):
        unpack(tmp_path / "set/b.zip", "absent")


def test_the_cache_is_in_the_home_directory_unless_named(monkeypatch, tmp_path):
    monkeypatch.delenv("REMANENCE_CACHE", raising=False)
    monkeypatch.delenv("REMANENCE_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data.data_directories() == [tmp_path / ".cache" / "remanence"]


@pytest.mark.parametrize("name", data.names())
def test_catalogue_entries_are_well_formed(name):
    item = data.entry(name)
    assert re.fullmatch("[0-9a-f]{64}", item.sha256)
    assert item.forms[0].path == name
    assert (item.forms[0].sha256, item.forms[0].size) == (item.sha256, item.size)
    for form in item.forms:
        assert form.sha256 is None or re.fullmatch("[0-9a-f]{64}", form.sha256)
        assert (form.member is not None) == form.path.endswith((".zip", ".tgz"))
        assert all(url.startswith(("http://", "https://")) for url in form.urls)


@pytest.mark.parametrize("name", [name for name in data.names() if not name.startswith("text8/")])
def test_real_files_have_the_sums_and_sizes_of_the_catalogue(name, require_or_skip):
    if not data.is_available(name):
        require_or_skip("data", f"data file {name} is not on this machine (set REMANENCE_DATA)")
    contents = data.load_bytes(name, download=False)
    assert (len(contents), sha(contents)) == (data.entry(name).size, data.entry(name).sha256)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_small_file_that_unpacks_to_very_much_is_refused(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(_files, "MOST_UNPACKED", 1000)
    pack = gzip.compress if suffix == ".gz" else lzma.compress
    path = tmp_path / f"bomb{suffix}"
    path.write_bytes(pack(bytes(1001)))
    with pytest.raises(DataError, match="unpacks to more than 1,000 bytes"):
        _files.unpack(path)
    path.write_bytes(pack(bytes(1000)))
    assert _files.unpack(path) == bytes(1000)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_of_an_archive_that_names_any_size_is_refused(tmp_path, kind):
    """What it names is read at once: this one asks for more memory than any machine has."""
    header = tarfile.TarInfo("m")
    header.type = kind
    header.size = 8 << 60
    (tmp_path / "a.tgz").write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(1024)))
    with pytest.raises(DataError, match="cannot be unpacked"):
        unpack(tmp_path / "a.tgz", "m")


def test_a_lock_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "a.lock").symlink_to(tmp_path / "made")
    with pytest.raises(DataError, match="not a regular file"), _files._lock(tmp_path / "a"):
        pass
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(("byte", "value", "words"), [(6, 1, "encrypted"), (8, 99, "method is not supported")])
def test_an_archive_that_cannot_be_read_is_an_error_of_ours(tmp_path, byte, value, words):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("member", b"abc")
    raw = bytearray(path.read_bytes())
    listed = raw.index(b"PK\x01\x02")  # the flags and the method stand in both headers, two bytes apart
    raw[byte] = raw[listed + byte + 2] = value
    path.write_bytes(raw)
    with pytest.raises(DataError, match=f"cannot be unpacked: .*{words}"):
        unpack(path, "member")
