"""The conformance table of the docs: every layer against every check; run it to write the table again.

Names of layers as arguments run these alone and leave the other columns as they are.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Collection
from pathlib import Path

import torch
from rich.progress import track

from remanence import ops
from remanence.testing import check_names, check_recurrent_layer

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "docs" / "_generated" / "conformance.md"
COLUMNS = 5  # more do not fit a page
LEGEND = "✓ passes, ✗ fails, – does not apply."


def _layers_under_test():
    spec = importlib.util.spec_from_file_location("test_conformance", HERE / "test_conformance.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _verdict(check) -> str:
    try:
        check()
    except Exception as error:  # whatever breaks a check is a failed check
        print(f"{check.name}: {type(error).__name__}: {error}")
        return "✗"
    return "✓"


def _table(rows: dict[str, dict[str, str]], names: list[str]) -> list[str]:
    head = ["| check | " + " | ".join(rows) + " |", "|---|" + ":-:|" * len(rows)]
    return [
        *head,
        *(f"| {name} | " + " | ".join(row.get(name, "–") for row in rows.values()) + " |" for name in names),
        "",
    ]


def _stored() -> dict[str, dict[str, str]]:
    """The verdicts that the table holds, by layer and check."""
    rows: dict[str, dict[str, str]] = {}
    layers: list[str] = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        name, *entries = [cell.strip() for cell in line.strip("|").split("|")]
        if name == "check":
            layers = entries
        elif line.startswith("| "):
            for layer, verdict in zip(layers, entries, strict=True):
                rows.setdefault(layer, {})[name] = verdict
    return rows


def write_table(only: Collection[str] = ()) -> int:
    """Runs every check on these layers, or on all, and writes the table; returns the number of failures."""
    suite = _layers_under_test()
    names = check_names()
    rows = _stored() if only else {}
    for layer in track(only or suite.LAYERS, "checking"):
        factory = suite.LAYERS[layer]
        checks = check_recurrent_layer(factory, grows=layer in suite.GROWS, without=suite.WITHOUT.get(layer, ()))
        rows[layer] = {check.name: _verdict(check) for check in checks}
    rows = {layer: rows[layer] for layer in suite.LAYERS if layer in rows}
    path = ops.backend_report()["active"]
    lines = [f"Made with torch {torch.__version__} on the {path} path, unless a name says otherwise. {LEGEND}", ""]
    layers = list(rows)
    for first in range(0, len(layers), COLUMNS):
        lines += _table({layer: rows[layer] for layer in layers[first : first + COLUMNS]}, names)
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return sum(verdict == "✗" for row in rows.values() for verdict in row.values())


if __name__ == "__main__":
    torch.set_num_threads(1)
    raise SystemExit(write_table(sys.argv[1:]))
