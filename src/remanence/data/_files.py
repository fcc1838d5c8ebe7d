"""Where data files lie, and their checked contents."""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from remanence.data._catalogue import DataFile, Form, entry
from remanence.data._errors import ChecksumError, DataError, MissingDataError
from remanence.data._fetch import fetch, sha256_of

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows, where two processes may fetch the same file twice
    fcntl = None

DATA_VARIABLE = "REMANENCE_DATA"
CACHE_VARIABLE = "REMANENCE_CACHE"
MOST_UNPACKED = 2 << 30
"""Bytes that a packed file may come to: a few kilobytes can unpack to as much as fills any memory."""


def cache_directory() -> Path:
    """Says where fetched files are kept: the directory named by `REMANENCE_CACHE`, or ~/.cache/remanence.

    Example:
        >>> cache_directory().is_absolute() or "REMANENCE_CACHE" in os.environ
        True
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    return Path.home() / ".cache" / "remanence"


def data_directories() -> list[Path]:
    """Lists where data files are looked for: first the directory named by `REMANENCE_DATA`, then the cache.

    Example:
        >>> data_directories()[-1] == cache_directory()
        True
    """
    named = os.environ.get(DATA_VARIABLE)
    if named:
        return [Path(named), cache_directory()]
    return [cache_directory()]


def is_available(name: str) -> bool:
    """Tells whether a data file lies on this machine in one of its forms, without fetching it or reading it.

    Example:
        >>> is_available("mnist/t10k-labels-idx1-ubyte") in (True, False)
        True
    """
    return _find(entry(name)) is not None


def locate(name: str, *, download: bool = True) -> Path:
    """Finds a data file on this machine, or fetches it into the cache.

    Returns:
        Path of one of its forms (plain, compressed, or an archive), checked.

    Raises:
        ChecksumError: If the file that is there, or that was fetched, has the wrong checksum.
        MissingDataError: If it is not there and cannot be fetched.

    Example:
        >>> locate("ptb/ptb.tran.txt")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: `name` must be one of ...; got 'ptb/ptb.tran.txt'. Did you mean 'ptb/ptb.train.txt'?
    """
    return _locate(entry(name), download)[0]


def load_bytes(name: str, *, download: bool = True) -> bytes:
    """Reads the unpacked contents of a data file.

    Raises:
        ChecksumError: If the file or its contents have the wrong checksum.
        MissingDataError: If it is not there and cannot be fetched.

    Example:
        >>> if is_available("sequences/tinyshakespeare.txt"):
        ...     assert load_bytes("sequences/tinyshakespeare.txt").startswith(b"First Citizen")
    """
    item = entry(name)
    path, form = _locate(item, download)
    contents = unpack(path, form.member)
    if form.sha256 is None:
        _check_contents(item, path, contents)
    return contents


def unpack(path: Path, member: str | None = None) -> bytes:
    """Reads a file, unpacked as its ending says: .gz, .xz, .zip, .tgz, or as it is.

    Raises:
        DataError: If the file is damaged or has no such member.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "a.gz"
        ...     _ = path.write_bytes(gzip.compress(b"abc"))
        ...     print(unpack(path))
        b'abc'
    """
    raw = path.read_bytes()
    try:
        contents = _unpack(raw, path.suffix, member or "")
    except (OSError, EOFError, KeyError, *DAMAGED) as error:
        raise DataError(f"{path} cannot be unpacked: {error}. Delete it and fetch it again") from error
    return _within_limit(path, contents)


def _unpack(raw: bytes, suffix: str, member: str) -> bytes:
    most = MOST_UNPACKED + 1  # one more than is allowed, to see that there is more
    if suffix == ".gz":
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            return file.read(most)
    if suffix == ".xz":
        with lzma.LZMAFile(io.BytesIO(raw)) as file:
            return file.read(most)
    if suffix == ".zip":
        with zipfile.ZipFile(io.BytesIO(raw)) as archive, archive.open(member) as file:
            return file.read(most)
    if suffix == ".tgz":
        with _TarStream(fileobj=io.BytesIO(raw)) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
            file = archive.extractfile(member)
            if file is None:
                raise KeyError(member)
            return file.read(most)
    return raw


class _TarStream(gzip.GzipFile):
    """The unpacked bytes of a .tgz: a header in it may name any size, and is read at once."""

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > MOST_UNPACKED + 1:
            raise tarfile.ReadError(f"a part of it has {size:,} bytes")
        return super().read(size)


def _within_limit(path: Path, contents: bytes) -> bytes:
    if len(contents) > MOST_UNPACKED:
        raise DataError(f"{path} unpacks to more than {MOST_UNPACKED:,} bytes; unpack it yourself if you trust it")
    return contents


def _locate(item: DataFile, download: bool) -> tuple[Path, Form]:
    found = _find(item)
    if found is None:
        _obtain(item, download)
        found = _find(item)
    if found is None:  # pragma: no cover - only if somebody deletes the file at this very moment
        raise MissingDataError(f"{item.name} has vanished from {cache_directory()}")
    path, form = found
    _check_file(path, form)
    return path, form


def _find(item: DataFile) -> tuple[Path, Form] | None:
    candidates = ((folder / form.path, form) for folder in data_directories() for form in item.forms)
    return next(((path, form) for path, form in candidates if path.is_file()), None)


def _obtain(item: DataFile, download: bool) -> None:
    forms = [form for form in item.forms if form.urls]
    way_out = f"Put it as {item.forms[-1].path} into the directory that {DATA_VARIABLE} names"
    if not download:
        raise MissingDataError(f"{item.name} is not on this machine, and fetching was not allowed. {way_out}")
    if not forms:
        raise MissingDataError(f"{item.name} is not on this machine and has no public mirror. {way_out}")
    errors: list[DataError] = []
    for form in forms:
        try:
            _fetch_once(form)
        except DataError as error:
            errors.append(error)
        else:
            return
    if len(errors) == 1 and isinstance(errors[0], ChecksumError):
        raise errors[0]
    raise MissingDataError("\n".join([*map(str, errors), way_out]))


def _fetch_once(form: Form) -> None:
    """Lets one process fetch while others wait for it."""
    target = cache_directory() / form.path
    with _lock(target):
        if not target.is_file():
            fetch(form, target)


@contextlib.contextmanager
def _lock(target: Path) -> Iterator[None]:
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = target.with_name(target.name + ".lock")
    if lock.is_symlink() or (lock.exists() and not lock.is_file()):
        raise DataError(f"{lock} is not a regular file; remove it")
    with lock.open("a") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _check_file(path: Path, form: Form) -> None:
    if form.sha256 is None:
        return
    stat = path.stat()
    got = _checksum(path, stat.st_size, stat.st_mtime_ns)
    if got != form.sha256:
        raise ChecksumError(str(path), form.sha256, got, "Delete it, and it will be fetched again")


@functools.lru_cache(maxsize=256)
def _checksum(path: Path, size: int, changed: int) -> str:
    """Hashes a file once per process, unless its size or time of change differ."""
    return sha256_of(path)


def _check_contents(item: DataFile, path: Path, contents: bytes) -> None:
    got = hashlib.sha256(contents).hexdigest()
    if got != item.sha256:
        raise ChecksumError(f"{item.name} in {path}", item.sha256, got, "Delete it, and it will be fetched again")


DAMAGED = (zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, RuntimeError)
"""What the readers of packed files raise beside the errors of any file; the last for a password or another method."""
