"""Drawing tokens beside a loop over steps, a step beside ``torch.nn.LSTMCell``, and very long sequences.

``python -m benchmarks.generation`` prints the tables and writes ``benchmarks/generation.json``. Times are medians of
runs that alternate between the candidates, as process time with one thread and as wall time with more; ratios are what
counts. ``--quick`` has n = 128 alone and fewer repeats, and leaves out the stream of 10^6 steps and the training step
over T = 100,000.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from benchmarks.measure import machine, medians, peak_bytes, tell
from rich.console import Console
from rich.table import Table

from remanence import nn, ops
from remanence.nn import _generation

TOKENS = 96
RECENT = 10
RELEVANT = 10
GRID = [(core, n, batch) for core in ("LSTM", "RelLSTM") for n in (128, 256) for batch in (1, 64, 2000)]
STEPS = {1: 200, 64: 40, 2000: 4}  # tokens per row in one run
LONG = 100_000
SEGMENT = 2000
RESULT = Path(__file__).with_suffix(".json")


def make_model(core: str, n: int) -> nn.SequenceModel:
    """A character model with an embedding as wide as its state."""
    options: dict[str, Any] = {"encoder": "embedding", "embedding_size": n, "hidden_size": n}
    if core.startswith("Rel"):
        options |= {"recent": RECENT, "relevant": RELEVANT}
    return nn.SequenceModel(TOKENS, core, TOKENS, **options).eval()


@torch.no_grad()
def measure_generation(core: str, n: int, batch: int, repeats: int) -> dict[str, float | str]:
    """Microseconds per token of each row, in one call and in a loop over ``step``, both from a filled memory."""
    tell(f"tokens of {core}: n={n} batch={batch}")
    model = make_model(core, n)
    steps = STEPS[batch]
    _, state = model(torch.randint(TOKENS, (2 * RECENT + RELEVANT, batch)))
    start = torch.zeros(batch, dtype=torch.int64)
    uniforms = torch.rand(steps, batch, dtype=torch.float64)
    runs: dict[str, Callable[[], object]] = {
        "one call": lambda: _generation._by_scan(model, start, state, steps, uniforms, 1.0),
        "loop": lambda: _generation._by_steps(model, start, state, steps, uniforms, 1.0),
    }
    times = {name: 1e6 * seconds / steps for name, seconds in medians(runs, repeats).items()}
    return {"core": core, "n": n, "batch": batch, **times, "loop/one call": times["loop"] / times["one call"]}


@torch.inference_mode()
def measure_step(repeats: int, n: int = 128) -> dict[str, float]:
    """Microseconds of one step of a stream, batch 1, input n, beside a call of ``LSTMCell``."""
    tell("a streamed step")
    layer = nn.RelLSTM(n, n, recent=RECENT, relevant=RELEVANT)
    cell = torch.nn.LSTMCell(n, n)
    x = torch.randn(1, n)
    _, state = layer(torch.randn(2 * RECENT + RELEVANT, 1, n))
    weights = [layer.weights()]
    hx = (torch.zeros(1, n), torch.zeros(1, n))
    runs: dict[str, Callable[[], object]] = {
        "layer.step": lambda: [layer.step(x, state) for _ in range(200)],
        "ops.step": lambda: [ops.step(x, weights, state, spec=layer.spec) for _ in range(200)],
        "LSTMCell": lambda: [cell(x, hx) for _ in range(200)],
    }
    times = {name: 1e6 * seconds / 200 for name, seconds in medians(runs, repeats).items()}
    return {**times, "layer.step/LSTMCell": times["layer.step"] / times["LSTMCell"]}


@torch.inference_mode()
def measure_stream(steps: int = 10**6, n: int = 32) -> dict[str, float]:
    """Size of the state before and after very many steps, and how much the process grew meanwhile."""
    tell(f"a stream of {steps:,} steps")
    layer = nn.RelLSTM(8, n, recent=RECENT, relevant=RELEVANT)
    inputs = torch.randn(1000, 1, 8)
    state = layer.initial_state(1)
    before = state.nbytes

    def run() -> None:
        nonlocal state
        for t in range(steps):
            _, state = layer.step(inputs[t % 1000], state)

    grown = peak_bytes(run)
    return {
        "steps": int(state.step),
        "state before": before,
        "state after": state.nbytes,
        "process grew, MB": grown / 2**20,
    }


def measure_long(steps: int = LONG, batch: int = 4, n: int = 64) -> dict[str, float]:
    """Peak MB of a training step over a very long sequence, whole and in segments, and how far gradients differ."""
    tell(f"a training step over {steps:,} steps")
    layer = nn.RelLSTM(10, n, recent=RECENT, relevant=RELEVANT)
    x = torch.randn(steps, batch, 10)
    gradients: list[torch.Tensor] = []

    def learn(segment: int | None) -> Callable[[], None]:
        def run() -> None:
            layer.zero_grad()
            with ops.saving(segment=segment):
                output, _ = layer(x)
            output[-1].square().sum().backward()
            gradients.append(torch.cat([weight.grad.flatten() for weight in layer.parameters()]))  # type: ignore[union-attr]

        return run

    segmented = peak_bytes(learn(SEGMENT)) / 2**20
    whole = peak_bytes(learn(None)) / 2**20
    apart = (gradients[0] - gradients[1]).abs().max()
    size = gradients[1].abs().max()
    return {"T": steps, "in segments, MB": segmented, "whole, MB": whole, "gradients apart": float(apart / size)}


def show(rows: list[dict[str, float | str]]) -> None:
    table = Table("core", "n", "batch", "one call, us", "loop, us", "loop/one call", title="a token of each row")
    for row in rows:
        numbers = [f"{float(row[name]):.1f}" for name in ("one call", "loop", "loop/one call")]
        table.add_row(*(str(row[name]) for name in ("core", "n", "batch")), *numbers)
    Console(width=120).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one size, without the very long sequences")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, help="7, or 3 with --quick")
    arguments = parser.parse_args()
    repeats = arguments.repeats or (3 if arguments.quick else 7)
    grid = [(core, n, batch) for core, n, batch in GRID if n == 128 or not arguments.quick]
    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    rows = [measure_generation(*sizes, repeats) for sizes in grid]
    show(rows)
    report: dict[str, Any] = {
        "machine": machine(),
        "load": os.getloadavg(),
        "threads": arguments.threads,
        "backend": ops.backend_report(),
        "generation": rows,
        "streamed step, us": measure_step(repeats),
    }
    if not arguments.quick:
        report["stream"] = measure_stream()
        report["training step over a long sequence"] = measure_long()
    Console(width=120).print({name: value for name, value in report.items() if name not in ("generation", "backend")})
    RESULT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
