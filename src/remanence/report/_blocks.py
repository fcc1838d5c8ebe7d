"""What a section of the page is made of: values without HTML, drawn by the macro of their name in ``blocks.html``."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from remanence.figures import Figure, Look
from remanence.report._numbers import ABSENT, as_number, only_if, sortable

SHORT = 24
"""Letters of a name that is not broken into lines."""


@dataclass(frozen=True)
class Text:
    """A paragraph.

    Args:
        text: what it says.
        kind: ``""``, ``"lead"`` (below a heading), ``"small"`` or ``"note"`` (a warning).

    Example:
        >>> Text("All runs ended.").kind
        ''
    """

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Heading:
    """A heading inside a section.

    Example:
        >>> Heading("Learning").text
        'Learning'
    """

    text: str


@dataclass(frozen=True)
class Entry:
    """One entry of a table.

    Args:
        text: what is shown.
        value: what it is sorted by, and the number as the files have it; the text itself if None.
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

    @property
    def key(self) -> str:
        """What the page's script sorts by."""
        if self.value is None:
            return sortable(self.text)
        return sortable(self.value)

    @property
    def is_number(self) -> bool:
        """Whether it is sorted by a number."""
        return as_number(self.value) is not None

    @property
    def is_short(self) -> bool:
        """Whether it stays on one line."""
        return len(self.text) <= SHORT


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        name: its heading.
        unit: below the heading.
        numeric: whether entries are set to the right and sorted as numbers.

    Example:
        >>> Column("state", "bytes").label
        'state, bytes'
    """

    name: str
    unit: str = ""
    numeric: bool = True

    @property
    def label(self) -> str:
        """Name and unit, for narrow screens, where each entry names its column."""
        return self.name + only_if(self.unit, f", {self.unit}")


@dataclass(frozen=True)
class Table:
    """A table whose columns sort; columns in which no row has anything are left out.

    Args:
        columns: from left to right.
        rows: entries, one per column.
        caption: what it shows, for those who cannot see it.
        kind: a class of the style sheet: ``"cells"``, ``"runs"`` or ``"claims"``.
        filters: for each row, attributes to choose rows by; empty for a table without choices.

    Example:
        >>> table = Table((Column("a"), Column("b")), [[Entry("1"), Entry("–")]], "numbers")
        >>> [column.name for column in table.shown_columns]
        ['a']
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Entry]]
    caption: str
    kind: str = "cells"
    filters: Sequence[Mapping[str, str]] = ()

    @property
    def _kept(self) -> list[int]:
        return [place for place in range(len(self.columns)) if any(row[place].text != ABSENT for row in self.rows)]

    @property
    def shown_columns(self) -> list[Column]:
        """Columns that say anything."""
        return [self.columns[place] for place in self._kept]

    @property
    def shown_rows(self) -> list[tuple[Mapping[str, str], list[tuple[Column, Entry]]]]:
        """Attributes and entries of every row, entries with their columns."""
        kept = self._kept
        filters = self.filters or [{}] * len(self.rows)
        return [
            (attributes, [(self.columns[place], row[place]) for place in kept])
            for attributes, row in zip(filters, self.rows, strict=True)
        ]

    @property
    def choices(self) -> dict[str, list[str]]:
        """The values of every attribute that rows can be chosen by."""
        names = dict.fromkeys(name for attributes in self.filters for name in attributes)
        return {name: sorted({attributes.get(name, "") for attributes in self.filters}) for name in names}


@dataclass(frozen=True)
class Figures:
    """Pictures side by side, as many in a row as fit.

    Example:
        >>> Figures([Figure("Loss", "It falls.")]).figures[0].title
        'Loss'
    """

    figures: Sequence[Figure]


@dataclass(frozen=True)
class Switches:
    """Buttons that show and hide groups of curves, each with its look, in all pictures of a section.

    Example:
        >>> list(Switches({"LSTM": Look()}).looks)
        ['LSTM']
    """

    looks: Mapping[str, Look]


@dataclass(frozen=True)
class Facts:
    """Names and values.

    Args:
        pairs: of name and value.
        long: whether each has a line of its own.

    Example:
        >>> Facts([("torch", "2.13")]).pairs[0]
        ('torch', '2.13')
    """

    pairs: Sequence[tuple[str, str]]
    long: bool = False


@dataclass(frozen=True)
class Code:
    """A command or a settings file.

    Example:
        >>> Code("remanence train copy").text
        'remanence train copy'
    """

    text: str


@dataclass(frozen=True)
class Film:
    """An animated picture, and what is said below it.

    Example:
        >>> Film(b"GIF89a", "one episode").source
        'data:image/gif;base64,R0lGODlh'
    """

    gif: bytes
    words: str

    @property
    def source(self) -> str:
        """The picture inside of its own address, so that the page needs no other file."""
        return "data:image/gif;base64," + base64.b64encode(self.gif).decode()


@dataclass(frozen=True)
class Details:
    """Blocks that are folded until the reader opens them.

    Example:
        >>> Details("more", [Text("x")]).summary
        'more'
    """

    summary: str
    blocks: Sequence[Block]


Block: TypeAlias = Text | Heading | Table | Figures | Switches | Facts | Code | Film | Details


@dataclass(frozen=True)
class Finding:
    """One sentence of the first screen.

    Args:
        text: what was found.
        colour: of what it speaks of; empty for none.

    Example:
        >>> Finding("LSTM solves Copy.").colour
        ''
    """

    text: str
    colour: str = ""


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Args:
        name: of its place in the page, as ``"comparison-1"``.
        heading: above it.
        blocks: what it shows, from top to bottom.
        headline: what was found, in a few words; the heading if empty.
        findings: sentences for the first screen.

    Example:
        >>> Section("table-2", "Table 2", [Text("Printed beside measured.")]).headline
        ''
    """

    name: str
    heading: str
    blocks: Sequence[Block] = ()
    headline: str = ""
    findings: Sequence[Finding] = ()
