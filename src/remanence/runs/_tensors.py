"""One file of tensors with what is known about them, and a checksum over both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import safetensors
import safetensors.torch
from torch import Tensor

from remanence.runs._errors import DamagedFileError
from remanence.runs._files import read_file, replace_file
from remanence.runs._plain import Settings, Values

LENGTH_BYTES = 8
"""Bytes in front of a safetensors file that say how long its header is."""


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Settings) -> None:
    """Writes named tensors into a safetensors file, whole or not at all.

    Args:
        path: The file.
        tensors: By name.
        facts: What to know about them, for JSON.

    Raises:
        StorageError: If it cannot be written; the old file is still there.

    Example:
        >>> import tempfile, torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_tensors(Path(folder) / "a", {"one": torch.ones(1)}, {"update": 3})
        ...     read_tensors(Path(folder) / "a")
        ({'one': tensor([1.])}, {'update': 3})
    """
    copies = own_copies(tensors)
    text = json.dumps(facts)
    replace_file(path, safetensors.torch.save(copies, metadata={"facts": text, "sha256": _digest(copies, text)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], Values]:
    """Reads what :func:`write_tensors` wrote.

    Returns:
        The tensors by name, and the facts.

    Raises:
        DamagedFileError: If it cannot be read, is none of these files, or has another checksum.

    Example:
        >>> read_tensors(Path("no such file"))
        Traceback (most recent call last):
        remanence.runs._errors.DamagedFileError: no such file is missing
    """
    contents = read_file(path)  # not mapped: whoever cuts a mapped file meanwhile ends this process
    try:
        tensors = safetensors.torch.load(contents)
        metadata = _metadata(contents)
        if "sha256" in metadata and _digest(tensors, metadata["facts"]) != metadata["sha256"]:
            raise ValueError("its checksum does not match")  # files of older versions carry none
        return tensors, table_of(json.loads(metadata["facts"]))
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError, RecursionError, RuntimeError) as error:
        raise DamagedFileError(f"{path} is damaged ({error})") from error


def own_copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tied weights share their storage, which the format refuses: every name gets its own copy."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def table_of(value: object) -> Values:
    """A JSON object as it is; anything else is refused.

    Example:
        >>> table_of([])
        Traceback (most recent call last):
        ValueError: a JSON object was expected, not a list
    """
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object was expected, not a {type(value).__name__}")
    return value


def _metadata(contents: bytes) -> dict[str, str]:
    """The plain texts in the header, which is JSON."""
    length = int.from_bytes(contents[:LENGTH_BYTES], "little")
    return json.loads(contents[LENGTH_BYTES : LENGTH_BYTES + length]).get("__metadata__", {})


def _digest(tensors: Mapping[str, Tensor], facts: str) -> str:
    """SHA-256 of named tensors, with their shapes and kinds, and of what is known about them."""
    total = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        if tensor.nbytes:
            total.update(safetensors.torch.save({"": tensor})[-tensor.nbytes :])
    return total.hexdigest()
