"""Tables of numbers over time."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from remanence import _validate
from remanence.data._errors import DataError
from remanence.data._readers import read_text

MOST_COLUMNS = 65_536
"""More are no table over time: one line of a file of 40 MB would be millions of names and take minutes."""


@dataclass(frozen=True, eq=False)
class Series:
    """Several quantities over time.

    Args:
        values: float64 `(T, columns)`, a row per time step.
        columns: Their names.

    Example:
        >>> Series(torch.zeros(5, 2, dtype=torch.float64), ("load", "price")).values.shape
        torch.Size([5, 2])
    """

    values: Tensor
    columns: tuple[str, ...]


def read_series(path: str | Path, columns: Sequence[str] = ()) -> Series:
    r"""Reads a CSV file: a row per time step, a column per feature.

    Args:
        path: The file, UTF-8, packed with gzip or xz or not. The first line may name the columns; without names they
            are called "0", "1" and so on. Values are separated by commas, semicolons or tabs.
        columns: Names of the columns to read; all by default.

    Returns:
        The values and the names of the columns.

    Raises:
        ValueError: If there is no such file or column.
        DataError: If a value is missing or not a finite number; the message names its line and column. If two of the
            columns have one name, or there are more than 65,536.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "load.csv"
        ...     _ = path.write_text("day,load\n2026-01-01,3.5\n2026-01-02,4.0\n")
        ...     read_series(path, ["load"]).values.tolist()
        [[3.5], [4.0]]
    """
    lines = read_text(path).removeprefix("\ufeff").splitlines()
    if not any(lines):
        raise DataError(f"{path} is empty")
    rows = _rows(lines, path)
    names = [str(number) for number in range(len(rows[0]))]
    first = 0
    if not _is_numeric(rows[0]):
        names = [name.strip() for name in rows[0]]
        first = 1
    for name in columns:
        _validate.one_of("columns", name, names)
    counts = Counter(names)
    for name in columns or names:
        if counts[name] > 1:  # whoever asks for it would get one of them twice
            raise DataError(f"{path} has {counts[name]} columns named {name!r:.60}; give each a name of its own")
    places = {name: place for place, name in enumerate(names)}
    chosen = [places[name] for name in columns or names]
    found = [_numbers(rows[at], at + 1, names, chosen, path) for at in range(first, len(rows)) if rows[at]]
    values = torch.from_numpy(np.array(found, dtype=np.float64).reshape(len(found), len(chosen)))
    return Series(values, tuple(names[place] for place in chosen))


def _rows(lines: Sequence[str], path: str | Path) -> list[list[str]]:
    """The cells of each line; of a line that is too long not one is looked at."""
    separator = _delimiter(lines[0])
    for number, line in enumerate(lines, 1):
        count = line.count(separator) + 1
        if count > MOST_COLUMNS:
            raise DataError(f"{path}, line {number}: expected at most {MOST_COLUMNS:,} values; got {count:,}")
    try:
        return list(csv.reader(lines, delimiter=separator))
    except csv.Error as error:  # a field of more than 131,072 characters
        raise DataError(f"{path} is not a table of numbers: {error}") from error


def _delimiter(line: str) -> str:
    """The separator that stands most often in the first line; a comma if none does."""
    return max(",;\t", key=line.count)


def _is_numeric(cells: Sequence[str]) -> bool:
    """Whether a first line is data already: a heading has no number at all, a row of data at least one."""
    return any(_number(cell) is not None for cell in cells)


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return value


def _numbers(row: list[str], line: int, names: Sequence[str], chosen: Sequence[int], path: str | Path) -> list[float]:
    if len(row) != len(names):
        raise DataError(f"{path}, line {line}: expected {len(names)} values; got {len(row)}")
    return [_checked(row[place], names[place], line, path) for place in chosen]


def _checked(cell: str, name: str, line: int, path: str | Path) -> float:
    value = _number(cell)
    if value is None:
        way_out = "Fill it in, or name the columns to use (--set 'task.options.columns=[\"a\"]')"
        raise DataError(f"{path}, line {line}: column {name!r} must hold finite numbers; got {cell!r:.60}. {way_out}")
    return value
