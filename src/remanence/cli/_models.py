"""``remanence models``: the layers of `remanence.nn` and where each comes from."""

from __future__ import annotations

import json
import re

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from remanence import nn
from remanence._documents import DOCUMENTS

COLUMNS = ("name", "cell", "memory", "document", "summary")
HEADINGS = {"document": "paper"}


def show_models(as_json: bool) -> None:
    """Prints one row per model, as a table or as JSON.

    Example:
        >>> show_models(as_json=True)
        [
          {
            "name": ...
    """
    rows = [{column: getattr(model, column) for column in COLUMNS} for model in nn.list_models()]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(
        *(HEADINGS.get(name, name) for name in COLUMNS), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    for row in rows:
        table.add_row(*(Text(_plain(value)) for value in row.values()))
    console = Console()
    console.print(table)
    for key, reference in DOCUMENTS.items():
        console.print(f"{key:<10}  {reference}", style="dim", highlight=False)


def _plain(text: str) -> str:
    """Takes the marks for code and emphasis out of a line of documentation."""
    return re.sub(r"``|\*\*", "", text)
