"""Speed and memory of the fused scan beside torch.nn, the reference and a naive research loop, in one run.

``python -m benchmarks.kernel`` prints the table and writes ``benchmarks/kernel.json``. Times are medians of runs that
alternate between the candidates, as process time with one thread (other jobs on the machine then disturb less) and as
wall time with more. Ratios are what counts.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from remanence import ops
from remanence.ops import Full, ScanSpec, Screened, Weights, fused, reference

INPUT, RECENT, RELEVANT = 10, 10, 10
GRID = [(n, batch, steps) for steps in (120, 520, 2020) for n in (64, 128, 256) for batch in (10, 64)]
QUICK = [(n, batch, 120) for n in (64, 128, 256) for batch in (10, 64)]
FLOPS = {"lstm": 36, "rnn": 18}  # matrix products of a Rel layer per step and row, in units of n^2
RESULT = Path(__file__).with_suffix(".json")


def draw_weights(spec: ScanSpec, n: int, sharp: float = 20.0) -> Weights:
    """Normal weights; sharpened scores, so that states are replaced in the relevant set."""
    gates = {"rnn": 1, "lstm": 4}[spec.cell] * n

    def draw(*shape: int, scale: float = 1.0) -> Tensor:
        return (torch.randn(*shape) * scale / n**0.5).requires_grad_()

    weights = Weights(draw(gates, INPUT), draw(gates, n), draw(gates), draw(gates))
    if spec.has_memory:
        weights = weights._replace(query=draw(n, n), key=draw(n, n), score=draw(n, scale=sharp))
    return weights


def naive_scan(x: Tensor, weights: Weights, spec: ScanSpec) -> Tensor:
    """The usual research loop: keys of the whole memory computed anew at each step, lists and concatenation."""
    steps, batch, n = x.shape[0], x.shape[1], weights.hh.shape[1]
    assert weights.query is not None
    assert weights.key is not None
    assert weights.score is not None
    s = c = x.new_zeros(batch, n)
    recent: list[Tensor] = []
    received: list[Tensor] = []
    relevant = x.new_zeros(batch, 0, n)
    relevance = x.new_zeros(batch, 0)
    outputs = []
    for x_t in x.unbind(0):
        gates = torch.nn.functional.linear(x_t, weights.ih, weights.bias_ih)
        gates = gates + torch.nn.functional.linear(s, weights.hh, weights.bias_hh)
        if spec.cell == "lstm":
            i, f, g, o = gates.chunk(4, dim=1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        else:
            h = gates.tanh()
        if len(recent) == RECENT:
            relevant, relevance = _screen(relevant, relevance, recent.pop(0), received.pop(0))
        recent.append(h)
        received.append(x.new_zeros(batch))
        held = torch.cat([torch.stack(recent, dim=1), relevant], dim=1)
        scores = torch.tanh((s @ weights.query.T)[:, None] + held @ weights.key.T) @ weights.score
        z = scores.softmax(dim=1)
        received = [old + z[:, i].detach() for i, old in enumerate(received)]
        s = h + (z[..., None] * held).sum(dim=1)
        outputs.append(s)
    assert len(outputs) == steps
    return torch.stack(outputs)


def _screen(relevant: Tensor, relevance: Tensor, oldest: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    if relevant.shape[1] < RELEVANT:
        return torch.cat([relevant, oldest[:, None]], dim=1), torch.cat([relevance, score[:, None]], dim=1)
    least, slot = relevance.min(dim=1)
    chosen = torch.nn.functional.one_hot(slot, RELEVANT).bool() & (score > least)[:, None]
    return torch.where(chosen[..., None], oldest[:, None], relevant), torch.where(chosen, score[:, None], relevance)


def medians(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Seconds of each candidate, alternating, after one run that is not counted."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(repeats):
        for name, run in runs.items():
            start = clock()
            run()
            times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def candidates(cell: str, n: int, batch: int, steps: int, slow: bool) -> dict[str, Callable[[], object]]:
    """Forward and backward of each candidate at one point of the grid."""
    x, cotangent = torch.randn(steps, batch, INPUT, requires_grad=True), torch.randn(steps, batch, n)
    rel, plain = ScanSpec(cell, Screened(RECENT, RELEVANT)), ScanSpec(cell)  # type: ignore[arg-type]
    weights, plain_weights = draw_weights(rel, n), draw_weights(plain, n)
    layer = (torch.nn.LSTM if cell == "lstm" else torch.nn.RNN)(INPUT, n)
    runs: dict[str, Callable[[], object]] = {
        "nn": lambda: layer(x)[0].backward(cotangent),
        "rel": lambda: fused.scan(x, weights, None, spec=rel)[0].backward(cotangent),
        "lean": lambda: fused.scan(x, weights, None, spec=rel, lean=True)[0].backward(cotangent),
        "plain": lambda: fused.scan(x, plain_weights, None, spec=plain)[0].backward(cotangent),
    }
    if slow:
        runs["reference"] = lambda: reference.scan(x, weights, None, spec=rel)[0].backward(cotangent)
        runs["naive"] = lambda: naive_scan(x, weights, rel).backward(cotangent)
    return runs


def peak_bytes(run: Callable[[], object]) -> int:
    """Growth of the resident set during one run, from the kernel's high-water mark (Linux)."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # freed memory that the process still holds would hide the growth
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    run()
    return max(0, _status("VmHWM") - before)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def measure_grid(grid: list[tuple[int, int, int]], repeats: int, slow_until: int) -> list[dict[str, float | str]]:
    rows: list[dict[str, float | str]] = []
    for cell in ("lstm", "rnn"):
        for n, batch, steps in grid:
            slow = n * batch * steps <= slow_until
            times = medians(candidates(cell, n, batch, steps, slow), repeats if steps < 2000 else 3)
            speed = FLOPS[cell] * n * n * batch * steps / times["rel"] / 1e9
            sizes = {"cell": cell, "n": n, "batch": batch, "T": steps}
            rows.append({**sizes, **{name: 1e3 * t for name, t in times.items()}, "gflops": speed})
    return rows


def measure_memory(n: int, batch: int, steps: int) -> dict[str, float]:
    runs = candidates("lstm", n, batch, steps, slow=False)
    for run in runs.values():
        run()
    return {name: peak_bytes(run) / 2**20 for name, run in runs.items()}


def measure_step(n: int = 128) -> dict[str, float]:
    """Microseconds of one streamed step, batch 1, in inference mode, beside ``torch.nn.LSTMCell``."""
    spec, cell, x = ScanSpec("lstm", Screened(RECENT, RELEVANT)), torch.nn.LSTMCell(INPUT, n), torch.randn(1, 1, INPUT)
    weights = Weights._make(w if w is None else w.detach() for w in draw_weights(spec, n))
    with torch.inference_mode():
        state = fused.scan(torch.randn(50, 1, INPUT), weights, None, spec=spec)[1]
        hx = (torch.zeros(1, n), torch.zeros(1, n))
        runs = {
            "step": lambda: [fused.scan(x, weights, state, spec=spec) for _ in range(100)],
            "LSTMCell": lambda: [cell(x[0], hx) for _ in range(100)],
        }
        return {name: 1e4 * seconds for name, seconds in medians(runs, 5).items()}


def measure_full(steps: int) -> float:
    """Peak MB of training with attention over all states: grows with T, never with T squared."""
    spec, x = ScanSpec("lstm", Full()), torch.randn(steps, 10, INPUT, requires_grad=True)
    weights = draw_weights(spec, 128)
    return peak_bytes(lambda: fused.scan(x, weights, None, spec=spec)[0].sum().backward()) / 2**20


def peak_gflops() -> float:
    """MKL at 2048 cubed."""
    a = torch.randn(2048, 2048)
    return 2 * 2048**3 / medians({"mm": lambda: a @ a}, 3)["mm"] / 1e9


def show(rows: list[dict[str, float | str]]) -> None:
    columns = ("cell", "n", "batch", "T", "nn ms", "rel ms", "rel/nn", "plain/nn", "lean/rel", "naive/rel", "GF/s")
    table = Table(*columns, title="forward + backward")
    for row in rows:
        value = {name: float(v) for name, v in row.items() if name != "cell"}
        naive = f"{value['naive'] / value['rel']:.1f}" if "naive" in value else "-"
        ratios = [value["rel"] / value["nn"], value["plain"] / value["nn"], value["lean"] / value["rel"]]
        sizes = [str(row[name]) for name in ("cell", "n", "batch", "T")]
        times = [f"{value[name]:.2f}" for name in ("nn", "rel")]
        table.add_row(*sizes, *times, *(f"{r:.2f}" for r in ratios), naive, f"{value['gflops']:.0f}")
    Console(width=120).print(table)


def summarise(rows: list[dict[str, float | str]]) -> dict[str, dict[str, float]]:
    result = {}
    for cell in ("lstm", "rnn"):
        mine = [{k: float(v) for k, v in row.items() if k != "cell"} for row in rows if row["cell"] == cell]
        rel, plain = [r["rel"] / r["nn"] for r in mine], [r["plain"] / r["nn"] for r in mine]
        naive = [r["naive"] / r["rel"] for r in mine if "naive" in r]
        result[cell] = {"rel/nn": geometric_mean(rel), "rel/nn worst": max(rel), "plain/nn": geometric_mean(plain)}
        if naive:
            result[cell] |= {"naive/rel": geometric_mean(naive), "naive/rel worst": min(naive)}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="T = 120 only")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    rows = measure_grid(QUICK if arguments.quick else GRID, arguments.repeats, slow_until=128 * 64 * 120)
    report = {
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "load": os.getloadavg(),
        "threads": arguments.threads,
        "backend": ops.backend_report(),
        "summary": summarise(rows),
        "mkl gflops": peak_gflops(),
        "peak MB, n=128 batch=64 T=520": measure_memory(128, 64, 520),
        "peak MB of full attention, n=128 batch=10": {str(steps): measure_full(steps) for steps in (505, 1010, 2020)},
        "streamed step, us": measure_step(),
        "grid": rows,
    }
    show(rows)
    Console(width=120).print({name: value for name, value in report.items() if name not in ("grid", "backend")})
    RESULT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
