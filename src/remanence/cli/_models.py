"""``remanence models``: the layers of `remanence.nn` and where each comes from."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from remanence import nn

COLUMNS = ("name", "cell", "memory", "document", "summary")


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
    table = Table(*COLUMNS)
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console().print(table)
