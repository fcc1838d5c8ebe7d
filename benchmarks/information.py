"""Pairs of symbols counted beside ``numpy.bincount``, and curves of a large file: ``python -m benchmarks.information``.

First pairs a second on one thread and on two, and the ratio to ``numpy.bincount``, which has one, in the same run. Then
text8's first 74 MB at 60 lags up to 10,000 with floor and intervals: as bytes, characters and words, each in a process
of its own on two threads, with its most memory. ``--file FILE`` takes another file, ``--quick`` only counts. Two
minutes on an idle machine; on a busy one the work of the cores, which is given too, tells more than the clock.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from benchmarks.measure import peak_bytes, tell
from rich.console import Console
from rich.table import Table

from remanence import data, ops, probes

LENGTH = 10_000_000
LAGS = 8
REPEATS = 3
THREADS = (1, 2)


def bincount(symbols: np.ndarray, lags: np.ndarray, alphabet: int) -> np.ndarray:
    """The usual way: one number for each pair, then a histogram."""
    tables = []
    for lag in lags:
        codes = symbols[:-lag].astype(np.int64) * alphabet + symbols[lag:]
        tables.append(np.bincount(codes, minlength=alphabet**2))
    return np.stack(tables).reshape(len(lags), alphabet, alphabet)


def seconds(run: Callable[[], object]) -> tuple[float, float]:
    """Least time by the clock and least work of all cores: whatever else runs on the machine only ever adds."""
    clock = []
    work = []
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
    """Reads and measures a file, in a process that has done nothing else."""
    texts = []

    def measure() -> None:
        start = time.perf_counter(), time.process_time()
        symbols = probes.read_symbols(path, kind)
        read = time.perf_counter() - start[0]
        draws = 2 if kind == "words" else 20  # of so many pairs two shuffles tell enough
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = probes.mutual_information(symbols, probes.logarithmic_lags(10_000, 60), draws=draws)
        whole = time.perf_counter() - start[0]
        work = time.process_time() - start[1]
        texts.append(f"{len(symbols.values):,} {kind}, {found.alphabet:,} different, {len(found.lags)} lags: ")
        texts.append(f"{whole:.1f} s (reading {read:.1f} s; {work:.1f} s of the cores), ")

    texts.append(f"{peak_bytes(measure) / 2**20:,.0f} MB at most, with mapped pages that the system may take back")
    print("".join(texts), flush=True)


def curves(name: str | None) -> None:
    """A curve for each kind of symbol, each in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(name) if name else Path(folder) / "text8"
        if name is None:
            try:
                path.write_bytes(data.load_bytes("text8/text8.first74081952.txt"))
            except data.DataError as error:
                print(f"no curves of text8: {error}")
                return
        for kind in ("bytes", "characters", "words"):
            tell(f"a curve by {kind}")
            subprocess.run([sys.executable, "-m", "benchmarks.information", "--curve", str(path), kind], check=True)


def main() -> None:
    """Prints what was asked for."""
    match sys.argv[1:]:
        case []:
            counting((2, 4, 27, 64, 128, 256))
            curves(None)
        case ["--quick"]:
            counting((2, 27, 256))
        case ["--file", name]:
            curves(name)
        case ["--curve", name, ("bytes" | "characters" | "words") as kind]:
            torch.set_num_threads(THREADS[-1])
            curve(Path(name), kind)
        case _:
            sys.exit("usage: python -m benchmarks.information [--quick | --file FILE]")


def counting(alphabets: Sequence[int]) -> None:
    """Prints the table."""
    lags = probes.logarithmic_lags(10_000, LAGS)
    head = [title for threads in THREADS for title in (f"{threads} threads", "ratio", "by work")]
    table = Table("alphabet", "numpy.bincount", *head)
    for alphabet in alphabets:
        tell(f"pairs of {alphabet} symbols")
        table.add_row(str(alphabet), *rates(alphabet, lags))
    console = Console(width=120)
    path = ops.backend_report()["active"]
    console.print(f"pairs a second: {LENGTH:,} symbols, {len(lags)} lags, best of {REPEATS}, path: {path}")
    console.print(table)


def rates(alphabet: int, lags: np.ndarray) -> list[str]:
    """Pairs a second: numpy's, then the kernel's on each number of threads, their ratio, and that by work of cores."""
    symbols = skewed(alphabet)
    tensor = torch.from_numpy(symbols)
    pairs = sum(LENGTH - int(lag) for lag in lags)
    if not (ops.count_pairs(tensor, lags.tolist(), alphabet)[:, 0].numpy() == bincount(symbols, lags, alphabet)).all():
        raise SystemExit("the counts differ: no speed is worth that")
    usual = seconds(lambda: bincount(symbols, lags, alphabet))
    shown = [f"{pairs / usual[0]:.2e}"]
    for threads in THREADS:
        torch.set_num_threads(threads)
        kernel = seconds(lambda: ops.count_pairs(tensor, lags.tolist(), alphabet))
        shown += [f"{pairs / kernel[0]:.2e}", f"{usual[0] / kernel[0]:.1f}", f"{usual[1] / kernel[1]:.1f}"]
    return shown


if __name__ == "__main__":
    main()
