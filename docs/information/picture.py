"""Curves on two axes as SVG, by the package's own figures."""

from pathlib import Path

from remanence.figures import Axis, Curve, Figure, Look, log_axis, looks, to_svg

Points = tuple[list[float], list[float]]


def draw(path: Path, curves: dict[str, Points], x: str, y: str, *, log_x=True, log_y=True, dashed=()) -> None:
    """Writes one picture; curves named in ``dashed`` are drawn so."""
    chosen = looks(list(curves))
    parts = []
    for name, (places, heights) in curves.items():
        look = Look(chosen[name].colour, dash="dash") if name in dashed else chosen[name]
        parts.append(Curve(name, places, heights, look=look))
    across = [place for places, _ in curves.values() for place in places]
    up = [height for _, heights in curves.values() for height in heights]
    axes = (log_axis(x, across) if log_x else Axis(x), log_axis(y, up) if log_y else Axis(y))
    path.write_text(to_svg(Figure(path.stem, "", tuple(parts), *axes)), encoding="utf-8")
