"""Counting pairs of symbols beside ``numpy.bincount``, in one run: ``python -m benchmarks.information``.

With ``--file FILE`` a whole curve instead: 60 lags up to 10,000 with floor and intervals, as bytes and as characters,
and without intervals as words; with seconds and the most memory in use. Without a name it takes text8's first 74 MB.

Both count the same pairs into the same table; rates are pairs a second, and the ratio is what counts. On a busy machine
the work of the cores tells more than the clock. Set ``OMP_NUM_THREADS`` to the cores to use.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from remanence import data, ops, probes

LENGTH, LAGS, REPEATS = 10_000_000, 8, 5


def bincount(symbols: np.ndarray, lags: np.ndarray, alphabet: int) -> np.ndarray:
    """The usual way: one number for each pair, then a histogram."""
    tables = []
    for lag in lags:
        codes = symbols[:-lag].astype(np.int64) * alphabet + symbols[lag:]
        tables.append(np.bincount(codes, minlength=alphabet**2))
    return np.stack(tables).reshape(len(lags), alphabet, alphabet)


def seconds(run: Callable[[], object]) -> tuple[float, float]:
    """Least time by the clock and least work of all cores: whatever else runs on the machine only ever adds."""
    clock, work = [], []
    for _ in range(REPEATS):
        start = time.perf_counter(), time.process_time()
        run()
        clock.append(time.perf_counter() - start[0])
        work.append(time.process_time() - start[1])
    return min(clock), min(work)


def skewed(alphabet: int) -> np.ndarray:
    """Symbols about as uneven as letters."""
    chances = 1 / np.arange(1, alphabet + 1)
    return np.random.default_rng(0).choice(alphabet, LENGTH, p=chances / chances.sum()).astype(np.uint8)


def curve(path: Path, kind: Literal["bytes", "characters", "words"]) -> None:
    """Reads and measures a file in a process of its own, whose memory is counted."""
    start = time.perf_counter()
    symbols = probes.read_symbols(path, kind)
    read = time.perf_counter() - start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sizes = {"resamples": 0, "draws": 2} if kind == "words" else {}  # both are slow for so many different pairs
        found = probes.mutual_information(symbols, probes.logarithmic_lags(10_000, 60), **sizes)
    whole = time.perf_counter() - start
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    shape = f"{len(symbols.values):,} {kind}, {found.alphabet:,} different, {len(found.lags)} lags"
    print(f"{shape}: {whole:.1f} s (reading {read:.1f} s), {most:,.0f} MB at most, {torch.get_num_threads()} threads")


def curves(name: str | None) -> None:
    """A curve for each kind of symbol, each in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(name) if name else Path(folder) / "text8"
        if name is None:
            path.write_bytes(data.load_bytes("text8/text8.first74081952.txt"))
        for kind in ("bytes", "characters", "words"):
            subprocess.run([sys.executable, "-m", "benchmarks.information", "--curve", str(path), kind], check=True)


def main() -> None:
    """Prints what was asked for."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    match sys.argv[1:]:
        case []:
            counting()
        case ["--file"]:
            curves(None)
        case ["--file", name]:
            curves(name)
        case ["--curve", name, ("bytes" | "characters" | "words") as kind]:
            curve(Path(name), kind)
        case _:
            sys.exit("usage: python -m benchmarks.information [--file [FILE]]")


def counting() -> None:
    """Prints the table."""
    lags = probes.logarithmic_lags(10_000, LAGS)
    table = Table("alphabet", "numpy.bincount", "count_pairs", "ratio", "by work of the cores", "ratio")
    for alphabet in (2, 4, 27, 64, 128, 256):
        symbols = skewed(alphabet)
        tensor, pairs = torch.from_numpy(symbols), sum(LENGTH - int(lag) for lag in lags)
        counts = ops.count_pairs(tensor, lags.tolist(), alphabet)[:, 0].numpy()
        if not (counts == bincount(symbols, lags, alphabet)).all():
            raise SystemExit("the counts differ: no speed is worth that")
        usual = seconds(lambda s=symbols, a=alphabet: bincount(s, lags, a))
        kernel = seconds(lambda t=tensor, a=alphabet: ops.count_pairs(t, lags.tolist(), a))
        rates = [f"{pairs / usual[0]:.2e}", f"{pairs / kernel[0]:.2e}", f"{usual[0] / kernel[0]:.1f}"]
        table.add_row(str(alphabet), *rates, f"{pairs / kernel[1]:.2e}", f"{usual[1] / kernel[1]:.1f}")
    console = Console()
    console.print(
        f"{LENGTH:,} symbols, {len(lags)} lags, {torch.get_num_threads()} threads, best of {REPEATS}, "
        f"path: {ops.backend_report()['active']}"
    )
    console.print(table)


if __name__ == "__main__":
    main()
