"""Times, memory and fits, as the other benchmarks use them."""

from __future__ import annotations

import ctypes
import gc
import math
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

import torch

Run = Callable[[], object]
Result = TypeVar("Result")
STARTED = time.perf_counter()


def tell(doing: str) -> None:
    """Says on standard error what is measured now, and after how many seconds: a benchmark is never silent for long."""
    print(f"{time.perf_counter() - STARTED:6.0f} s  {doing}", file=sys.stderr, flush=True)


def clock() -> float:
    """Process time with one thread, which other jobs on the machine disturb less; wall time with more."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def timed(run: Run) -> float:
    start = clock()
    run()
    return clock() - start


def medians(runs: dict[str, Run], repeats: int, warm: bool = True) -> dict[str, float]:
    """Seconds of each candidate: the runs alternate, after one that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values() if warm else ():
        run()
    for _ in range(repeats):
        for name, run in runs.items():
            times[name].append(timed(run))
    return {name: statistics.median(values) for name, values in times.items()}


def apart(function: Callable[..., Result], *arguments: object) -> Result:
    """What a function returns in a process of its own, where freed memory of torch's goes back to the system at once.

    By itself malloc keeps large blocks as soon as it has seen some; then the peak of a run depends on those before it.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=_settle_malloc) as pool:
        return pool.submit(function, *arguments).result()


def _settle_malloc() -> None:
    mmap_threshold = -3  # M_MMAP_THRESHOLD
    bytes_from = 128 * 1024  # its first value, from now on for good
    ctypes.CDLL("libc.so.6").mallopt(mmap_threshold, bytes_from)
    torch.manual_seed(0)
    torch.set_num_threads(1)


def peak_bytes(run: Run) -> int:
    """Growth of the resident set during one run, from the kernel's high-water mark (Linux)."""
    gc.collect()
    torch.ops.remanence.release_memory()  # what the fused scan keeps for its next call would hide the growth,
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # and so would freed memory that the process still holds
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    run()
    return max(0, _status("VmHWM") - before)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def machine() -> dict[str, object]:
    """What the figures of a run belong to: the processor's name and its cores."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {"processor": names[0] if names else platform.machine(), "cores": os.cpu_count()}


def geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def exponent(sizes: list[int], values: list[float]) -> float:
    """Slope of log(value) over log(size), least squares: 1 for something that grows in proportion."""
    return statistics.linear_regression(list(map(math.log, sizes)), list(map(math.log, values))).slope
