"""Writes ``agents.svg`` and prints the table of docs/rl.md from the stored cells of ``beyond/agents``.

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
        curves = [{line["frames"]: line["mean_return"] for line in cell.lines("train")} for cell in cells]
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


def row(task, models):
    """Returns in new episodes, by seed, and whether memory is shown to be needed."""
    returns = {model: [cell.result("play")["here"]["mean"] for cell in cells] for model, cells in models.items()}
    found = PolicyComparison(task, FRAMES, 100, returns)
    cells = [f"{fmean(values):.2f}{spread(values)}" for values in returns.values()]
    gains = ", ".join(f"{model} {gained}" for model, gained in found.gains.items() if gained.low > 0)
    return " | ".join([task, *cells, gains or "not shown"])


def spread(values):
    """From the least to the greatest seed, if there are several."""
    return f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ", one seed"


def main():
    """Writes the picture and prints the table."""
    tasks = by_task()
    styles = looks(["RelLSTM", "LSTM", "GRU", "MinGRU", NO_MEMORY])
    (HERE / "agents.svg").write_text(to_svg(*(figure(task, tasks[task], styles) for task in tasks)), encoding="utf-8")
    for task, models in tasks.items():
        print(f"| {row(task, models)} |")


if __name__ == "__main__":
    main()
