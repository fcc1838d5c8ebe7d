"""Drawing a batch of 1,000 rows at once beside drawing it row by row: ``python -m benchmarks.tasks``.

Two loops are compared: plain Python that makes a row symbol by symbol, and our own code called for one row at a time.
Ratios are what counts: a lone time says more about the machine than about the code. ``--quick`` times the loops over
fewer rows and leaves out the longest sequences.
"""

from __future__ import annotations

import argparse
import math
import random
import time

import torch
from benchmarks.measure import tell
from rich.console import Console
from rich.table import Table

from remanence.tasks import Adding, BinaryPowerLaw, Copy, Denoise, HiddenMarkov, Ising, Repetitive
from remanence.tasks._power_law import _factor

ROWS = 1000
REPEATS = 5


def one_hot(tokens, width):
    return [[float(token == place) for place in range(width)] for token in tokens]


def copy_row(task, dice):
    shown = [dice.randint(1, task.symbols) for _ in range(task.items)]
    tokens = shown + [0] * (task.length - 1) + [task.symbols + 1] + [0] * task.items
    return one_hot(tokens, task.input_size), [0] * (task.length + task.items) + shown


def denoise_row(task, dice):
    shown = [dice.randint(1, task.symbols) for _ in range(task.items)]
    tokens = [0] * (task.length + task.items - 1) + [task.symbols + 1] + [0] * task.items
    for place, symbol in zip(sorted(dice.sample(range(task.length + task.items - 1), task.items)), shown, strict=True):
        tokens[place] = symbol
    return one_hot(tokens, task.input_size), [0] * (task.length + task.items) + shown


def adding_row(task, dice):
    numbers = [dice.random() for _ in range(task.length)]
    marks = [0.0] * task.length
    half = task.length // 2
    marked = dice.randrange(half), dice.randrange(half, task.length)
    for place in marked:
        marks[place] = 1.0
    total = sum(numbers[place] for place in marked)
    return list(zip(numbers, marks, strict=True)), [0.0] * (task.length - 1) + [total]


def power_law_row(task, dice):
    factor = power_law_row.factor
    noise = [dice.gauss(0, 1) for _ in range(task.length)]
    return foretell([int(sum(map(float.__mul__, row, noise)) > 0) for row in factor])


power_law_row.factor = []


def repetitive_row(task, dice):
    bits = []
    for _ in range(task.length // 2 + 1):
        bits += [0, 1] if dice.random() < task.probability else [1, 0]
    phase = dice.randrange(2)
    return foretell(bits[phase : phase + task.length])


def ising_row(task, dice):
    stay = 1 / (1 + math.exp(2 * task.coupling))
    spins = [dice.randrange(2)]
    for _ in range(task.length - 1):
        spins.append(spins[-1] if dice.random() < stay else 1 - spins[-1])
    return foretell(spins)


def monte_carlo_row(task, dice):
    spins = [dice.choice((-1.0, 1.0)) for _ in range(task.length)]
    for _ in range(task.sweeps):
        for place in range(task.length):
            field = sum(
                task.coupling * abs(place - other) ** -task.decay * spin
                for other, spin in enumerate(spins)
                if other != place
            )
            spins[place] = 1.0 if dice.random() < 1 / (1 + math.exp(2 * field)) else -1.0
    return foretell([int(spin > 0) for spin in spins])


def hidden_markov_row(task, dice):
    state = dice.choices(range(len(task.transition)), task.stationary.tolist())[0]
    symbols = []
    for _ in range(task.length):
        symbols += dice.choices(range(task.input_size), task.emission[state])
        state = dice.choices(range(len(task.transition)), task.transition[state])[0]
    return foretell(symbols)


def foretell(symbols):
    return symbols[:-1], symbols[1:]


CASES = [
    (Copy(), copy_row, ROWS),
    (Denoise(), denoise_row, ROWS),
    (Adding(), adding_row, ROWS),
    (BinaryPowerLaw(), power_law_row, 20),
    (Repetitive(), repetitive_row, ROWS),
    (Ising(), ising_row, ROWS),
    (Ising(length=64, decay=1.5, sweeps=10), monte_carlo_row, 20),
    (HiddenMarkov(), hidden_markov_row, ROWS),
]


def python_batch(task, make_row, rows):
    """Makes rows in plain Python and stacks them, time first."""
    dice = random.Random(0)
    inputs, targets = zip(*(make_row(task, dice) for _ in range(rows)), strict=True)
    return torch.tensor(inputs).transpose(0, 1), torch.tensor(targets).T


def best_seconds(work, repeats=REPEATS):
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="loops over fewer rows, no long sequences")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    power_law_row.factor = _factor(BinaryPowerLaw()).tolist()
    headings = ("task", "at once", "plain Python, row by row", "ratio", "ours, one row at a time", "ratio")
    table = Table(*headings, title=f"One batch of {ROWS:,} rows, one thread, best of {REPEATS}")
    for task, make_row, most in CASES:
        tell(f"{task.name} {task.length}")
        rows = min(most, 100) if quick else most
        generator = task.stream("train", seed=0)
        at_once = best_seconds(lambda: task.sample(ROWS, generator))  # noqa: B023
        # Slow loops are timed over fewer rows and scaled up, which favours the loop.
        plain = best_seconds(lambda: python_batch(task, make_row, rows), repeats=2) * ROWS / rows  # noqa: B023
        single = best_seconds(lambda: [task.sample(1, generator) for _ in range(20)], repeats=2) * ROWS / 20  # noqa: B023
        table.add_row(
            f"{task.name} {task.length}",
            f"{at_once * 1e3:.1f} ms",
            f"{plain * 1e3:,.0f} ms",
            f"{plain / at_once:,.0f}",
            f"{single * 1e3:,.0f} ms",
            f"{single / at_once:,.0f}",
        )
    console = Console(width=120)
    console.print(table)
    if quick:
        return
    for task, rows in ((BinaryPowerLaw(), 10_000), (BinaryPowerLaw(length=4_000_000), 1)):
        tell(f"{task.name}: {rows:,} x {task.length:,} bits")
        seconds = best_seconds(lambda: task.draw(rows, task.stream("train", seed=0)), repeats=1)  # noqa: B023
        console.print(f"{task.name}: {rows:,} x {task.length:,} bits in {seconds:.2f} s")


if __name__ == "__main__":
    main()
