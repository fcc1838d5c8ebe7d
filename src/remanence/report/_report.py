"""The report: result files in, one page out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from remanence.figures import looks
from remanence.report._blocks import Section
from remanence.report._claims_section import claims_section
from remanence.report._comparison import TaskComparison, compare
from remanence.report._comparison_section import comparison_section
from remanence.report._experiment_section import experiment_section
from remanence.report._measuring import measure_missing
from remanence.report._numbers import SPACE
from remanence.report._page import Page
from remanence.report._policies_section import policies_sections
from remanence.report._probe_sections import information_section, probes_section
from remanence.report._reading import Findings, find_results
from remanence.report._sentences import findings


def write_report(
    paths: Sequence[str | Path],
    out: str | Path,
    *,
    measure: bool = True,
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """Writes one self-contained HTML page about results.

    Weights are measured first, where that was not done: the results go into ``probes.json`` in the folders of the runs.
    The page itself is a function of the files alone: the same files give the same bytes. No code is imported that a
    run names, so the runs whose models or tasks are defined in such code are shown and not measured.

    Args:
        paths: run folders, folders that hold runs or JSON files, and JSON files of ``remanence probe``, ``mi``,
            ``verify`` or stored experiments.
        out: the file to write.
        measure: whether to measure weights that have not been measured; without it only files are read.
        say: is told what is measured.

    Raises:
        ValueError: If a path does not exist or holds no results.
        ImportError: If plotly, whose script the page carries, is missing.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     claims = Path(folder) / "verify.json"
        ...     _ = claims.write_text('[{"id": "notes/1", "paper": "notes", "verdict": "holds", "agrees": true}]')
        ...     write_report([claims], Path(folder) / "report.html").name
        'report.html'
    """
    out = Path(out)
    found = find_results(paths)
    if measure and measure_missing(paths, say):
        found = find_results(paths)
    return make_page(found, out.parent).write(out)


def sentences(paths: Sequence[str | Path]) -> list[str]:
    """What the runs at some paths show, as the report says it: one per model, or per group that fared alike.

    Raises:
        ValueError: If a path does not exist or holds no results.

    Example:
        >>> sentences([])
        []
    """
    if not paths:
        return []
    found = find_results(paths)
    return [text.replace(SPACE, " ") for one in compare(found.runs, found.comparisons) for text, _ in findings(one)]


def make_page(found: Findings, folder: Path) -> Page:
    """The page about everything that was found; links are relative to the folder that it will lie in.

    Example:
        >>> make_page(Findings(), Path(".")).sections
        []
    """
    comparisons = compare(found.runs, found.comparisons)
    return Page(_sections(found, comparisons, folder), found.problems)


def _sections(found: Findings, comparisons: Sequence[TaskComparison], folder: Path) -> list[Section]:
    """All sections that there are results for."""
    styles = looks(_names(found, comparisons))
    made = [comparison_section(one, styles, folder, number) for number, one in enumerate(comparisons, start=1)]
    made += policies_sections(found.policies, styles, folder, found.policy_comparisons)
    if found.curves:
        made.append(information_section(found.curves, styles))
    if found.probes:
        made.append(probes_section(found.probes))
    made += [experiment_section(record, styles, number) for number, record in enumerate(found.records, start=1)]
    if found.claims:
        made.append(claims_section(found.claims))
    return made


def _names(found: Findings, comparisons: Sequence[TaskComparison]) -> list[str]:
    """Everything that has a colour: models, then the files and records that curves belong to."""
    models = {label for comparison in comparisons for label in comparison.labels}
    models |= {run.model for run in found.policies}
    stored = [curve.place for record in found.records for curve in record.curves]
    return [*sorted(models), *(curve.place for curve in found.curves), *stored]
