"""What learning from episodes costs: whole sequences with resets inside the scan, beside the usual loop over steps.

``python -m benchmarks.policies`` prints milliseconds of one minibatch, forward and backward, and ratios; one thread,
medians of alternating runs. The loop is that of most recurrent PPO: a cell per step, its state multiplied by a mask
where an episode begins. Encoder and heads are the same for all, and run over all steps at once. ``--quick`` has fewer
runs and leaves out 64 rows.
"""

from __future__ import annotations

import argparse

import torch
from benchmarks.measure import medians, tell
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from remanence.nn import LSTM, MemLSTM, RecurrentLayer, RelLSTM
from remanence.rl import MemoryPolicy, Pieces, PPOConfig, ppo_losses

STEPS = 128
WIDTH = 64
ENDS = 0.05


class LoopLSTM(LSTM):
    """An LSTM that goes step by step, as research code does."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.one = nn.LSTMCell(input_size, hidden_size)

    def forward(self, input: Tensor, state: object = None, *, reset: Tensor | None = None) -> tuple[Tensor, object]:
        h = c = input.new_zeros(input.shape[1], self.hidden_size)
        outputs = []
        for x, begins in zip(input, reset, strict=True):
            mask = (~begins).to(x)[:, None]
            h, c = self.one(x, (h * mask, c * mask))
            outputs.append(h)
        return torch.stack(outputs), None


class LoopRelLSTM(RelLSTM):
    """Our own layer, one call a step: what it costs to leave the sequence to Python."""

    def forward(self, input: Tensor, state: object = None, *, reset: Tensor | None = None) -> tuple[Tensor, object]:
        outputs = []
        for x, begins in zip(input, reset, strict=True):
            output, state = super().forward(x[None], state, reset=begins[None])
            outputs.append(output)
        return torch.cat(outputs), state


def minibatch(policy: MemoryPolicy, rows: int) -> Pieces:
    zero = torch.zeros(STEPS, rows)
    begins = torch.rand(STEPS, rows) < ENDS
    begins[0] = True
    seen = torch.randint(0, 9, (STEPS, rows, 7, 7, 3)).float()
    state = policy.core.initial_state(rows)
    return Pieces(seen, begins, zero.long(), zero - 2, zero, torch.randn(STEPS, rows), state)


def measure(rows: int, repeats: int) -> dict[str, float]:
    tell(f"a minibatch of {rows} rows")
    cores: dict[str, RecurrentLayer] = {
        "LSTMCell in a loop": LoopLSTM(WIDTH, WIDTH),
        "LSTM": LSTM(WIDTH, WIDTH),
        "RelLSTM in a loop": LoopRelLSTM(WIDTH, WIDTH, recent=5, relevant=5),
        "RelLSTM": RelLSTM(WIDTH, WIDTH, recent=5, relevant=5),
        "MemLSTM": MemLSTM(WIDTH, WIDTH, limit=STEPS),
    }
    runs = {}
    for name, core in cores.items():
        policy = MemoryPolicy((7, 7, 3), 7, core)
        pieces = minibatch(policy, rows)
        runs[name] = lambda policy=policy, pieces=pieces: ppo_losses(policy, pieces, PPOConfig()).total.backward()
    return medians(runs, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and repeats")
    quick = parser.parse_args().quick
    torch.manual_seed(0)
    torch.set_num_threads(1)
    table = Table(title=f"one minibatch of {STEPS} steps, n = {WIDTH}, one thread", box=None)
    for name in ("rows", "core", "ms", "times LSTMCell in a loop"):
        table.add_column(name)
    for rows in (2, 16) if quick else (2, 16, 64):
        times = measure(rows, 3 if quick else 11)
        base = times["LSTMCell in a loop"]
        for name, seconds in times.items():
            table.add_row(str(rows), name, f"{1e3 * seconds:.1f}", f"{seconds / base:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
