"""What the sections of the page are made of."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from remanence.report._drawing import Figure, Look
from remanence.report._runs import Problem
from remanence.report._tables import dot, escape, relative_link


@dataclass
class Page:
    """A page in the making.

    Args:
        folder: that the page will lie in; links are relative to it.
        styles: how each model looks.
    """

    folder: Path
    styles: Mapping[str, Look]
    figures: list[Figure] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def link(self, path: str | Path) -> str:
        """A link from the page to a file or folder; empty if that is not there."""
        return relative_link(os.path.relpath(path, self.folder)) if Path(path).exists() else ""

    def plots(self, figures: Sequence[Figure]) -> str:
        """Places for pictures, which the script draws."""
        kind = "plots three" if len(figures) == 3 else "plots"
        return f'<div class="{kind}">{"".join(self._plot(figure) for figure in figures)}</div>'

    def _plot(self, figure: Figure) -> str:
        self.figures.append(figure)
        number, wide = len(self.figures) - 1, ' class="wide"' if figure.wide else ""
        label = f"{figure.title}. {figure.says}"
        return (
            f"<figure{wide}><h4><bdi>{escape(figure.title)}</bdi></h4>"
            f'<div class="plot" role="img" aria-label="{escape(label)}" data-figure="{number}"></div>'
            f"<figcaption><bdi>{escape(figure.says)}</bdi></figcaption></figure>"
        )

    def legend(self, labels: Sequence[str]) -> str:
        """Switches that show and hide a model in all pictures of a section."""
        switches = "".join(
            f'<button type="button" aria-pressed="true" data-model="{escape(label)}">'
            f"{dot(self.styles[label].colour)}<bdi>{escape(label)}</bdi></button>"
            for label in labels
        )
        return f'<div class="legend" role="group" aria-label="Show or hide in the pictures">{switches}</div>'


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Args:
        name: of its place in the page.
        heading: above it.
        headline: what came out, in a few words.
        findings: sentences for the first screen, each with the colour of what it speaks of.
        body: HTML.
    """

    name: str
    heading: str
    headline: str
    findings: list[tuple[str, str]]
    body: str
