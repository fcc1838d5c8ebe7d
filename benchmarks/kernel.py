"""Speed and memory of the fused scan beside torch.nn, the reference and loops in Python, in one run.

``python -m benchmarks.kernel`` prints the tables and writes ``benchmarks/kernel.json``. Times are medians of runs that
alternate between the candidates, as process time with one thread (other jobs on the machine then disturb less) and as
wall time with two; each number of threads has a process of its own. Ratios are what counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from benchmarks.measure import Run, apart, exponent, geometric_mean, machine, medians, peak_bytes, tell
from benchmarks.scans import INPUT, RECENT, RELEVANT, draw_weights, fast_runs, slow_runs
from rich.console import Console
from rich.table import Table
from torch.nn.utils.rnn import pack_padded_sequence

from remanence import nn, ops
from remanence.ops import Full, ScanSpec, Screened, Strided, fused

GRID = [(n, batch, steps) for steps in (120, 520, 2020) for n in (64, 128, 256) for batch in (10, 64)]
QUICK = [(64, 10, 120), (128, 64, 120)]
SLOW_REPEATS = {120: 5, 520: 2, 2020: 1}  # by T
GATES = {"lstm": 4, "rnn": 1}
LENGTHS = {True: [500, 2000, 8000], False: [500, 2000, 8000, 32000]}  # of the fits; quick or not
RESULT = Path(__file__).with_suffix(".json")
Row = dict[str, float]


def measure_grid(cell: str, grid: list[tuple[int, int, int]], repeats: int) -> list[Row]:
    """Milliseconds of all candidates; the slow ones run five times at T = 120, twice at 520 and once at 2020."""
    rows = []
    for n, batch, steps in grid:
        tell(f"{cell}, {torch.get_num_threads()} thread(s): n={n} batch={batch} T={steps}")
        times = medians(fast_runs(cell, n, batch, steps) | PEAKS, repeats if steps < 2000 else 3)
        times |= medians(slow_runs(cell, n, batch, steps), SLOW_REPEATS[steps], warm=steps == 120)
        speeds = {"gflops": product_work(cell, n) * batch * steps / times["rel"] / 1e9}
        speeds["peak"] = max(PEAK_WORK[name] / times.pop(name) for name in PEAKS) / 1e9
        rows.append({"n": n, "batch": batch, "T": steps, **speeds, **{k: 1e3 * t for k, t in times.items()}})
    return rows


def product_work(cell: str, n: int) -> int:
    """Operations of a Rel layer in matrix products per step and row: gates, queries, keys, and twice that backward."""
    return 3 * 2 * n * (GATES[cell] * (INPUT + n) + 2 * n)


SQUARE = torch.randn(2048, 2048)
ROWS = torch.randn(256, 256)
WEIGHTS = torch.randn(1280, 256)
TIMES = 20
PEAKS: dict[str, Run] = {  # the fastest products at hand, in turn with the candidates: the clock of a core varies
    "MKL": lambda: SQUARE @ SQUARE,
    "packed": lambda: [torch.ops.remanence.packed_product(ROWS, WEIGHTS) for _ in range(TIMES)],
}
PEAK_WORK = {"MKL": 2 * 2048**3, "packed": TIMES * 2 * 256 * 256 * 1280}


def measure_memory(n: int, batch: int, steps: int) -> Row:
    """Peak MB of one training step of each candidate."""
    tell(f"memory: n={n} batch={batch} T={steps}")
    runs = fast_runs("lstm", n, batch, steps)
    runs["naive"] = slow_runs("lstm", n, batch, steps)["naive"]
    for run in runs.values():
        run()
    peaks = {name: peak_bytes(run) / 2**20 for name, run in runs.items()}
    ratios = {f"{name}/nn": peaks[name] / peaks["nn"] for name in ("rel", "lean")}
    return {**peaks, **ratios, "naive/rel": peaks["naive"] / peaks["rel"], "naive/lean": peaks["naive"] / peaks["lean"]}


def measure_growth(spec: ScanSpec, n: int, batch: int, lengths: list[int]) -> dict[str, list[float] | float]:
    """Seconds and peak MB of training over growing lengths, and the exponents of both."""
    tell(f"growth with T = {', '.join(map(str, lengths))}: {spec.cell} with {spec.memory}")
    weights = draw_weights(spec, n)
    runs = {}
    for steps in lengths:
        x = torch.randn(steps, batch, INPUT)
        cotangent = torch.randn(steps, batch, n)

        def run(x: torch.Tensor = x, cotangent: torch.Tensor = cotangent) -> None:
            fused.scan(x, weights, None, spec=spec)[0].backward(cotangent)

        runs[str(steps)] = run
    seconds = list(medians(runs, 5).values())
    peaks = [peak_bytes(run) / 2**20 for run in runs.values()]
    fits = {"time exponent": exponent(lengths, seconds), "memory exponent": exponent(lengths, peaks)}
    return {"T": [float(steps) for steps in lengths], "seconds": seconds, "peak MB": peaks, **fits}


def measure_ragged(n: int = 128, batch: int = 64, steps: int = 520) -> Row:
    """Cost per real step of a packed sequence with very different lengths, relative to a batch of full length."""
    tell("very different lengths")
    lengths = torch.logspace(1, 0, batch, base=steps).long().clamp(1, steps)  # 520 ... 1, evenly in the logarithm
    x = torch.randn(steps, batch, INPUT)
    cotangent = torch.randn(steps, batch, n)
    packed = pack_padded_sequence(x, lengths)
    packed_cotangent = pack_padded_sequence(cotangent, lengths).data
    layers = {"rel": nn.RelLSTM(INPUT, n, recent=RECENT, relevant=RELEVANT), "nn": torch.nn.LSTM(INPUT, n)}
    runs: dict[str, Run] = {}
    for name, layer in layers.items():
        runs[f"{name} full"] = lambda layer=layer: layer(x)[0].backward(cotangent)
        runs[f"{name} packed"] = lambda layer=layer: layer(packed)[0].data.backward(packed_cotangent)
    times = medians(runs, 5)
    share = float(lengths.sum()) / (steps * batch)
    result = {f"{name} packed/full, per real step": times[f"{name} packed"] / times[f"{name} full"] for name in layers}
    return {"real share of all steps": share, **{name: ratio / share for name, ratio in result.items()}}


def measure_step(n: int = 128) -> Row:
    """Microseconds of one streamed step, batch 1, input of size n, in inference mode, beside ``torch.nn.LSTMCell``."""
    tell("a streamed step")
    layer = nn.RelLSTM(n, n, recent=RECENT, relevant=RELEVANT)
    cell = torch.nn.LSTMCell(n, n)
    x = torch.randn(1, n)
    hx = (torch.zeros(1, n), torch.zeros(1, n))
    with torch.inference_mode():
        state = layer(torch.randn(50, 1, n))[1]
        runs = {
            "step": lambda: [layer.step(x, state) for _ in range(100)],
            "LSTMCell": lambda: [cell(x, hx) for _ in range(100)],
        }
        times = {name: 1e4 * seconds for name, seconds in medians(runs, 7).items()}
    return {**times, "step/LSTMCell": times["step"] / times["LSTMCell"]}


def measure_one_thread(quick: bool) -> dict[str, object]:
    """What does not depend on the number of threads."""
    lengths = LENGTHS[quick]
    full = [505, 1010, 2020]
    rel = ScanSpec("lstm", Screened(RECENT, RELEVANT))
    sab = ScanSpec("lstm", Strided(top_k=5, every=2))
    memory = (
        [(128, 10, 520)]
        if quick
        else [(128, 10, 520), (256, 10, 520), (64, 64, 120), (64, 64, 520), (128, 64, 520), (256, 64, 120)]
    )
    return {
        "peak MB": {
            f"n={n} batch={batch} T={steps}": apart(measure_memory, n, batch, steps) for n, batch, steps in memory
        },
        "RelLSTM, n=64 batch=10": measure_growth(rel, 64, 10, lengths),
        "SAB LSTM, n=64 batch=10": measure_growth(sab, 64, 10, lengths),
        "MemLSTM, n=128 batch=10": measure_growth(ScanSpec("lstm", Full()), 128, 10, full[:2] if quick else full),
        "very different lengths": measure_ragged(),
        "streamed step, us": measure_step(),
    }


def measure(threads: int, quick: bool, repeats: int) -> dict[str, object]:
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    grid = QUICK if quick else GRID
    result: dict[str, object] = {cell: measure_grid(cell, grid, repeats) for cell in ("lstm", "rnn")}
    return result | (measure_one_thread(quick) if threads == 1 else {})


RATIOS = {  # name: numerator, denominator; the worst cell is the least where more is better
    "rel/nn": ("rel", "nn", max),
    "plain/nn": ("plain", "nn", max),
    "lean/rel": ("lean", "rel", max),
    "naive/rel": ("naive", "rel", min),
    "eager/rel": ("eager", "rel", min),
    "reference/rel": ("reference", "rel", min),
    "reference/eager": ("reference", "eager", max),
}


def summarise(rows: list[Row]) -> dict[str, dict[str, float]]:
    result = {}
    for name, (above, below, worst) in RATIOS.items():
        values = [row[above] / row[below] for row in rows if above in row]
        result[name] = {"mean": geometric_mean(values), "worst": worst(values), "cells": len(values)}
    return result


def show(cell: str, threads: int, rows: list[Row]) -> None:
    names = ("rel/nn", "plain/nn", "lean/rel", "naive/rel", "reference/eager")
    title = f"{cell}, {threads} thread(s), forward + backward"
    table = Table("n", "batch", "T", "nn ms", "rel ms", *names, "GF/s", "of the peak", title=title)
    for row in rows:
        ratios = [f"{row[a] / row[b]:.2f}" if a in row else "-" for a, b, _ in map(RATIOS.__getitem__, names)]
        times = [f"{row[name]:.2f}" for name in ("nn", "rel")]
        speed = [f"{row['gflops']:.0f}", f"{row['gflops'] / row['peak']:.0%}"]
        table.add_row(*(f"{row[name]:.0f}" for name in ("n", "batch", "T")), *times, *ratios, *speed)
    Console(width=130).print(table)


def run_apart(threads: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """The measurements with so many threads, in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "part.json")
        command = [sys.executable, "-m", "benchmarks.kernel", "--part", str(target), "--threads", str(threads)]
        command += ["--repeats", str(arguments.repeats)] + ["--quick"] * arguments.quick
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        subprocess.run(command, check=True, env=environment)
        return json.loads(target.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sizes at T = 120, shorter fits, fewer repeats")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, help="7, or 3 with --quick")
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.repeats is None:
        arguments.repeats = 3 if arguments.quick else 7
    if arguments.part:
        part = measure(arguments.threads[0], arguments.quick, arguments.repeats)
        arguments.part.write_text(json.dumps(part), encoding="utf-8")
        return
    load = os.getloadavg()
    parts = {threads: run_apart(threads, arguments) for threads in arguments.threads}
    summary = {}
    for threads, part in parts.items():
        for cell in ("lstm", "rnn"):
            show(cell, threads, part[cell])
            summary[f"{cell}, {threads} thread(s)"] = summarise(part[cell])
    report = {
        "machine": machine(),
        "load": load,
        "backend": ops.backend_report(),
        "summary": summary,
        **{name: value for name, value in parts.get(1, {}).items() if name not in ("lstm", "rnn")},
        "grid": {threads: {cell: part[cell] for cell in ("lstm", "rnn")} for threads, part in parts.items()},
    }
    Console(width=120).print({name: value for name, value in report.items() if name not in ("grid", "backend")})
    RESULT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
