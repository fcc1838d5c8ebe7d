"""``python -m tests.torture --seconds 300 --seed 0``: faults done to real commands, and what came of them."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tests.torture.children import Forked
from tests.torture.cluster import Cluster, has_ray
from tests.torture.damage import FEW_SAMPLES, Damage
from tests.torture.kills import Kills
from tests.torture.pages import BROWSERS, Pages, find_browser
from tests.torture.server import prepare
from tests.torture.sharing import Sharing
from tests.torture.storage import Storage
from tests.torture.subjects import COMMANDS, References
from tests.torture.table import FaultTable, merged

from remanence.runs import read_result, write_result

SHARES = {"kills": 0.4, "damage": 0.35, "storage": 0.1, "sharing": 0.05, "pages": 0.05, "ray": 0.05}
"""Of the time, if the campaign is given a time."""
IN_MEMORY = Path("/dev/shm")
"""Where folders lie if the system has it: a sync takes no time there. Power cuts are done by hand, not by a disk."""
TELL_EVERY = 30.0
"""Seconds between two lines of progress."""


def main() -> None:
    """Runs the campaign; exit code 1 if anything was lost or wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, help="so many kills, however long they take")
    parser.add_argument("--damaged", type=int, help="so many commands on damaged folders, however long they take")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--without", action="append", default=[], choices=list(SHARES), help="a part to leave out")
    parser.add_argument("--output", type=Path, help="also write the table as JSON, and beside it as Markdown")
    given = parser.parse_args()
    found = campaign(given.seconds, given.seed, sizes_of(given.kills, given.damaged), given.jobs, given.without)
    print(found.markdown())
    if given.output is not None:
        write_result(given.output, found)
        given.output.with_suffix(".md").write_text(found.markdown(), encoding="utf-8")
    sys.exit(0 if found.sound else 1)


def sizes_of(kills: int | None, damaged: int | None) -> dict[str, int]:
    """How many faults of each part, if one of the two is given; the others in proportion.

    Example:
        >>> sizes_of(1000, None)
        {'kills': 1000, 'damage': 5000, 'storage': 100, 'sharing': 50, 'pages': 50, 'ray': 2}
    """
    if kills is None and damaged is None:
        return {}
    kills = damaged // 5 if kills is None and damaged is not None else kills or 0
    damaged = 5 * kills if damaged is None else damaged
    rest = {"storage": kills // 10, "sharing": kills // 20, "pages": kills // 20, "ray": kills // 500}
    return {"kills": kills, "damage": damaged, **rest}


def campaign(seconds: float, seed: int, sizes: dict[str, int], jobs: int, without: Sequence[str] = ()) -> FaultTable:
    """Tries faults of all kinds, for so long or so many times.

    Args:
        seconds: how long, unless sizes are given.
        seed: of all draws.
        sizes: how many faults of each part; empty if time decides.
        jobs: processes that work side by side, each on its share of the sizes.
        without: names of parts to leave out.
    """
    begun = time.monotonic()
    for missing in left_out(without):
        print(missing, file=sys.stderr, flush=True)
    place = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as name:
        scratch = Path(name)
        os.environ["REMANENCE_TRUST"] = str(scratch / "trusted")
        prepare(every_command(scratch / "warm"))
        places = [scratch / str(number) for number in range(jobs)]
        working = []
        for number, place in enumerate(places):
            part = partial(work, number, place, seed + number / jobs, seconds, shared(sizes, number, jobs), without)
            working.append(Forked(part, stdout=sys.stdout, stderr=sys.stderr))
        signal.signal(signal.SIGTERM, lambda number, frame: [process.terminate() for process in working])
        failed = [process.returncode for process in working if process.wait()]
        if failed:
            raise RuntimeError(f"parts of the campaign ended with {failed}")
        tables = [read_result(place / "table.json") for place in places]
    return merged(seed, time.monotonic() - begun, [table for table in tables if isinstance(table, FaultTable)])


def left_out(without: Sequence[str]) -> list[str]:
    """What is not tried, because of the options or the machine, in words."""
    words = [f"left out: {name}" for name in without]
    if find_browser() is None:
        words.append(f"no page is opened: none of {', '.join(BROWSERS)} is installed")
    if not has_ray():
        words.append("the Ray engine is left out: Ray is not installed (pip install 'remanence[cluster]')")
    return words


def shared(sizes: dict[str, int], number: int, jobs: int) -> dict[str, int]:
    """The share of one of several processes.

    Example:
        >>> shared({"kills": 5}, 0, 2), shared({"kills": 5}, 1, 2)
        ({'kills': 3}, {'kills': 2})
    """
    share = {name: (size + jobs - 1 - number) // jobs for name, size in sizes.items()}
    return share | ({"ray": sizes["ray"]} if "ray" in sizes else {})


def work(
    number: int, scratch: Path, seed: float, seconds: float, sizes: dict[str, int], without: Sequence[str]
) -> None:
    """One of the processes side by side; its table goes into a file."""
    scratch.mkdir()
    draws = random.Random(seed)
    table = FaultTable(int(seed))
    references = References(scratch)
    parts: dict[str, Callable[[], None]] = {}
    for part, make in (("kills", Kills), ("damage", Damage), ("storage", Storage), ("sharing", Sharing)):
        parts[part] = make(references, table, draws).attempt
    if find_browser() is not None:
        parts["pages"] = Pages(references, table, draws).attempt
    cluster = Cluster(references, table, draws)
    if has_ray() and number == 0:  # one cluster is enough for a machine
        parts["ray"] = cluster.attempt
    for name in without:
        parts.pop(name, None)
    try:
        Schedule(parts, sizes, seconds, table).carry_out()
    finally:
        cluster.close()
    write_result(scratch / "table.json", table)


def every_command(folder: Path) -> list[list[object]]:
    """Commands that need, between them, every module that the campaign needs."""
    made: list[list[object]] = [[*COMMANDS[name], folder / name] for name in COMMANDS]
    asked: list[list[object]] = [[word, folder / "train"] for word in ("evaluate", "resume", "probe")]
    asked += [["evaluate", folder / "rl train"], ["resume", folder / "rl train"], ["rl", "play", folder / "rl train"]]
    asked += [["generate", folder / "train text"], ["mi", folder / "train text", *FEW_SAMPLES]]
    return [*made, *asked, ["runs", folder], ["report", folder, "-o", folder / "page.html"]]


class Schedule:
    """Takes turns between the parts of a campaign.

    Args:
        parts: by name, what does the next fault.
        sizes: how many faults of each part there shall be; without any, time decides.
        seconds: of all parts together.
        table: that the parts write to.
    """

    def __init__(
        self, parts: dict[str, Callable[[], None]], sizes: dict[str, int], seconds: float, table: FaultTable
    ) -> None:
        self.parts = parts
        self.seconds = seconds
        self.table = table
        self.sizes = sizes
        self.spent = dict.fromkeys(parts, 0.0)
        self.tried = dict.fromkeys(parts, 0)
        self.told = time.monotonic()
        self.findings = 0
        self.stopped = False
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        """SIGTERM ends the campaign after the fault at hand; the table tells what there was."""
        self.stopped = True

    def carry_out(self) -> None:
        """Until every part has had its share."""
        while (name := min(self.parts, key=self._progress)) and self._progress(name) < 1 and not self.stopped:
            since, before = time.monotonic(), self.table.tried
            self.parts[name]()
            self.spent[name] += time.monotonic() - since
            self.tried[name] += self.table.tried - before
            self._tell()

    def _progress(self, name: str) -> float:
        """The share that is done, of a number or of a time."""
        if self.sizes:
            return self.tried[name] / max(self.sizes[name], 1)
        return self.spent[name] / (self.seconds * SHARES[name])

    def _tell(self) -> None:
        """What went wrong, at once; how far it is, now and then."""
        for finding in self.table.findings[self.findings :]:
            print(finding, file=sys.stderr, flush=True)
        self.findings = len(self.table.findings)
        if time.monotonic() - self.told > TELL_EVERY:
            self.told = time.monotonic()
            done = ", ".join(f"{name} {count:,}" for name, count in self.tried.items())
            print(f"{done}; lost or wrong: {self.findings}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
