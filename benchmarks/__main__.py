"""Speed and state size of recurrent layers beside torch.nn, in one run: ``python -m benchmarks``.

Ratios are what counts: a lone time says more about the machine than about the code.
"""

from __future__ import annotations

import statistics
import time

import torch
from rich.console import Console
from rich.table import Table

from remanence import nn, ops

STEPS, BATCH, INPUT, HIDDEN = 200, 16, 32, 64
REPEATS = 5

LAYERS = {
    "torch.nn.LSTM": lambda: torch.nn.LSTM(INPUT, HIDDEN),
    "LSTM": lambda: nn.LSTM(INPUT, HIDDEN),
    "RelLSTM recent=10 relevant=10": lambda: nn.RelLSTM(INPUT, HIDDEN, recent=10, relevant=10),
    "MemLSTM": lambda: nn.MemLSTM(INPUT, HIDDEN),
}


def seconds(layer: torch.nn.Module, x: torch.Tensor) -> list[float]:
    """Times forward and backward together, after one run that is not counted."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        layer(x)[0].sum().backward()
        times.append(time.perf_counter() - start)
    return times[1:]


def state_bytes(layer: torch.nn.Module, x: torch.Tensor) -> int:
    """Counts the bytes that one row carries to the next step."""
    with torch.no_grad():
        state = layer(x)[1]
    return sum(field.nbytes for field in state) // x.shape[1]


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(STEPS, BATCH, INPUT)
    layers = {name: build() for name, build in LAYERS.items()}
    medians = {name: statistics.median(seconds(layer, x)) for name, layer in layers.items()}
    base = medians["torch.nn.LSTM"]
    table = Table("layer", "forward + backward", "times torch.nn.LSTM", "state, bytes a row")
    for name, layer in layers.items():
        table.add_row(
            name, f"{medians[name] * 1e3:.1f} ms", f"{medians[name] / base:.1f}", f"{state_bytes(layer, x):,}"
        )
    console = Console()
    console.print(
        f"T={STEPS} B={BATCH} input={INPUT} hidden={HIDDEN}, {torch.get_num_threads()} threads, "
        f"median of {REPEATS}, path: {ops.backend_report()['active']}"
    )
    console.print(table)


if __name__ == "__main__":
    main()
