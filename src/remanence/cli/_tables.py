"""Tables on a terminal, JSON for machines, and lists of numbers."""

from __future__ import annotations

import json

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from remanence._validate import message
from remanence._wording import printable
from remanence.runs import Values, plain

KIND = "kind"
VERSION = "version"


def numbers(name: str, text: str | None) -> list[int]:
    """Reads whole numbers separated by commas.

    Example:
        >>> numbers("length", "100,200"), numbers("length", None)
        ([100, 200], [])
    """
    if text is None:
        return []
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise ValueError(message(name, "be whole numbers separated by commas", repr(text))) from error


def json_text(values: object) -> str:
    r"""Values as JSON that any reader takes: NaN is null, the infinities are words.

    Example:
        >>> json_text([float("nan"), float("-inf")])
        '[\n  null,\n  "-inf"\n]'
    """
    return json.dumps(plain(values), indent=2, allow_nan=False)


def show_rows(rows: list[Values], as_json: bool) -> None:
    """Prints rows of equal keys, as a table or as JSON.

    Example:
        >>> show_rows([{"length": 5, "loss": 0.5}], as_json=True)
        [
          {
            "length": 5,
            "loss": 0.5
          }
        ]
    """
    if as_json:
        typer.echo(json_text(rows))
        return
    table = plain_table()
    columns = [name for row in rows[:1] for name in row if name not in (KIND, VERSION)]
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(value)) for name, value in row.items() if name in columns))  # no markup in paths
    Console().print(table)


def plain_table(*columns: str | Column) -> Table:
    """A table without lines, its columns two spaces apart."""
    return Table(*columns, box=None, padding=(0, 2, 0, 0), pad_edge=False)


def shown(value: object) -> str:
    """A value of a table; numbers with four digits, texts without what a terminal would obey.

    Example:
        >>> shown(0.123456), shown(None), shown(7)
        ('0.1235', '-', '7')
    """
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return printable(str(value))
