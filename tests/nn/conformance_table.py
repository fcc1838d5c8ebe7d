"""The conformance table of the docs: every layer against every check; run it to write the table again."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
from rich.progress import track

from remanence import ops
from remanence.testing import check_names, check_recurrent_layer

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "docs" / "_generated" / "conformance.md"
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


def write_table() -> int:
    """Runs every check on every layer and writes the table; returns the number of failures."""
    suite, names = _layers_under_test(), check_names()
    rows = {}
    for layer, factory in track(suite.LAYERS.items(), "checking", total=len(suite.LAYERS)):
        checks = check_recurrent_layer(factory, grows=layer in suite.GROWS, without=suite.WITHOUT.get(layer, ()))
        rows[layer] = {check.name: _verdict(check) for check in checks}
    layers = list(rows)
    path = ops.backend_report()["active"]
    lines = [f"Made with torch {torch.__version__} on the {path} path. {LEGEND}", ""]
    lines += ["| check | " + " | ".join(layers) + " |", "|---|" + ":-:|" * len(layers)]
    lines += [f"| {name} | " + " | ".join(rows[layer].get(name, "–") for layer in layers) + " |" for name in names]
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return sum(verdict == "✗" for row in rows.values() for verdict in row.values())


if __name__ == "__main__":
    torch.set_num_threads(1)
    raise SystemExit(write_table())
