"""A page from sections: one HTML file with style, script and data in it."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import remanence
from remanence._wording import enumerated, number_of
from remanence.figures import Figure, compact, plotly_dict
from remanence.report._blocks import Block, Section
from remanence.runs import StorageError, replace_file

FIRST_SCREEN = 6
"""Sentences of a section that the first screen shows."""


@dataclass(frozen=True)
class Problem:
    """A file that could not be read, and what is wrong with it.

    Example:
        >>> Problem("a.json", "is no JSON").place
        'a.json'
    """

    place: str
    text: str


@dataclass
class Page:
    """A self-contained HTML page in the making.

    Args:
        sections: from top to bottom.
        problems: what could not be read; named at the end and counted at the top.
        title: of the page; made of the sections' headings if empty.

    Example:
        >>> import tempfile
        >>> from remanence.figures import Axis, Curve, Figure
        >>> from remanence.report import Column, Entry, Facts, Figures, Table, Text
        >>> rows = [[Entry("LSTM"), Entry("82 %", 0.82), Entry("20.5 %", 0.205)]]
        >>> table = Table((Column("model", numeric=False), Column("printed"), Column("measured")), rows, "Table 2")
        >>> loss = Figure("Loss", "It falls.", (Curve("LSTM", [1, 2], [2.0, 1.0]),), Axis("updates"), Axis("loss"))
        >>> blocks = [Text("Denoise, 3 seeds."), table, Figures([loss]), Facts([("updates", "10,000")])]
        >>> page = Page([Section("table-2", "Table 2", blocks, headline="LSTM falls short of its printed number")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page.write(Path(folder) / "page.html").name  # doctest: +SKIP
        'page.html'
    """

    sections: Sequence[Section] = ()
    problems: Sequence[Problem] = ()
    title: str = ""
    _figures: list[Figure] = field(default_factory=list, repr=False)

    def write(self, path: str | Path) -> Path:
        """Writes the page; an existing symbolic link is replaced and not followed.

        Args:
            path: the file; its folder is made if it is missing.

        Raises:
            ImportError: If plotly, whose script the page carries, is missing.
            OSError: If it cannot be written.
        """
        path = Path(path)
        text = self.render()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            replace_file(path, text.encode(errors="backslashreplace"))  # the name of a folder need not be text
        except StorageError as error:
            raise OSError(f"{path} cannot be written: {error.__cause__}") from error
        return path

    def render(self) -> str:
        """The whole page as text: the same sections give the same bytes."""
        self._figures.clear()
        environment = _environment()

        def render(block: Block) -> Markup:
            return getattr(macros, type(block).__name__.lower())(block)

        given = {"place_figure": self._place_figure, "render": render}
        macros = environment.get_template("blocks.html").make_module(given)
        scripts = [_harmless(plotly_script()), _harmless(_source("page.js"))]
        return environment.get_template("page.html").render(
            page=self,
            blocks=macros,
            render=render,
            title=self.title or enumerated([part.heading for part in self.sections]) or "Nothing could be read",
            first_screen=FIRST_SCREEN,
            figures_json=self._figures_json,
            number_of=number_of,
            scripts=[Markup(script) for script in scripts],
            digests=[_digest(script) for script in scripts],
            style=Markup(_source("page.css")),
            version=remanence.__version__,
        )  # fmt: skip

    def _place_figure(self, figure: Figure) -> int:
        """Keeps a figure for the script, and gives its number."""
        self._figures.append(figure)
        return len(self._figures) - 1

    def _figures_json(self) -> Markup:
        """All figures as JSON in which no tag begins or ends; the same values."""
        drawn = [plotly_dict(compact(figure)) for figure in self._figures]
        text = json.dumps(drawn, separators=(",", ":"), allow_nan=False)
        return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def link_from(folder: Path, target: str | Path) -> str:
    """A link from a page in a folder to a file or folder; empty if that is not there.

    Links are relative, so that page and files can be moved together.

    Example:
        >>> link_from(Path("."), "no such file")
        ''
    """
    if not Path(target).exists():
        return ""
    return relative_link(os.path.relpath(target, folder))


def relative_link(path: str) -> str:
    """A path as a link; special characters do not lead elsewhere.

    Example:
        >>> relative_link("runs/a b#c")
        'runs/a%20b%23c'
    """
    quoted = quote(os.fsencode(path.replace("\\", "/")))
    if ":" in path and not quoted.startswith(("/", ".")):
        return f"./{quoted}"
    return quoted


@functools.cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("remanence.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _source(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def plotly_script() -> str:
    """plotly.js, which the page carries."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError("`report` needs plotly: pip install 'remanence[report]'") from error
    return get_plotlyjs()


def _harmless(script: str) -> str:
    """A script that does not end its own tag."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
