"""Writing that cannot leave half a file, JSON that tells when it was damaged, and a lock that ends with its process."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from remanence.runs._errors import DamagedFileError, RunLockedError, StorageError
from remanence.runs._plain import Settings, Values

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows, where two processes on one folder go unnoticed
    fcntl = None

WRITING = ".writing-"
SEAL = "sha256"
"""The entry of a JSON object that holds the checksum of all others."""
LOOK_AGAIN = 0.02
"""Seconds between two tries to get a lock."""
GLANCE = 2.0
"""Seconds that a lock is tried for at least: :func:`is_locked` holds it for a moment, which must refuse nobody."""


def draft_of(path: Path) -> Path:
    """Where a file or folder is written before it takes its name: no two processes share a draft.

    Example:
        >>> draft_of(Path("run/status.json")).name == f".writing-{os.getpid()}-status.json"
        True
    """
    return path.with_name(f"{WRITING}{os.getpid()}-{path.name}")


def write_bytes(path: Path, contents: bytes) -> None:
    """Writes a file and waits until the disk has it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_bytes(Path(folder) / "a", b"abc")
        ...     (Path(folder) / "a").read_bytes()
        b'abc'
    """
    path.unlink(missing_ok=True)  # whatever lies there, a planted link among it, is not written through
    with path.open("xb") as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, contents: bytes) -> None:
    """Puts a whole file in place of another in one step; a reader sees the old one or the new one.

    Raises:
        StorageError: If it cannot be written; the old file is still there.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     replace_file(Path(folder) / "a", b"abc")
        ...     [path.name for path in Path(folder).iterdir()]
        ['a']
    """
    draft = draft_of(path)
    try:
        write_bytes(draft, contents)
        os.replace(draft, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise storage_error(path, error) from error


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Makes a folder of files appear in one step, whole or not at all.

    Args:
        path: The folder, which may exist already and is then replaced.
        files: Contents by name.

    Raises:
        StorageError: If it cannot be written; nothing of it is left then.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_folder(Path(folder) / "made", {"a": b"1", "b": b"2"})
        ...     sorted(path.name for path in (Path(folder) / "made").iterdir())
        ['a', 'b']
    """
    draft = draft_of(path)
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        for name, contents in files.items():
            write_bytes(draft / name, contents)
        sync_folder(draft)
        if path.exists():
            shutil.rmtree(path)
        os.replace(draft, path)
        sync_folder(path.parent)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise storage_error(path, error) from error


def read_file(path: Path) -> bytes:
    """Reads a file of a run's folder; a pipe, a link and what cannot be read are a :class:`DamagedFileError`.

    Example:
        >>> read_file(Path("no such file"))
        Traceback (most recent call last):
        remanence.runs._errors.DamagedFileError: no such file is missing
    """
    try:
        require_no_link(path)
        if not os.path.lexists(path):
            raise DamagedFileError(f"{path} is missing")
        if not path.is_file():
            raise DamagedFileError(f"{path} is not a regular file")
        return path.read_bytes()
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror or error}") from error


def read_json(path: Path) -> Values:
    """Reads a JSON object from a regular file; its checksum, if it has one, is checked and left out.

    Raises:
        DamagedFileError: If it cannot be read, holds something else, or has another checksum.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_bytes(Path(folder) / "a.json", b'{"update": 3}')
        ...     read_json(Path(folder) / "a.json")
        {'update': 3}
    """
    try:
        found = json.loads(read_file(path))
    except (RecursionError, ValueError) as error:
        if isinstance(error, DamagedFileError):
            raise
        raise DamagedFileError(f"{path} is damaged: it is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise DamagedFileError(f"{path} is damaged: a JSON object was expected, not a {type(found).__name__}")
    try:
        return unsealed(found)
    except ValueError as error:
        raise DamagedFileError(f"{path} is damaged: {error}; put it back, or remove it") from error


def require_regular(path: Path) -> None:
    """Refuses to write to anything but a regular file: a link leads elsewhere, and a pipe has no end.

    Example:
        >>> require_regular(Path("no such file"))
    """
    require_no_link(path)
    if path.exists() and not path.is_file():
        raise DamagedFileError(f"{path} is not a regular file; remove it")


def require_no_link(path: Path) -> None:
    """Refuses a link in a run's folder: it may lead to private files, or to files that would be overwritten.

    Example:
        >>> require_no_link(Path("no such file"))
    """
    if path.is_symlink():
        raise DamagedFileError(f"{path} is a link, which may lead anywhere; put what it leads to in its place")


def sync_folder(path: Path) -> None:
    """Waits until the disk knows the names in a folder: a renamed file is safe only then."""
    if os.name != "posix":  # pragma: no cover - elsewhere folders cannot be opened
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_error(path: Path, error: OSError) -> StorageError:
    """Words a failed write.

    Example:
        >>> print(storage_error(Path("run/a"), OSError(28, "No space left on device")))
        run/a could not be written: No space left on device. What was saved is intact; ...
    """
    way = "free some space and resume"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        way = "make it writable and resume"
    return StorageError(f"{path} could not be written: {error.strerror or error}. What was saved is intact; {way}")


@contextlib.contextmanager
def locked(folder: Path, patience: float = GLANCE) -> Iterator[None]:
    """Locks a run folder for this process; the system releases the lock when the process ends, however it ends.

    Args:
        folder: The run folder, which exists.
        patience: Seconds to wait for another process that holds it.

    Raises:
        RunLockedError: If another process holds it.
        StorageError: If nothing can be written there.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder)):
        ...     is_locked(Path(folder))
        True
    """
    with _opened(folder / "lock") as file:
        deadline = time.monotonic() + patience
        while not _got_lock(file):
            if time.monotonic() >= deadline:
                raise RunLockedError(f"{folder} is in use by another process; wait for it, or stop it first")
            time.sleep(LOOK_AGAIN)
        yield


@contextlib.contextmanager
def locked_file(path: Path, patience: float = GLANCE) -> Iterator[None]:
    """Locks one file while it is read and replaced; the lock is next to it and ends with the process.

    Args:
        path: The file, which need not exist; its folder does.
        patience: Seconds to wait for another process that holds it.

    Raises:
        RunLockedError: If another process holds it.
        StorageError: If nothing can be written there.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with locked_file(Path(folder) / "a"):
        ...         print([path.name for path in Path(folder).iterdir()])
        ...     list(Path(folder).iterdir())
        ['.a.lock']
        []
    """
    lock = path.with_name(f".{path.name}.lock")
    deadline = time.monotonic() + patience
    while (file := _opened_lock(lock)) is None:
        if time.monotonic() >= deadline:
            raise RunLockedError(f"{path} is in use by another process; wait for it, or stop it first")
        time.sleep(LOOK_AGAIN)
    with file:
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                lock.unlink()


def _opened_lock(lock: Path) -> IO[bytes] | None:
    """The file that is locked now, None if another process holds it."""
    file = _opened(lock)
    if _got_lock(file) and _is_still(lock, file):
        return file
    file.close()
    return None


def _opened(lock: Path) -> IO[bytes]:
    require_regular(lock)
    try:
        return lock.open("a+b")
    except OSError as error:
        raise storage_error(lock, error) from error


def _is_still(path: Path, file: IO[bytes]) -> bool:
    """Whether a name still leads to an open file: whoever held the lock before has removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _got_lock(file: IO[bytes]) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(folder: Path) -> bool:
    """Tells whether a process works on a run folder now.

    Example:
        >>> is_locked(Path("no such folder"))
        False
    """
    if not (folder / "lock").is_file():
        return False
    try:
        with (folder / "lock").open("rb") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def sealed(table: Settings) -> str:
    """The text of a JSON object with its checksum; an older one is replaced.

    Example:
        >>> unsealed(json.loads(sealed({"update": 3})))
        {'update': 3}
    """
    plain = json.loads(json.dumps({key: value for key, value in table.items() if key != SEAL}))
    return json.dumps({**plain, SEAL: _checksum(plain)}, indent=1)


def unsealed(table: Settings) -> Values:
    """The object without its checksum, if it has one; ValueError if that does not match.

    Example:
        >>> unsealed({"update": 3, "sha256": "0"})
        Traceback (most recent call last):
        ValueError: its checksum does not match
    """
    rest = {key: value for key, value in table.items() if key != SEAL}
    if SEAL in table and table[SEAL] != _checksum(rest):
        raise ValueError("its checksum does not match")
    return rest


def _checksum(plain: Settings) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
