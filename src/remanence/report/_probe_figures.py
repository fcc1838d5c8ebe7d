"""Pictures of single results of probes, from their dictionaries, and of mutual-information curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remanence.report._attention_figures import attention_figures
from remanence.report._drawing import Figure, Look, Trace, axis, inert, length_axis, line, log_axis, looks
from remanence.report._inputs import Probed
from remanence.report._words import as_number

Values = Mapping[str, Any]
CROWD = 6
"""Curves that can be drawn with all that belongs to them."""


def probe_figures(probe: Probed) -> list[Figure]:
    """The picture of a probe's result; none if it lacks the numbers.

    Args:
        probe: what was found in a file.

    Raises:
        ValueError: If the numbers are not what that probe gives.

    Example:
        >>> found = Probed("x.json", "truncation_gap", {"ks": [1, 2], "output": [1.0, 0.5], "verdict": "falls"})
        >>> [figure.says for figure in probe_figures(found)]
        ['falls.']
    """
    if probe.kind == "attention_map":
        return attention_figures(title(probe), probe.values)
    try:
        data, layout = DRAW[probe.kind](probe.values)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"its {probe.kind} lacks what that probe gives ({error!r})") from error
    return [Figure(title(probe), f"{probe.verdict}.", data, layout)] if data else []


def title(probe: Probed) -> str:
    """Name of the probe, in words.

    Example:
        >>> title(Probed("x.json", "gradient_reach", {}))
        'Gradient reach'
    """
    return probe.kind.replace("_", " ").capitalize()


def _lines(curves: Mapping[str, tuple[Sequence[Any], Sequence[Any]]], *, mode: str = "lines+markers") -> list[Trace]:
    """Curves with a legend, where there are several."""
    style = looks(list(curves))
    several = len(curves) > 1
    return [line(name, style[name], x, y, mode=mode, showlegend=several) for name, (x, y) in curves.items()]


def _reach(values: Values) -> tuple[list[Trace], dict[str, Any]]:
    data = _lines({"gradient": (values["distance"], values["log_norm"])}, mode="lines")
    return data, {"xaxis": axis("steps before the end"), "yaxis": axis("ln |gradient|")}


def _depth(values: Values) -> tuple[list[Trace], dict[str, Any]]:
    depth = [value if value >= 0 else None for value in reversed(values["depth"])]
    data = _lines({"depth": (range(len(depth)), depth)}, mode="lines")
    return data, {"xaxis": axis("steps before the end"), "yaxis": axis("Jacobians on the shortest way")}


def _paths(values: Values) -> tuple[list[Trace], dict[str, Any]]:
    sizes = [math.hypot(*(entry for row in part for entry in row)) for part in values["parts"]]
    data = _lines({"norm": (range(len(sizes)), [size or None for size in sizes])})
    return data, {"xaxis": axis("Jacobians"), "yaxis": axis("norm of the part", "log")}


def _cost(values: Values) -> tuple[list[Trace], dict[str, Any]]:
    curves = {}
    words = {"seconds": "time", "peak_bytes": "memory", "state_bytes": "state", "operations": "operations"}
    for name, word in words.items():
        first = as_number(values[name][0]) or 1.0
        curves[word] = (values["lengths"], [(as_number(value) or 0.0) / first or None for value in values[name]])
    return _lines(curves), {
        "xaxis": length_axis("T, steps", values["lengths"]),
        "yaxis": axis("relative to the shortest", "log"),
    }


def _tradeoff(values: Values) -> tuple[list[Trace], dict[str, Any]]:
    curves = {str(name): tuple(zip(*points, strict=True)) for name, points in values["points"].items() if points}
    data = _lines({name: (found[0], found[1]) for name, found in curves.items()})
    return data, {"xaxis": axis("bytes at the peak", "log"), "yaxis": axis("mean ln |gradient|")}


def _stability(values: Values) -> tuple[list[Trace], dict[str, Any]]:
    steps, exponent = range(101), as_number(values["lyapunov"])
    curves: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {}
    if exponent is not None and math.isfinite(exponent):
        curves["measured exponent"] = (steps, [math.exp(max(min(exponent * step, 200.0), -200.0)) for step in steps])
    if (factor := as_number(values["contraction"])) is not None:
        curves["proved"] = (steps, [factor**step or None for step in steps])
    return _lines(curves, mode="lines"), {"xaxis": axis("steps"), "yaxis": axis("difference of two states", "log")}


def _truncation(values: Values) -> tuple[list[Trace], dict[str, Any]]:
    names = [name for name in ("output", "gradient", "loss") if name in values]
    curves = {name: (values["ks"], [value or None for value in values[name]]) for name in names}
    return _lines(curves), {"xaxis": axis("k, steps kept", "log"), "yaxis": axis("gap, or loss", "log")}


def _demand(values: Values) -> tuple[list[Trace], dict[str, Any]]:
    bars = {"chance": values["chance"], "present input alone": values["memory_free"], "model": values.get("model")}
    known = {name: value for name, value in bars.items() if as_number(value) is not None}
    bar = {"type": "bar", "x": list(known), "y": list(known.values()), "marker": {"color": "#0072B2"}, "width": 0.5}
    shares = {"hovertemplate": "%{x}: %{y:.1%}<extra></extra>"}
    return [{**bar, **shares}], {
        "xaxis": axis("", "category"),
        "yaxis": axis("accuracy", tickformat=".0%", range=[0, 1]),
    }


DRAW: dict[str, Callable[[Values], tuple[list[Trace], dict[str, Any]]]] = {
    "gradient_reach": _reach,
    "dependency_depth": _depth,
    "gradient_paths": _paths,
    "cost": _cost,
    "tradeoff": _tradeoff,
    "stability": _stability,
    "truncation_gap": _truncation,
    "memory_demand": _demand,
}


def information_figure(curves: Sequence[Probed], styles: Mapping[str, Look]) -> Figure:
    """All mutual-information curves in one picture: estimates, intervals, floors and fits.

    Args:
        curves: results of ``mutual_information``, with ``fit`` if ``remanence mi`` made them.
        styles: how each file looks.

    Example:
        >>> information_figure([], {}).data
        []
    """
    data: list[Trace] = []
    whole = len(curves) <= CROWD
    for curve in curves:
        data += _information(curve, styles[curve.place], whole)
    says = "\n".join(f"{curve.place}: {curve.verdict}" for curve in curves if curve.verdict)
    parts = "Marks: estimates; bands: 95 % intervals; dotted: what pairs without any dependence reach; dashed: fits."
    if not whole:
        parts = "Marks: estimates. For so many curves intervals and floors are left out; the fits are in the table."
    x, y = ([v for trace in data for v in trace[name]] for name in ("x", "y"))
    layout = {"xaxis": log_axis("lag, symbols", x), "yaxis": log_axis("mutual information, nats", y)}
    return Figure("Mutual information against distance", f"{says}\n{parts}".strip(), data, layout, wide=True)


def _information(curve: Probed, look: Look, whole: bool) -> list[Trace]:
    values, lags = curve.values, curve.values["lags"]
    name = curve.place
    estimate = line(
        name, look, lags, _positive(values["values"]), hover="lag %{x:,}: %{y:.3g} nats", mode="lines+markers"
    )
    if not whole:
        return [estimate]
    dotted = {"color": look.colour, "dash": "dot", "width": 1}
    data = [estimate, line(name, look, lags, _positive(values["floor"]), name=f"{name}, floor", line=dotted)]
    band = [
        (lag, low, high) for lag, low, high in zip(lags, values.get("low", []), values.get("high", []), strict=False)
    ]
    shown = [(lag, low, high) for lag, low, high in band if (as_number(low) or 0.0) > 0 and as_number(high) is not None]
    if shown:
        data.insert(0, _band(name, look, shown))
    fitted = _law(values.get("fit"), lags)
    if fitted:
        dashed = {"color": look.colour, "dash": "dash", "width": 1.5}
        data.append(line(name, look, lags, _positive(fitted), name=f"{name}, fit", line=dashed))
    return data


def _positive(values: Sequence[Any]) -> list[float | None]:
    """What a logarithmic axis can show."""
    return [number if (number := as_number(value)) is not None and number > 0 else None for value in values]


def _band(name: str, look: Look, shown: Sequence[tuple[Any, Any, Any]]) -> Trace:
    lags, low, high = zip(*shown, strict=True)
    outline = {"x": [*lags, *reversed(lags)], "y": [*high, *reversed(low)]}
    area = {"fill": "toself", "fillcolor": look.colour + "2e", "line": {"width": 0}, "mode": "lines"}
    return {"type": "scatter", **outline, **area, "meta": {"model": name}, "name": inert(name), "hoverinfo": "skip"}


def _law(law: Any, lags: Sequence[float]) -> list[float]:
    """Values of a fitted law; none where there is no law."""
    if not isinstance(law, dict) or (amplitude := as_number(law.get("amplitude"))) is None:
        return []
    slope = as_number(law.get("slope")) or 0.0
    places = {"exponential": list(lags), "power": [math.log(lag) for lag in lags], "constant": [0.0 for _ in lags]}
    return [
        amplitude * math.exp(max(min(slope * place, 200.0), -200.0)) for place in places.get(str(law.get("law")), [])
    ]
