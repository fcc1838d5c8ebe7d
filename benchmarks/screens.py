"""The screens side by side on small Copy, Denoise and late cues: accuracy, share of needed states held, updates.

``python -m benchmarks.screens``                   every screen once, about a minute of one core
``python -m benchmarks.screens SEEDS UPDATES``     with so many seeds, and at most so many updates a run

A run ends when a fresh batch is answered well enough, or at the most updates; "updates" is how many it took. The
default is a smoke test: short sequences, few symbols, one rate for all, and so few updates that no screen solves a task
(nor did any in 250 updates). It says how much an almost untrained model holds, not which screen is best.
"""

from __future__ import annotations

import json
import sys

import torch

from remanence.nn import SequenceModel
from remanence.ops._screens import SCREENS
from remanence.probes import share_held
from remanence.tasks import Copy, Denoise, LateCues

SIZES = {"length": 16, "items": 2, "symbols": 4}
TASKS = (Copy(**SIZES), Denoise(**SIZES), LateCues(**SIZES, distractors=4))
MEMORY = {"recent": 3, "relevant": 3}
WIDTH = 32
ROWS = 32
UPDATES = 150
RATE = 5e-3
ENOUGH = 0.98
TEST_ROWS = 500


def train(task, screen: str, seed: int, most: int) -> tuple[SequenceModel, int]:
    """A model of one screen, and the updates that it took."""
    torch.manual_seed(seed)
    options = {"hidden_size": WIDTH, "screen": screen, **MEMORY}
    model = SequenceModel(task.input_size, "RelRNN", task.output_size, encoder="dense", **options)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    for update in range(most):
        batch = task.batch(update, ROWS, seed=seed)
        output, _ = model(batch.inputs)
        if task.accuracy(output, batch) >= ENOUGH:
            return model, update
        optimiser.zero_grad()
        task.loss(output, batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return model, most


def measure(task, screen: str, seed: int, most: int) -> dict[str, object]:
    """One line of the table."""
    model, updates = train(task, screen, seed, most)
    batch = task.batch(0, TEST_ROWS, split="test", seed=seed)
    with torch.no_grad():
        accuracy = task.accuracy(model(batch.inputs)[0], batch)
    tokens = batch.inputs.argmax(-1)
    needed = (tokens >= 1) & (tokens <= task.symbols)
    (trace,) = model.core.trace(batch.inputs)
    held = share_held(trace, needed, at=batch.steps - task.items - 1)
    found = {"accuracy": round(float(accuracy), 3), "held": round(held, 3), "updates": updates}
    return {"task": task.name, "screen": screen, "seed": seed, **found, "chance": task.chance_level}


def main() -> None:
    """Prints one line of JSON for every run."""
    torch.set_num_threads(1)
    given = [int(argument) for argument in sys.argv[1:]]
    seeds, most = [*given, *(1, UPDATES)[len(given) :]]
    print(json.dumps({"scale": "small", **SIZES, **MEMORY, "width": WIDTH, "most updates": most, "rate": RATE}))
    for task in TASKS:
        for screen in SCREENS:
            for seed in range(seeds):
                print(json.dumps(measure(task, screen, seed, most)), flush=True)


if __name__ == "__main__":
    main()
