"""Pictures of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remanence.report._attention_figures import attention_figures
from remanence.report._comparison import Cell, Comparison
from remanence.report._drawing import Figure, Look, Trace, axis, length_axis, line, log_axis, thinned
from remanence.report._runs import RunRecord
from remanence.report._words import as_number

NEAR = 0.25
"""How far off a measured cost, relative to it, a fitted growth may be to be believed."""


def comparison_figures(found: Comparison, styles: Mapping[str, Look]) -> dict[str, list[Figure]]:
    """All pictures of a comparison that there are numbers for, by the heading they stand under.

    Args:
        found: what was compared.
        styles: how each model looks.

    Example:
        >>> comparison_figures(Comparison("copy", {}, ()), {})
        {}
    """
    parts = {
        "Learning": learning(found, styles),
        "Other lengths": transfer(found, styles),
        "Gradient reach": reach(found, styles),
        "Cost": costs(found, styles),
        "Attention": attention(found),
    }
    return {heading: figures for heading, figures in parts.items() if figures}


def learning(found: Comparison, styles: Mapping[str, Look]) -> list[Figure]:
    """Accuracy and loss against updates, a thin curve for each seed."""
    figures = []
    for length in found.lengths:
        cells = [cell for cell in found.cells if cell.length == length]
        at = "" if length is None else f" at T = {length:,}"
        for metric in ("accuracy", "loss"):
            data = [trace for cell in cells for run in cell.runs if (trace := _curve(cell, run, metric, styles))]
            if any(value is not None for trace in data for value in trace["y"]):
                figures.append(_learning(metric, at, data))
    return figures


def _learning(metric: str, at: str, data: list[Trace]) -> Figure:
    share = {"tickformat": ".0%", "range": [-0.02, 1.04]} if metric == "accuracy" else {}
    name = f"validation {metric}"
    y = axis(name, **share) if metric == "accuracy" else log_axis(name, [v for trace in data for v in trace["y"]])
    says = f"Validation {metric} against updates{at}; one curve per run, the seeds of a model in one colour."
    return Figure(f"{metric.capitalize()}{at}", says, data, {"xaxis": axis("updates"), "yaxis": y})


def _curve(cell: Cell, run: RunRecord, metric: str, styles: Mapping[str, Look]) -> Trace | None:
    lines = thinned(run.validation or run.training)
    if not lines:
        return None
    state = "" if run.status == "done" else f", {run.status}"
    return line(
        cell.label,
        styles[cell.label],
        [entry["update"] for entry in lines],
        [entry.get(metric) for entry in lines],
        name=f"{cell.label}, seed {run.seed}{state}",
        hover="update %{x:,}: " + ("%{y:.1%}" if metric == "accuracy" else "%{y:.4g}"),
        line={"color": styles[cell.label].colour, "dash": styles[cell.label].dash, "width": 1.5},
        opacity=0.85,
    )


def transfer(found: Comparison, styles: Mapping[str, Look]) -> list[Figure]:
    """Accuracy at other lengths, without more training, and what a document prints for them."""
    data = []
    for cell in (cell for cell in found.cells if cell.transfer):
        style, hover = styles[cell.label], "T = %{x:,}: %{y:.1%}"
        shown = dict(sorted({**_trained_at(cell), **{point.length: point.accuracy for point in cell.transfer}}.items()))
        x, y = list(shown), list(shown.values())
        data.append(line(cell.label, style, x, y, name=cell.name, hover=hover, mode="lines+markers"))
        printed = [(length, cell.printed(length)) for length in x]
        known = [(length, cell.accuracy) for length, cell in printed if cell is not None]
        if known:
            marks = {"color": style.colour, "symbol": f"{style.mark}-open", "size": 11}
            x, y = zip(*known, strict=True)
            data.append(
                line(cell.label, style, x, y, name=f"{cell.name}, printed", hover=hover, mode="markers", marker=marks)
            )
    if not data:
        return []
    says = (
        "Accuracy of the best run by validation of each model at lengths that it was not trained at, and its "
        "validation accuracy at the length of its training."
    )
    if any(trace["mode"] == "markers" for trace in data):
        says += " Open marks: as printed in the document."
    layout = {
        "xaxis": length_axis("T of the evaluation", [t for trace in data for t in trace["x"]]),
        "yaxis": axis("accuracy", tickformat=".0%", range=[-0.02, 1.04]),
    }
    return [Figure("Accuracy without more training", says, data, layout, wide=True)]


def _trained_at(cell: Cell) -> dict[int, float | None]:
    """The length of training, and what the run that was measured at other lengths reached there."""
    accuracies = [run.accuracy for run in cell.runs if str(run.folder) == cell.transfer[0].run]
    return {} if cell.length is None or not accuracies else {cell.length: accuracies[0]}


def reach(found: Comparison, styles: Mapping[str, Look]) -> list[Figure]:
    """Gradient against distance, for every measured model on one axis."""
    data, verdicts = [], []
    for cell in found.cells:
        result = cell.probe("gradient_reach")
        if result is None or not isinstance(result.get("log_norm"), list):
            continue
        far = thinned(
            [{"d": d, "n": n} for d, n in zip(result.get("distance", []), result["log_norm"], strict=False)], 400
        )
        x, y = [point["d"] for point in far], [point["n"] for point in far]
        data.append(line(cell.label, styles[cell.label], x, y, name=cell.name, hover="%{x:,} steps back: %{y:.3g}"))
        verdicts.append(f"{cell.name}: {result.get('verdict', '')}")
    if not data:
        return []
    layout = {"xaxis": axis("steps before the end"), "yaxis": axis("ln |gradient|")}
    return [Figure("How far back the gradient of the loss reaches", "\n".join(verdicts), data, layout, wide=True)]


_COSTS = {
    "seconds": ("Time", "seconds, forward and backward", "%{y:.3s}s"),
    "peak_bytes": ("Memory", "bytes, at the peak of a training step", "%{y:.3s}B"),
    "state_bytes": ("State", "bytes carried from step to step", "%{y:.3s}B"),
}


def costs(found: Comparison, styles: Mapping[str, Look]) -> list[Figure]:
    """Time, memory and state against T for one sequence, with the fitted growth."""
    figures = []
    for measure, (title, unit, hover) in _COSTS.items():
        data, orders = [], []
        for cell in found.cells:
            result = cell.probe("cost")
            values = (result or {}).get(measure)
            if not result or not isinstance(values, list) or not any(as_number(value) for value in values):
                continue
            style, lengths = styles[cell.label], result.get("lengths", [])
            marks = line(
                cell.label, style, lengths, values, name=cell.name, hover="T = %{x:,}: " + hover, mode="markers"
            )
            growth = result.get("growth", {}).get(measure, {})
            fitted = _fitted(growth, lengths)
            close = all(_near(fit, as_number(value)) for fit, value in zip(fitted, values, strict=False))
            close &= measure != "seconds" or growth.get("order") == _order(result, "operations")
            drawn = line(cell.label, style, lengths, fitted, name=f"{cell.name}, fit", opacity=0.6)
            data += [marks, drawn] if close else [marks]
            orders.append(f"{cell.name}: {growth.get('order', 'unknown') if close else 'too noisy to say'}")
        if data:
            says = f"For one sequence: marks are measured, lines are a + b T + c T².\n{'; '.join(orders)}."
            lengths = [t for trace in data for t in trace["x"]]
            y = log_axis(unit, [v for trace in data for v in trace["y"]])
            layout = {"xaxis": length_axis("T, steps", lengths), "yaxis": y}
            figures.append(Figure(title, says, data, layout))
    return figures


def _fitted(growth: Mapping[str, Any], lengths: Sequence[float]) -> list[float | None]:
    terms = [as_number(growth.get(name)) for name in ("constant", "linear", "quadratic")]
    if any(term is None for term in terms):
        return [None] * len(lengths)
    a, b, c = (term or 0.0 for term in terms)
    return [a + b * t + c * t * t for t in lengths]


def _order(result: Mapping[str, Any], measure: str) -> Any:
    """How a measure grows. Times that do not grow as the operations do were disturbed by something else."""
    return result.get("growth", {}).get(measure, {}).get("order")


def _near(fit: float | None, value: float | None) -> bool:
    return fit is not None and value is not None and abs(fit - value) <= NEAR * abs(value)


def attention(found: Comparison) -> list[Figure]:
    """What each measured model attends to in one test sequence."""
    return [
        figure
        for cell in found.cells
        if (result := cell.probe("attention_map")) is not None
        for figure in attention_figures(cell.name, result)
    ]
