"""Writes ``agents.svg`` and prints the tables of docs/rl.md from the stored cells of ``beyond/agents``.

``python docs/agents.py``; it trains nothing.
"""

from pathlib import Path
from statistics import fmean

from remanence.experiments import stored_cells
from remanence.figures import Axis, Band, Curve, Figure, looks, to_svg
from remanence.rl import NO_MEMORY, PolicyComparison

HERE = Path(__file__).parent
FRAMES = 30_000
"""Budget of the stored cells."""


def by_task():
    """The cells that are done: by task, and there by model."""
    tasks = {}
    for cell in stored_cells("beyond/agents"):
        if cell.result("play") is not None:
            tasks.setdefault(cell.place["task"], {}).setdefault(cell.place["model"], []).append(cell)
    return tasks


def figure(task, models, styles):
    """Learning curves of one task: the mean over the seeds, in a band from the least to the greatest."""
    parts = []
    for model, cells in models.items():
        curves = [learning_curve(cell) for cell in cells]
        frames = [at for at in curves[0] if all(curve.get(at) is not None for curve in curves)]
        values = [[curve[at] for curve in curves] for at in frames]
        if len(curves) > 1:
            ends = [*map(min, values)], [*map(max, values)]
            parts.append(
                Band((f"{model}, least", f"{model}, greatest"), frames, *ends, look=styles[model], group=model)
            )
        parts.append(Curve(model, frames, [fmean(at) for at in values], look=styles[model], group=model))
    words = f"{task}: mean return of the last 100 episodes while learning"
    return Figure(task, words, tuple(parts), Axis("frames", unit="SI"), Axis("mean return"))


def learning_curve(cell):
    """The mean return by the number of frames."""
    frames = cell.learning_curve("train", "frames")
    return dict(zip(frames, cell.learning_curve("train", "mean_return"), strict=True))


def compared(task, models):
    """Returns in new episodes, by seed."""
    returns = {model: [cell.result("play")["here"]["mean"] for cell in cells] for model, cells in models.items()}
    return PolicyComparison(task, FRAMES, 100, returns)


def returns(found):
    """A row: the mean return of each model, and below it the least and the greatest seed."""
    cells = (f"{fmean(seeds):.2f}<br>{span(min(seeds), max(seeds), '.2f')}" for seeds in found.returns.values())
    return f"| {' | '.join([found.environment, *cells])} |"


def gains(found):
    """A row: what memory adds to each model where its 95 % interval, below it, lies above 0."""
    shown = found.gains.values()
    cells = (f"{one.mean:+.2f}<br>{span(one.low, one.high, '+.2f')}" if one.low > 0 else "not shown" for one in shown)
    return f"| {' | '.join([found.environment, *cells])} |"


def span(low, high, form):
    """Two ends that stay on one line."""
    return f"{low:{form}} to {high:{form}}".replace(" ", "\N{NO-BREAK SPACE}")


def main():
    """Writes the picture and prints both tables."""
    tasks = by_task()
    styles = looks(["RelLSTM", "LSTM", "GRU", "MinGRU", NO_MEMORY])
    (HERE / "agents.svg").write_text(to_svg(*(figure(task, tasks[task], styles) for task in tasks)), encoding="utf-8")
    found = [compared(task, models) for task, models in tasks.items()]
    print(*map(returns, found), sep="\n")
    print(*(gains(one) for one in found if one.needs_memory), sep="\n")


if __name__ == "__main__":
    main()
