"""``python -m tests.torture --seconds 300 --seed 0``: faults done to real commands, and what came of them."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import torch
from tests.torture.children import fork_workers
from tests.torture.damage import Damage
from tests.torture.kills import COMMANDS, Kills
from tests.torture.sharing import share
from tests.torture.table import FaultTable

from remanence.runs import write_result

COMMANDS_OF = ("_app", "_train", "_evaluate", "_resume", "_report", "_compare", "_listing", "probe", "_rl", "_policies")
HEAVY = [f"remanence.cli.{name}" for name in (*COMMANDS_OF, "_reproduce")]
HEAVY += [
    f"remanence.{name}" for name in ("rl", "rl._tmaze", "report", "probes", "train._worker", "experiments._worker")
]
HEAVY += ["torch._dynamo", "torch.utils.tensorboard", "tensorboard.compat.proto.event_pb2", "plotly.graph_objects"]
HEAVY += ["plotly.io", "gymnasium", "pydantic", "sympy"]


def main() -> None:
    """Runs the campaign; exit code 1 if anything was lost or wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="also write the table as JSON, and beside it as Markdown")
    given = parser.parse_args()
    found = campaign(given.seconds, given.seed)
    print(found.markdown())
    for finding in found.findings:
        print(f"{finding.outcome}: {finding.fault}: {finding.command}: {finding.seen}\n")
    if given.output is not None:
        write_result(given.output, found)
        given.output.with_suffix(".md").write_text(found.markdown(), encoding="utf-8")
    sys.exit(0 if found.sound else 1)


def campaign(seconds: float, seed: int) -> FaultTable:
    """Tries faults for so long: half of the time kills, the rest damage and sharing."""
    draws = random.Random(seed)
    table = FaultTable(seed, seconds)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        scratch = Path(name)
        os.environ["REMANENCE_TRUST"] = str(scratch / "trusted")
        prepare()
        kills = Kills(scratch, table, draws)
        damage = Damage(scratch, table, draws)
        spent = {"kills": 0.0, "damage": 0.0, "sharing": 0.0}
        shares = {"kills": 0.5, "damage": 0.45, "sharing": 0.05}
        begun = time.monotonic()
        turns = 0
        while time.monotonic() - begun < seconds:
            what = min(spent, key=lambda name: spent[name] / shares[name])
            since = time.monotonic()
            if what == "kills":
                kills.attempt(list(COMMANDS)[turns % len(COMMANDS)])
                turns += 1
            elif what == "damage":
                damage.attempt()
            else:
                share(kills, scratch, table, draws)
            spent[what] += time.monotonic() - since
    return table


def prepare() -> None:
    """Imports what the commands need, once, and starts no thread: those do not survive a fork."""
    torch.set_num_threads(1)
    for name in HEAVY:
        with contextlib.suppress(ModuleNotFoundError):  # TensorBoard is an extra
            importlib.import_module(name)
    fork_workers()


if __name__ == "__main__":
    main()
