"""The page: first screen, sections, problems; one file with style, script and data in it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import remanence
from remanence.report._comparison import Comparison, compare
from remanence.report._drawing import Figure, looks
from remanence.report._inputs import Findings, find_results
from remanence.report._measure import measure_missing
from remanence.report._parts import Page, Section
from remanence.report._records import record_comparisons, record_curves
from remanence.report._runs import Problem
from remanence.report._sections import sections
from remanence.report._tables import dot, escape
from remanence.report._words import enumerated, number_of

HERE = Path(__file__).parent
FIRST_SCREEN = 6
"""Sentences of a section that the first screen shows."""


def write_report(
    paths: Sequence[str | Path],
    out: str | Path,
    *,
    measure: bool = True,
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """Writes one self-contained HTML page about results.

    Weights are measured first, where that was not done: the results go into ``probes.json`` in the folders of the runs.
    The page itself is a function of the files alone: the same files give the same bytes.

    Args:
        paths: run folders, folders that hold runs or JSON files, and JSON files of ``remanence probe``, ``mi``,
            ``verify`` or stored experiments.
        out: the file to write.
        measure: whether to measure weights that have not been measured; without it only files are read.
        say: is told what is measured.

    Returns:
        The file.

    Raises:
        ValueError: If a path does not exist or holds no results.
        ImportError: If plotly, whose script the page carries, is missing.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     claims = Path(folder) / "verify.json"
        ...     _ = claims.write_text('[{"id": "notes/1.1", "paper": "notes", "verdict": "holds", "agrees": true}]')
        ...     write_report([claims], Path(folder) / "report.html").name
        'report.html'
    """
    out = Path(out)
    found = find_results(paths)
    if measure and measure_missing(paths, say):
        found = find_results(paths)
    text = make_page(found, out.parent)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    return out


def make_page(found: Findings, folder: Path) -> str:
    """The whole page as text.

    Args:
        found: what to show.
        folder: that the page will lie in; links are relative to it.
    """
    comparisons = compare(found.runs, found.comparisons)
    comparisons += [made for place, record in found.records for made in record_comparisons(place, record)]
    page = Page(folder, looks(_names(found, comparisons)))
    parts = sections(page, found, comparisons)
    problems = [*found.problems, *page.problems]
    title = enumerated([part.heading for part in parts]) or "Nothing could be read"
    body = "".join((_first_screen(title, parts, problems), *map(_section, parts), _problems(problems), _footer()))
    return _document(title, body, page.figures)


def _names(found: Findings, comparisons: Sequence[Comparison]) -> list[str]:
    """Everything that has a colour: models, then the files and records that curves belong to."""
    models = sorted({label for comparison in comparisons for label in comparison.labels})
    stored = [curve.place for _, record in found.records for curve in record_curves(record.get("results"))]
    return [*models, *(curve.place for curve in found.curves), *stored]


def _first_screen(title: str, parts: Sequence[Section], problems: Sequence[Problem]) -> str:
    links = "".join(f'<a href="#{part.name}"><bdi>{escape(part.heading)}</bdi></a>' for part in parts)
    warning = ""
    if problems:
        amount = number_of(len(problems), "part")
        warning = f'<p class="note"><a href="#problems">{amount} could not be read</a>; the rest is shown.</p>'
    switch = '<button type="button" id="theme" aria-label="Switch between light and dark">◐</button>'
    return (
        '<header><div class="bar"><span class="brand">remanence</span>'
        f'<nav aria-label="Sections">{links}</nav>{switch}</div>'
        f"<h1><bdi>{escape(parts[0].headline if parts else title)}</bdi></h1>{warning}"
        f"{''.join(_findings(part, place) for place, part in enumerate(parts))}</header>"
    )


def _findings(part: Section, place: int) -> str:
    items = "".join(f"<li>{dot(colour)}<bdi>{escape(text)}</bdi></li>" for text, colour in part.findings[:FIRST_SCREEN])
    more = len(part.findings) - FIRST_SCREEN
    link = f'<li><a href="#{part.name}">and {number_of(more, "more finding")}</a></li>' if more > 0 else ""
    heading = f'<p class="headline"><bdi>{escape(part.headline)}</bdi></p>' if place else ""
    return f'{heading}<ul class="findings">{items}{link}</ul>'


def _section(part: Section) -> str:
    return f'<section id="{part.name}"><h2><bdi>{escape(part.heading)}</bdi></h2>{part.body}</section>'


def _problems(problems: Sequence[Problem]) -> str:
    if not problems:
        return ""
    items = "".join(f"<li><code>{escape(p.place)}</code> <bdi>{escape(p.text)}</bdi></li>" for p in problems)
    return f'<section id="problems"><h2>What could not be read</h2><ul>{items}</ul></section>'


def _footer() -> str:
    return f"<footer>Written by remanence {escape(remanence.__version__)} from result files alone.</footer>"


def _document(title: str, body: str, figures: Sequence[Figure]) -> str:
    scripts = [_harmless(_plotly()), _harmless((HERE / "page.js").read_text(encoding="utf-8"))]
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    # Nothing may be fetched, and no script may run but these two, whatever the result files hold.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src {hashes}"
    style = (HERE / "page.css").read_text(encoding="utf-8")
    data = json.dumps([_drawn(figure) for figure in figures], separators=(",", ":"), allow_nan=False)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} – remanence</title><style>{style}</style></head><body>{body}"
        f'<script type="application/json" id="figures">{_harmless_json(data)}</script>'
        f"{''.join(f'<script>{script}</script>' for script in scripts)}</body></html>\n"
    )


def _drawn(figure: Figure) -> dict[str, object]:
    return {name: value for name, value in asdict(figure).items() if name in ("data", "layout")}


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError("`report` needs plotly: pip install 'remanence[report]'") from error
    return get_plotlyjs()


def _harmless(script: str) -> str:
    """A script that does not end its own tag."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _harmless_json(text: str) -> str:
    """JSON in which no tag begins or ends; the same values."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
