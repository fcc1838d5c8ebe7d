"""Pictures of a comparison: learning curves, other lengths, and the figures of its probes laid over each other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from remanence._wording import all_of
from remanence.figures import Axis, Curve, Figure, Look, length_axis, log_axis, overlay, share_axis
from remanence.report._comparison import SeedRuns, TaskComparison
from remanence.report._numbers import only_if
from remanence.report._run_record import RunRecord
from remanence.runs import Measurement

POINTS = 120
"""Points that a learning curve is thinned to."""
DASHES = ("solid", "dash", "dot", "dashdot")
"""Of the lengths of a model, where several share a picture."""


def comparison_figures(found: TaskComparison, styles: Mapping[str, Look]) -> dict[str, list[Figure]]:
    """All pictures of a comparison that there are numbers for, by the heading they stand under."""
    parts = {
        "Learning": list(_learning(found, styles)),
        "Other lengths": list(_transfer(found, styles)),
        "Gradient reach": list(_reach(found, styles)),
        "Cost": list(_costs(found, styles)),
        "Attention": list(_attention(found)),
    }
    return {heading: figures for heading, figures in parts.items() if figures}


def _learning(found: TaskComparison, styles: Mapping[str, Look]) -> Iterator[Figure]:
    """Accuracy and loss against updates, a thin curve for each seed."""
    for length in found.lengths:
        cells = [cell for cell in found.cells if cell.length == length]
        at = only_if(length is not None, f" at T = {length or 0:,}")
        for metric in ("accuracy", "loss"):
            curves = [_curve(cell, run, metric, styles[cell.label]) for cell in cells for run in cell.runs]
            y = share_axis("validation accuracy")
            if metric == "loss":
                y = log_axis("validation loss", [value for curve in curves for value in curve.y])
            words = f"Validation {metric} against updates{at}; one curve per run, the seeds of a model in one colour."
            figure = Figure(f"{metric.capitalize()}{at}", words, tuple(curves), Axis("updates"), y)
            if not figure.is_empty:
                yield figure


def _curve(cell: SeedRuns, run: RunRecord, metric: str, look: Look) -> Curve:
    lines = thinned(run.history.validation or run.history.training)
    name = f"{cell.label}, seed {run.seed}" + only_if(run.status != "done", f", {run.status}")
    values = [line.get(metric) for line in lines]
    return Curve(name, [line.update for line in lines], values, look=look, group=cell.label)


def thinned(lines: Sequence[Measurement], most: int = POINTS) -> list[Measurement]:
    """Evenly chosen lines, the first and the last among them.

    Example:
        >>> [line.update for line in thinned([Measurement(n) for n in range(10)], 4)]
        [0, 3, 6, 9]
    """
    if len(lines) <= most:
        return list(lines)
    return [lines[round(place * (len(lines) - 1) / (most - 1))] for place in range(most)]


def _transfer(found: TaskComparison, styles: Mapping[str, Look]) -> Iterator[Figure]:
    """Accuracy at other lengths, without more training, and what a paper prints for them."""
    measured = {cell.name: _transfer_figure(cell) for cell in found.cells if cell.transfer}
    if not measured:
        return
    words = (
        "Accuracy of the best run by validation of each model at lengths that it was not trained at, and its "
        "validation accuracy at the length of its training."
    )
    whole = overlay("Accuracy without more training", measured, _cell_looks(found, styles))
    if any(isinstance(part, Curve) and part.hollow for part in whole.parts):
        words += " Open marks: as printed in the paper."
    lengths = [length for part in whole.parts if isinstance(part, Curve) for length in part.x]
    yield replace(_grouped(whole, found), caption=words, x=length_axis("T of the evaluation", lengths), wide=True)


def _transfer_figure(cell: SeedRuns) -> Figure:
    points = {**_trained_at(cell), **{point.length: point.accuracy for point in cell.transfer}}
    shown = dict(sorted(points.items()))
    curves = [Curve(cell.name, list(shown), list(shown.values()), "both")]
    printed = {length: told.accuracy for length in shown if (told := cell.printed(length)) is not None}
    if printed:
        curves.append(Curve("printed", list(printed), list(printed.values()), "marks", hollow=True))
    return Figure("", "", tuple(curves), length_axis("T of the evaluation", list(shown)), share_axis("accuracy"))


def _trained_at(cell: SeedRuns) -> dict[int, float | None]:
    """The length of training, and what the run that was measured at other lengths reached there."""
    for run in cell.runs:
        if cell.length is not None and str(run.folder) == cell.transfer[0].run:
            return {cell.length: run.accuracy}
    return {}


def _reach(found: TaskComparison, styles: Mapping[str, Look]) -> Iterator[Figure]:
    """Gradient against distance, for every measured model on one axis."""
    measured = {
        cell.name: cell.weights.gradient_reach.figures()[0]
        for cell in found.cells
        if cell.weights.gradient_reach is not None
    }
    if measured:
        title = "How far back the gradient of the loss reaches"
        yield _grouped(overlay(title, measured, _cell_looks(found, styles)), found)


def _costs(found: TaskComparison, styles: Mapping[str, Look]) -> Iterator[Figure]:
    """Time, memory, state and operations against T for one sequence, with the fitted growth."""
    by_title: dict[str, dict[str, Figure]] = {}
    chosen: dict[str, Look] = {}
    for label in found.labels:
        # The length of the training does not matter: the cost was measured at lengths of its own.
        cells = [cell for cell in found.cells if cell.label == label and cell.weights.cost is not None]
        if not cells or cells[0].weights.cost is None:
            continue
        name = cells[0].name
        if len(cells) > 1:
            name = cells[0].short
        chosen[name] = styles[label]
        for figure in cells[0].weights.cost.figures():
            by_title.setdefault(figure.title, {})[name] = _of_group(figure, label)
    for title, measured in by_title.items():
        whole = overlay(title, measured, chosen)
        orders = folded({name: figure.caption for name, figure in measured.items()})
        words = f"For one sequence: marks are measured, lines are a + b T + c T².\n{orders}."
        yield replace(whole, caption=words)


def _of_group(figure: Figure, label: str) -> Figure:
    """The same, with curves that belong to the switch of a model."""
    return _regrouped(figure, lambda group: label)


def folded(told: Mapping[str, str]) -> str:
    """Names with what is said of them; what is said of all alike is said once.

    Example:
        >>> folded({"LSTM": "linear", "GRU": "linear"}), folded({"LSTM": "linear", "MemRNN": "quadratic"})
        ('Both models: linear', 'LSTM: linear; MemRNN: quadratic')
    """
    if len(told) > 1 and len(set(told.values())) == 1:
        return f"{all_of(len(told), 'model')}: {next(iter(told.values()))}"
    return "; ".join(f"{name}: {words}" for name, words in told.items())


def _attention(found: TaskComparison) -> Iterator[Figure]:
    """What each measured model attends to in one test sequence."""
    for cell in found.cells:
        measured = cell.weights.attention_map
        if measured is None:
            continue
        for figure in measured.figures():
            words = only_if(len(measured.maps) > 1, f"{figure.title}. ") + figure.caption
            yield replace(figure, title=cell.name, caption=words)


def _cell_looks(found: TaskComparison, styles: Mapping[str, Look]) -> dict[str, Look]:
    """The look of each model and length: colour and mark of the model, a dash for each of its lengths."""
    chosen = {}
    for label in found.labels:
        cells = [cell for cell in found.cells if cell.label == label]
        for cell, dash in zip(cells, itertools.cycle(DASHES), strict=False):
            chosen[cell.name] = styles[label]
            if len(cells) > 1:
                chosen[cell.name] = replace(styles[label], dash=dash)
    return chosen


def _grouped(whole: Figure, found: TaskComparison) -> Figure:
    """The same, with curves that belong to the switches of their models, and a legend if lengths share a model."""
    models = {cell.name: cell.label for cell in found.cells}
    grouped = _regrouped(whole, lambda group: models.get(group, group))
    return replace(grouped, legend=len(models) > len(found.labels))


def _regrouped(figure: Figure, rename: Callable[[str], str]) -> Figure:
    """The same, with curves that belong to other switches."""
    parts = []
    for part in figure.parts:
        if isinstance(part, Curve):
            part = replace(part, group=rename(part.group))
        parts.append(part)
    return replace(figure, parts=tuple(parts))
