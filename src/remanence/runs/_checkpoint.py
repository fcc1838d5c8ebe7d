"""Checkpoints: whole or absent, checked when they are read, the last two kept."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from remanence.runs._errors import CheckpointError, DamagedFileError, RunError
from remanence.runs._files import WRITING, read_file, read_json, require_no_link, write_folder
from remanence.runs._plain import Values
from remanence.runs._result import KIND, VERSION, NewerVersionError, check_version, tag
from remanence.runs._states import pack, unpack
from remanence.runs._tensors import own_copies, read_tensors, table_of, write_tensors

KEPT = 2
BEST = "best.safetensors"
NAME = "checkpoint"
NEWEST = 1
"""The version that is written, and the newest that is read."""
FILES = ("weights.safetensors", "training.safetensors", "training.json")
SUMS = "sha256.json"
SUMS_KIND = "checksum-list"


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run needs to go on as if nothing had happened.

    Args:
        update: batches learnt from so far.
        weights: the model's ``state_dict``.
        training: optimiser, random states, carried layer state, progress: nested values of tensors and plain data.

    Example:
        >>> Checkpoint(3, {}, {"progress": {}}).update
        3
    """

    update: int
    weights: dict[str, Tensor]
    training: Values


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Writes a checkpoint and deletes those before the last two.

    Returns:
        Its own folder, named by the update.

    Raises:
        StorageError: If it cannot be written; the ones before are untouched.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = save_checkpoint(Path(folder), Checkpoint(7, {}, {"progress": {"best": None}}))
        ...     load_checkpoint(Path(folder)).update
        7
    """
    tensors: dict[str, Tensor] = {}
    outline = pack(checkpoint.training, "training", tensors)
    files = {
        "weights.safetensors": safetensors.torch.save(own_copies(checkpoint.weights)),
        "training.safetensors": safetensors.torch.save(own_copies(tensors)),
        "training.json": json.dumps({**tag(NAME, NEWEST), "update": checkpoint.update, "training": outline}).encode(),
    }
    sums = {name: hashlib.sha256(contents).hexdigest() for name, contents in files.items()}
    path = folder / f"{checkpoint.update:09d}"
    write_folder(path, {**files, SUMS: json.dumps({**tag(SUMS_KIND), **sums}, indent=1).encode()})
    for old in list_checkpoints(folder)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return path


def list_checkpoints(folder: Path) -> list[Path]:
    """Lists the checkpoints of a run, oldest first.

    Example:
        >>> list_checkpoints(Path("no such folder"))
        []
    """
    require_no_link(folder)
    try:
        return sorted(path for path in folder.iterdir() if re.fullmatch(r"\d{9,}", path.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be listed: {error.strerror or error}") from error


def warn_aloud(text: str) -> None:
    """Prints to standard error: standard output may be read by a machine."""
    print(text, file=sys.stderr)


def load_checkpoint(
    folder: Path, warn: Callable[[str], None] = warn_aloud, *, repair: bool = False
) -> Checkpoint | None:
    """Reads the newest checkpoint that is intact.

    Args:
        folder: ``checkpoint`` of a run.
        warn: Is told of every one that is torn or corrupted.
        repair: Whether to rename those; only for whoever holds the run's lock.

    Returns:
        The checkpoint, or None if the run never wrote one.

    Raises:
        CheckpointError: If there are some and none can be read.

    Example:
        >>> load_checkpoint(Path("no such folder")) is None
        True
    """
    found = list_checkpoints(folder)
    for path in reversed(found):
        try:
            return read_checkpoint(path)
        except NewerVersionError as error:  # it is whole: to take the one before would lose what was learnt since
            raise CheckpointError(f"{path}: {error}") from error
        except (OSError, ValueError, KeyError, TypeError, RecursionError, safetensors.SafetensorError) as error:
            where = path
            if repair:
                where = _set_aside(path)
            warn(f"checkpoint {where} is damaged ({error}); the one before is used")
    if found:
        raise CheckpointError(f"none of the checkpoints in {folder} can be read; start the run again in another folder")
    return None


def _set_aside(path: Path) -> Path:
    """Renames a damaged checkpoint: it no longer counts as one of the last two, and whoever asks why can look at it."""
    aside = path.with_name(f"damaged-{path.name}")
    shutil.rmtree(aside, ignore_errors=True)
    return path.rename(aside)


def read_checkpoint(path: Path) -> Checkpoint:
    """Reads one checkpoint and holds it against its checksums.

    Example:
        >>> read_checkpoint(Path("no such folder"))
        Traceback (most recent call last):
        remanence.runs._errors.DamagedFileError: no such folder/sha256.json is missing
    """
    require_no_link(path)
    sums = _read_sums(path / SUMS)
    files = {name: read_file(path / name) for name in FILES}
    for name, contents in files.items():
        found = hashlib.sha256(contents).hexdigest()
        if found != sums[name]:
            raise ValueError(f"{name} has SHA-256 {found[:12]}..., not {str(sums[name])[:12]}...")
    outline = table_of(json.loads(files["training.json"]))
    if KIND in outline:  # checkpoints of before there were kinds have none
        check_version(outline, NAME, NEWEST)
    if type(outline["update"]) is not int:
        raise ValueError(f"training.json names no update: {outline['update']!r}")
    training = table_of(unpack(outline["training"], safetensors.torch.load(files["training.safetensors"])))
    return Checkpoint(outline["update"], safetensors.torch.load(files["weights.safetensors"]), training)


def _read_sums(path: Path) -> Values:
    """The checksums by the name of their file."""
    sums = read_json(path)
    if KIND in sums:  # those of before there were kinds have none
        check_version(sums, SUMS_KIND, 1)
        del sums[KIND], sums[VERSION]
    if sorted(sums) != sorted(FILES):  # a name may lead anywhere: only these are ever opened
        raise ValueError(f"{SUMS} must name {', '.join(FILES)}, and names {', '.join(sums) or 'nothing'}")
    return sums


@contextlib.contextmanager
def taking_up(folder: Path) -> Iterator[None]:
    """Words the errors of restoring a training state: its file is intact, but holds something else.

    Whatever the block raises becomes a :class:`CheckpointError`.

    Example:
        >>> with taking_up(Path("run/checkpoint")):
        ...     {}["optimiser"]
        Traceback (most recent call last):
        remanence.runs._errors.CheckpointError: the checkpoint in run/checkpoint does not belong to this training (...)
    """
    try:
        yield
    except RunError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise CheckpointError(f"the checkpoint in {folder} does not belong to this training ({error!r})") from error


def save_best(folder: Path, weights: Mapping[str, Tensor], **facts: Any) -> None:
    """Keeps the weights that did best so far.

    Args:
        folder: ``checkpoint`` of a run.
        weights: the model's ``state_dict``.
        facts: What to know about them, for JSON.

    Example:
        >>> import tempfile, torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_best(Path(folder), {"a": torch.ones(1)}, update=3)
        ...     load_best(Path(folder))
        ({'a': tensor([1.])}, {'update': 3})
    """
    write_tensors(folder / BEST, weights, facts)


def load_best(folder: Path) -> tuple[dict[str, Tensor], Values] | None:
    """Reads the weights that did best, and what is known about them; None before the first evaluation.

    Example:
        >>> load_best(Path("no such folder")) is None
        True
    """
    require_no_link(folder)
    path = folder / BEST
    try:
        path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        return read_tensors(path)
    except DamagedFileError as error:
        raise CheckpointError(f"{error}; evaluate the last weights instead") from error


def forget_drafts(folder: Path) -> None:
    """Removes what a killed process left half written.

    Example:
        >>> forget_drafts(Path("no such folder"))
    """
    for path in folder.glob(f"{WRITING}*"):
        if _is_being_written(path):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _is_being_written(draft: Path) -> bool:
    """Whether another process of this machine, which lives, has this draft in hand."""
    owner = draft.name.removeprefix(WRITING).partition("-")[0]
    if not owner.isdecimal() or int(owner) == os.getpid():
        return False
    try:
        os.kill(int(owner), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
