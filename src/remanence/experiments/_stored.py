"""Stored results: one JSON file an experiment, which says what was run, how, where, and what came out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from remanence._validate import message, one_of

FOLDER = Path(__file__).parent / "stored"
REQUIRED = ("what", "command", "scaled_down", "machine", "results")


def stored_names(folder: Path = FOLDER) -> list[str]:
    """Names of the stored results, in order.

    Example:
        >>> isinstance(stored_names(), list)
        True
    """
    return sorted(path.stem for path in folder.glob("*.json"))


def stored_records(folder: Path = FOLDER) -> dict[str, list[str]]:
    """Names of the stored results of each table or figure, by its id; older ones have no id and are left out.

    Example:
        >>> isinstance(stored_records(), dict)
        True
    """
    found: dict[str, list[str]] = {}
    for name in stored_names(folder):
        record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        if "experiment" in record:
            found.setdefault(record["experiment"], []).append(record["scale"])
    return found


def load_stored(name: str, folder: Path = FOLDER) -> dict[str, Any]:
    """Reads one stored result.

    Args:
        name: one of :func:`stored_names`.
        folder: where the results are; those of the package by default.

    Returns:
        ``what`` was run in one sentence, the ``command`` that runs it again, what is ``scaled_down`` beside the
        document (empty if nothing), the ``machine``, and the ``results``.

    Raises:
        ValueError: there is no such result.

    Example:
        >>> load_stored("nothing")
        Traceback (most recent call last):
            ...
        ValueError: `name` must be ...
    """
    one_of("name", name, stored_names(folder))
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def save_stored(name: str, record: dict[str, Any], folder: Path = FOLDER) -> Path:
    """Writes one stored result, in the same bytes for the same record.

    Args:
        name: of the experiment.
        record: with all the keys that :func:`load_stored` names.
        folder: where to.

    Raises:
        ValueError: a key is missing.

    Example:
        >>> save_stored("mine", {"what": "nothing"})
        Traceback (most recent call last):
            ...
        ValueError: `record` must have the keys what, command, scaled_down, machine, results; got ['what']
    """
    if not record.keys() >= set(REQUIRED):
        raise ValueError(message("record", f"have the keys {', '.join(REQUIRED)}", sorted(record)))
    path = folder / f"{name}.json"
    path.write_text(json.dumps(record, indent=1, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")
    return path
