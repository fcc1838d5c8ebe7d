"""Tables whose columns sort, and the few other pieces of HTML; every text from outside is escaped here."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from remanence.report._words import ABSENT, as_number

SHORT = 24
"""Letters of a name that is not broken into lines."""


@dataclass(frozen=True)
class Entry:
    """One entry of a table.

    Args:
        text: what is shown.
        value: what it is sorted by, and the number as the files have it; the text itself unless told.
        link: a folder or file that it leads to, relative to the page.
        colour: of a dot before it.
        kind: a class of the style sheet.
        note: smaller, below it.

    Example:
        >>> Entry("50 %", 0.5).value
        0.5
    """

    text: str
    value: float | str | None = None
    link: str = ""
    colour: str = ""
    kind: str = ""
    note: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        name: its heading.
        unit: below the heading.
        numeric: whether entries are set to the right and sorted as numbers.
    """

    name: str
    unit: str = ""
    numeric: bool = True


def escape(text: Any) -> str:
    """A text that the page shows as it is, whatever is in it.

    Example:
        >>> escape("<script>")
        '&lt;script&gt;'
    """
    return html.escape(str(text), quote=True)


def table(columns: Sequence[Column], rows: Sequence[Sequence[Entry]], caption: str, kind: str = "") -> str:
    """A table with headings that sort.

    Args:
        columns: from left to right.
        rows: one entry for each column.
        caption: says what it is, for those who cannot see it.
        kind: a class of the style sheet.

    Example:
        >>> table([Column("T")], [[Entry("5", 5)]], "lengths").count("</tr>")
        2
    """
    head = "".join(_heading(column) for column in columns)
    body = "".join(_row(columns, row) for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="{escape(kind)}"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def without_empty(columns: Sequence[Column], rows: Sequence[Sequence[Entry]]) -> tuple[list[Column], list[list[Entry]]]:
    """Leaves out columns in which no row has anything.

    Example:
        >>> columns, rows = without_empty([Column("a"), Column("b")], [[Entry("1"), Entry(ABSENT)]])
        >>> [column.name for column in columns]
        ['a']
    """
    kept = [place for place in range(len(columns)) if any(row[place].text != ABSENT for row in rows)]
    return [columns[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _heading(column: Column) -> str:
    unit = f"<small>{escape(column.unit)}</small>" if column.unit else ""
    kind = ' class="number"' if column.numeric else ""
    return f'<th scope="col"{kind} aria-sort="none"><button type="button">{escape(column.name)}{unit}</button></th>'


def _row(columns: Sequence[Column], row: Sequence[Entry], attributes: Mapping[str, str] | None = None) -> str:
    cells = "".join(
        _entry(column, entry, first=not place) for place, (column, entry) in enumerate(zip(columns, row, strict=True))
    )
    extra = "".join(f' data-{name}="{escape(value)}"' for name, value in (attributes or {}).items())
    return f"<tr{extra}>{cells}</tr>"


def _entry(column: Column, entry: Entry, first: bool) -> str:
    value = entry.text if entry.value is None else entry.value
    kinds = " ".join(filter(None, ("number" if column.numeric else "", entry.kind)))
    tag = "th" if first else "td"
    scope = ' scope="row"' if first else ""
    sort = f' data-value="{escape(_sortable(value))}"' if not column.numeric or as_number(value) is not None else ""
    text = f"<bdi>{escape(entry.text)}</bdi>"
    if entry.link:
        text = f'<a href="{escape(entry.link)}">{text}</a>'
    if entry.colour:
        kind = "named short" if len(entry.text) <= SHORT else "named"
        text = f'<span class="{kind}">{dot(entry.colour)}{text}</span>'
    text += f'<small class="note-below"><bdi>{escape(entry.note)}</bdi></small>' if entry.note else ""
    label = f"{column.name}, {column.unit}" if column.unit else column.name
    return f'<{tag}{scope} class="{escape(kinds)}" data-label="{escape(label)}"{sort}>{text}</{tag}>'


def _sortable(value: Any) -> str:
    number = as_number(value)
    if number is None:
        return str(value)
    return repr(value) if math.isfinite(number) else "Infinity" if number > 0 else "-Infinity" if number < 0 else "NaN"


def dot(colour: str) -> str:
    """A dot in a model's colour.

    Example:
        >>> dot("")
        ''
    """
    return f'<span class="dot" style="--colour:{escape(colour)}" aria-hidden="true"></span>' if colour else ""


def filtered_table(
    columns: Sequence[Column], rows: Sequence[tuple[Mapping[str, str], Sequence[Entry]]], caption: str, kind: str
) -> str:
    """A table with a choice for every attribute of its rows, and a field to search in them.

    Args:
        columns: from left to right.
        rows: attributes to choose by, and entries.
        caption: as in :func:`table`.
        kind: as in :func:`table`.

    Example:
        >>> filtered_table([Column("id")], [({"paper": "kerg2020"}, [Entry("x")])], "claims", "").count("<select")
        1
    """
    names = list(dict.fromkeys(name for attributes, _ in rows for name in attributes))
    choices = "".join(_choice(name, sorted({attributes.get(name, "") for attributes, _ in rows})) for name in names)
    search = '<label>search <input type="search" data-search></label>'
    head = "".join(_heading(column) for column in columns)
    body = "".join(_row(columns, row, attributes) for attributes, row in rows)
    return (
        f'<div class="filtered"><form class="filters">{choices}{search}'
        f'<output aria-live="polite">{len(rows)} of {len(rows)}</output></form>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="{escape(kind)}"><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></div>"
    )


def _choice(name: str, values: Sequence[str]) -> str:
    options = "".join(f'<option value="{escape(value)}">{escape(value)}</option>' for value in values)
    every = f'<option value="">every {escape(name)}</option>'
    return f'<label>{escape(name)} <select data-filter="{escape(name)}">{every}{options}</select></label>'


def relative_link(path: str) -> str:
    """A path as a link; special characters do not lead elsewhere.

    Example:
        >>> relative_link("runs/a b#c")
        'runs/a%20b%23c'
    """
    quoted = quote(path.replace("\\", "/"))
    return quoted if quoted.startswith(("/", ".")) else f"./{quoted}" if ":" in path else quoted


def details(summary: str, inside: str) -> str:
    """Something that is shown when asked for.

    Example:
        >>> details("more", "<p>x</p>")
        '<details><summary>more</summary><p>x</p></details>'
    """
    return f"<details><summary>{escape(summary)}</summary>{inside}</details>"


def facts(pairs: Sequence[tuple[str, str]], kind: str = "facts") -> str:
    """Names and values; ``"facts long"`` gives each a line of its own.

    Example:
        >>> facts([("torch", "2")])
        '<dl class="facts"><div><dt>torch</dt><dd><bdi>2</bdi></dd></div></dl>'
    """
    inside = "".join(f"<div><dt>{escape(name)}</dt><dd><bdi>{escape(value)}</bdi></dd></div>" for name, value in pairs)
    return f'<dl class="{kind}">{inside}</dl>'
