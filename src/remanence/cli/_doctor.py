"""``remanence doctor``: what this installation runs on. It reports and never fails, whatever it finds."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections import Counter
from pathlib import Path

import numpy
import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

import remanence
from remanence import data, ops
from remanence.runs import Values, tag

# The sets that decide how fast a CPU kernel can be; a processor lists some hundred others.
INSTRUCTION_SETS = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni",
                    "avx512_bf16", "amx_tile", "amx_bf16", "asimd", "sve", "bf16")  # fmt: skip


def collect_report() -> Values:
    """Collects what `remanence doctor` shows, for JSON, one entry per subject.

    Example:
        >>> collect_report()["versions"]["remanence"]
        '0.1.0'
    """
    return {
        "versions": {
            "remanence": remanence.__version__,
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "numpy": numpy.__version__,
        },
        "backend": dict(ops.backend_report()),
        "machine": {
            "platform": platform.platform(),
            "python": sys.executable,
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "instruction_sets": instruction_sets(),
            "torch_cpu_capability": torch.backends.cpu.get_cpu_capability(),
        },
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith("REMANENCE_")},
        "data": data_sets(),
    }


def instruction_sets(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Lists the instruction sets that matter to a kernel, as the kernel of the system names them."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return [platform.machine()]
    flags = next(
        (line.partition(":")[2].split() for line in lines if line.lower().startswith(("flags", "features"))), []
    )
    return [name for name in INSTRUCTION_SETS if name in flags] or [platform.machine()]


def data_sets() -> dict[str, list[str]]:
    """Tells where data files are looked for, and how many of each set are there."""
    known = Counter(name.partition("/")[0] for name in data.names())
    present = Counter(name.partition("/")[0] for name in data.names() if data.is_available(name))
    return {
        "directories": [str(place) for place in data.data_directories()],
        "files_present": [f"{name} {present[name]}/{count}" for name, count in known.items()],
    }


def show_report(as_json: bool) -> None:
    """Prints the report, as tables or as JSON.

    Example:
        >>> show_report(as_json=True)
        {
          "kind": "doctor",
          ...
    """
    report = collect_report()
    if as_json:
        print(json.dumps({**tag("doctor"), **report}, indent=2))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")  # a long path is broken, never cut
    for subject, entries in report.items():
        table.add_row(f"[bold]{subject}[/bold]")
        for name, value in entries.items():
            table.add_row(f"  {name}", Text(_shown(value)))
    Console().print(table)


def _shown(value: object) -> str:
    if value is None or value in ("", []):
        return "-"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
