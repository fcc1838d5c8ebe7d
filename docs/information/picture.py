"""Curves on logarithmic axes as SVG, without a plotting library."""

import math
from pathlib import Path

WIDTH, HEIGHT = 660, 380
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 16, 44
COLOURS = (
    "#333333",
    "#1f5f8b",
    "#c8553d",
    "#588157",
    "#7b5ea7",
    "#b08900",
    "#4aa3a2",
    "#a23b72",
    "#888888",
    "#2ca02c",
    "#dd99aa",
)

Curve = tuple[list[float], list[float]]


class Axis:
    """Maps a range onto pixels; logarithmic or not."""

    def __init__(self, values, first, last, logarithmic):
        self.logarithmic = logarithmic
        self.low, self.high = self._bounds(values)
        self.first, self.last = first, last

    def _bounds(self, values):
        if not self.logarithmic:
            return min(0.0, *values), max(values) * 1.05
        return min(values) / 1.15, max(values) * 1.15

    def scale(self, value):
        return math.log10(value) if self.logarithmic else value

    def at(self, value):
        share = (self.scale(value) - self.scale(self.low)) / (self.scale(self.high) - self.scale(self.low))
        return round(self.first + share * (self.last - self.first), 1)

    def ticks(self):
        if not self.logarithmic:
            step = 10 ** math.floor(math.log10(self.high - self.low))
            step /= {1: 5, 2: 2, 3: 2, 4: 2}.get(int((self.high - self.low) / step), 1)
            return [step * number for number in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        decades = [10.0**power for power in range(first, last + 1)]
        if len(decades) >= 3:
            return decades
        fine = [digit * 10.0**power for power in range(first - 1, last + 1) for digit in (1, 2, 5)]
        return [tick for tick in fine if self.low <= tick <= self.high]


def draw(path: Path, curves: dict[str, Curve], x: str, y: str, *, log_x=True, log_y=True, dashed=()) -> None:
    """Writes one picture; curves named in ``dashed`` are drawn so."""
    kept = {name: _positive(curve, log_x, log_y) for name, curve in curves.items()}
    across = Axis([a for xs, _ in kept.values() for a in xs], LEFT, WIDTH - RIGHT, log_x)
    up = Axis([b for _, ys in kept.values() for b in ys], HEIGHT - BOTTOM, TOP, log_y)
    parts = [*_frame(across, up, x, y)]
    for number, (name, (xs, ys)) in enumerate(kept.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{across.at(a)},{up.at(b)}" for a, b in zip(xs, ys, strict=True))
        dash = ' stroke-dasharray="5 4"' if name in dashed else ""
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>')
        row = TOP + 10 + 18 * number
        edge = WIDTH - RIGHT + 12
        key = f'<line x1="{edge}" y1="{row}" x2="{edge + 22}" y2="{row}" stroke="{colour}" stroke-width="2"{dash}/>'
        parts.append(key)
        parts.append(f'<text x="{edge + 28}" y="{row + 4}">{name}</text>')
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    path.write_text("\n".join([head, ground, *parts, "</svg>"]) + "\n", encoding="utf-8")


def _positive(curve, log_x, log_y):
    pairs = [(a, b) for a, b in zip(*curve, strict=True) if b is not None]
    pairs = [(a, b) for a, b in pairs if (a > 0 or not log_x) and (b > 0 or not log_y)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _frame(across, up, x, y):
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    yield f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" fill="none" stroke="#999"/>'
    for tick in across.ticks():
        yield f'<line x1="{across.at(tick)}" y1="{bottom}" x2="{across.at(tick)}" y2="{TOP}" stroke="#eee"/>'
        yield f'<text x="{across.at(tick)}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>'
    for tick in up.ticks():
        yield f'<line x1="{LEFT}" y1="{up.at(tick)}" x2="{right}" y2="{up.at(tick)}" stroke="#eee"/>'
        yield f'<text x="{LEFT - 6}" y="{up.at(tick) + 4}" text-anchor="end">{tick:g}</text>'
    yield f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{x}</text>'
    middle = (TOP + bottom) / 2
    yield f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{y}</text>'
