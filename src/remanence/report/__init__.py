"""Results as one self-contained HTML page: runs, comparisons, probes, information curves, claims, experiments.

:func:`write_report` reads result files. Whoever has values in hand makes a :class:`Page` of sections: each
:class:`Section` is a list of blocks (:class:`Text`, :class:`Table`, :class:`Figures`, :class:`Facts`, ...) without any
HTML, and every text in them is shown as text.
"""

from remanence.report._blocks import (
    Block,
    Code,
    Column,
    Details,
    Entry,
    Facts,
    Figures,
    Finding,
    Heading,
    Section,
    Switches,
    Table,
    Text,
)
from remanence.report._experiment_section import reproduction_section
from remanence.report._page import Page, Problem
from remanence.report._probe_sections import information_section, probes_section
from remanence.report._reading import InformationCurve, ProbeFinding
from remanence.report._report import sentences, write_report

__all__ = [
    "write_report",
    "sentences",
    "Page",
    "Section",
    "Finding",
    "Problem",
    "Block",
    "Text",
    "Heading",
    "Table",
    "Column",
    "Entry",
    "Figures",
    "Switches",
    "Facts",
    "Code",
    "Details",
    "reproduction_section",
    "information_section",
    "InformationCurve",
    "probes_section",
    "ProbeFinding",
]
