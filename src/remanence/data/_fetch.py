"""Downloads: resumable, checked, and put in place in one move, so that nobody ever sees half a file."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from remanence.data._catalogue import Form
from remanence.data._errors import ChecksumError, MissingDataError

_ATTEMPTS = 3
_BLOCK = 1 << 16
_TIMEOUT_SECONDS = 30
MOST_FETCHED = 1 << 30
"""Bytes of a file whose size is not known: a mirror may send without end."""


BROKEN = (OSError, http.client.HTTPException, ValueError)
"""What a transfer may end with; the last where a mirror leads to an address, or names a length, that is none."""


class TooLongError(OSError):
    """A mirror sends more bytes than the file has; none of them is kept."""


def sha256_of(path: Path) -> str:
    """Computes a file's SHA-256: 64 hexadecimal digits.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "empty").write_bytes(b"")
        ...     print(sha256_of(Path(folder) / "empty")[:12])
        e3b0c44298fc
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(form: Form, target: Path) -> None:
    """Downloads one form of a data file from the first mirror that gives the right bytes.

    What arrives goes to `target` + ".part". A broken transfer is taken up where it broke, also by a later call; only
    a complete file with the right checksum is moved to `target`.

    Args:
        form: Addresses, size and checksum.
        target: Where the file shall lie.

    Raises:
        ChecksumError: If the last mirror's file has the wrong checksum.
        MissingDataError: If no mirror gives the file; the message lists what each of them said.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    complaints: list[Exception] = []
    for url in form.urls:
        try:
            _download_and_check(url, part, form)
            part.replace(target)
        except (*BROKEN, ChecksumError) as error:
            complaints.append(error)
        else:
            return
    if complaints and all(isinstance(error, ChecksumError) for error in complaints):
        raise complaints[-1]
    said = "".join(f"\n  {url}: {error}" for url, error in zip(form.urls, complaints, strict=True))
    raise MissingDataError(f"{form.path} could not be fetched:{said}")


def _download_and_check(url: str, part: Path, form: Form) -> None:
    """Fills `part` with the right bytes; what lay there before may be wrong, for which no mirror is to blame."""
    begun = part.exists()
    _download(url, part, form.size)
    try:
        _check(url, part, form.sha256)
    except ChecksumError:
        if not begun:
            raise
        _download(url, part, form.size)
        _check(url, part, form.sha256)


def _check(url: str, part: Path, expected: str | None) -> None:
    got = sha256_of(part)
    if expected is not None and got != expected:
        part.unlink()
        raise ChecksumError(url, expected, got, "The download has been deleted; try another mirror")


def _download(url: str, part: Path, size: int | None) -> None:
    """Fills `part`, several times from where the transfer broke."""
    for attempt in range(_ATTEMPTS):
        try:
            _transfer(url, part, size)
        except urllib.error.HTTPError as error:
            error.close()
            # Asking beyond the end: what lies here is no beginning of that file. Anything else will not change.
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or attempt == _ATTEMPTS - 1:
                raise
            part.unlink(missing_ok=True)
        except TooLongError:
            part.unlink()
            raise
        except BROKEN:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def _transfer(url: str, part: Path, size: int | None) -> None:
    """Appends to `part` what is missing; raises `IncompleteRead` if the connection ends too early."""
    if part.is_symlink() or not part.is_file() or part.stat().st_nlink > 1:
        part.unlink(missing_ok=True)  # planted: a link leads elsewhere, and to open a pipe never ends
    have = 0
    if part.exists():
        have = part.stat().st_size
    if size is not None and have >= size:
        if have == size:
            return
        part.unlink()
        have = 0
    request = urllib.request.Request(url)
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
        mode = "ab"
        if answer.status != http.HTTPStatus.PARTIAL_CONTENT:  # the mirror sends the whole file
            mode = "wb"
            have = 0
        total = size
        most = MOST_FETCHED if size is None else size
        announced = _whole_number(answer.headers.get("Content-Length"))
        if announced is not None:
            total = have + announced
        with part.open(mode) as file, _progress(part.stem, have, total) as advance:
            while block := answer.read(_BLOCK):
                have += len(block)
                if have > most:
                    raise TooLongError(f"more than {most:,} bytes arrive, which the file cannot have")
                file.write(block)
                advance(len(block))
    _expect(part, size or total)


def _whole_number(text: str | None) -> int | None:
    """A length that a mirror announces; nonsense counts as no announcement."""
    if text is None or not text.isdecimal() or len(text) >= 20:
        return None
    return int(text)


def _expect(part: Path, size: int | None) -> None:
    have = part.stat().st_size
    if size is not None and have < size:
        raise OSError(f"the transfer ended after {have} of {size} bytes")


@contextlib.contextmanager
def _progress(name: str, have: int, total: int | None) -> Iterator[Callable[[int], None]]:
    """Shows a bar on a terminal, nothing elsewhere."""
    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        job = bar.add_task(name, total=total, completed=have)
        yield lambda count: bar.advance(job, count)
