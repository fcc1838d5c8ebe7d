"""Writing beside other people's files: whole or not at all, and never through a symbolic link."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_plainly(path: Path, text: str) -> None:
    """Writes a file under a new name and then gives it its own: a link in its place is replaced, not followed.

    Args:
        path: the file.
        text: its contents.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_plainly(Path(folder) / "a.txt", "a")
        ...     (Path(folder) / "a.txt").read_text()
        'a'
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o666 & ~_mask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _mask() -> int:
    """What the user's own files may not be."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
