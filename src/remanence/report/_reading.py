"""What lies at the given paths: runs, comparisons, probes, information curves, claims, stored experiments."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from remanence import claims, train
from remanence._validate import message
from remanence.experiments import (
    KEPT_CURVE,
    Part,
    Record,
    find_experiment,
    kept_curve,
    kept_law,
    list_experiments,
    stored_parts,
)
from remanence.probes import InformationLaw, MutualInformation, ProbeResult
from remanence.report._measured_weights import read_checked
from remanence.report._page import Problem
from remanence.report._policy_record import PolicyRecord, read_policy
from remanence.report._run_record import PROBES, RunRecord, read_run
from remanence.rl import COMPARED, PolicyComparison
from remanence.rl import COMPARISON as POLICIES
from remanence.runs import Settings, find_folders, read_file, unsealed

CELL = "cell-measurement"
"""Kind of what an experiment's cell keeps beside its run; the tables of ``remanence reproduce`` show it."""
COMPARISON = "comparison.json"
WORKER = "train._worker"
"""Module that ``remanence compare`` starts for each of its runs; the run's manifest keeps the command."""
NOTHING_KNOWN = "contains no known results"


@dataclass(frozen=True)
class ProbeFinding:
    """The result of one probe.

    Args:
        place: the file or the model that it belongs to.
        kind: which probe.
        result: what it found.

    Example:
        >>> from remanence.probes import NotMeasured
        >>> ProbeFinding("mine", "context_use", NotMeasured("context_use", "failed")).title
        'Context use'
    """

    place: str
    kind: str
    result: ProbeResult

    @property
    def title(self) -> str:
        """Name of the probe, in words."""
        return self.kind.replace("_", " ").capitalize()


@dataclass(frozen=True)
class InformationCurve:
    """A curve of mutual information.

    Args:
        place: the file or the model that it belongs to.
        curve: what was measured.
        law: what was fitted to it; None if nothing fits.

    Example:
        >>> from remanence.probes import mutual_information
        >>> InformationCurve("bits", mutual_information(b"0011" * 500, [2, 4]), None).place
        'bits'
    """

    place: str
    curve: MutualInformation
    law: InformationLaw | None


@dataclass(frozen=True)
class StoredExperiment:
    """The record of a file, the curves of mutual information among its results, and its runs as tables and figures."""

    place: str
    record: Record
    curves: tuple[InformationCurve, ...] = ()
    parts: tuple[Part, ...] = ()


@dataclass
class Findings:
    """Everything that was found, in the order of the paths."""

    runs: list[RunRecord] = field(default_factory=list)
    policies: list[PolicyRecord] = field(default_factory=list)
    policy_comparisons: list[PolicyComparison] = field(default_factory=list)
    compared_policies: set[Path] = field(default_factory=set)
    comparisons: list[tuple[Path, train.Comparison]] = field(default_factory=list)
    claims: list[claims.Result] = field(default_factory=list)
    curves: list[InformationCurve] = field(default_factory=list)
    probes: list[ProbeFinding] = field(default_factory=list)
    records: list[StoredExperiment] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show, not even a problem."""
        shown = (self.runs, self.policies, self.claims, self.curves, self.probes, self.records, self.problems)
        return not any(shown) and not self.policy_comparisons


def folders_with(name: str, paths: Sequence[str | Path]) -> list[Path]:
    """All folders at or below the paths that hold a file of a name, as ``"config.toml"`` of a run, each once."""
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        for folder in sorted(find_folders([name], path)[0]):
            found.setdefault(folder.resolve(), folder)
    return list(found.values())


def find_results(paths: Sequence[str | Path]) -> Findings:
    """Reads all runs and JSON files at or below the paths; what cannot be read is a problem, not an error.

    Raises:
        ValueError: If a path does not exist, or there is nothing in all of them.

    Example:
        >>> find_results(["nowhere"])
        Traceback (most recent call last):
        ValueError: `path` must be an existing file or folder; got 'nowhere'
    """
    for path in paths:
        if not Path(path).exists():
            raise ValueError(message("path", "be an existing file or folder", repr(str(path))))
    findings = Findings()
    for closed in (folder for path in paths for folder in find_folders([], path)[1]):
        findings.problems.append(Problem(str(closed), "cannot be listed"))
    runs = folders_with("config.toml", paths)
    policies = folders_with("policy.toml", paths)
    findings.runs += [read_run(folder, findings.problems) for folder in runs]
    findings.policies += [read_policy(folder, findings.problems) for folder in policies]
    for path in _json_files(paths, {folder.resolve() for folder in (*runs, *policies)}):
        _add_file(findings, path)
    findings.problems += _lost_comparisons(findings)
    if findings.is_empty:
        hint = "Name a run's folder, a comparison's, or a file of `remanence probe|mi|verify --json`"
        raise ValueError(message("path", "hold results", ", ".join(map(str, paths)) or "nothing", hint))
    return findings


def _lost_comparisons(findings: Findings) -> Iterator[Problem]:
    """Comparisons that only their runs tell of."""
    expected = {run.folder.parent / COMPARISON for run in findings.runs if _was_compared(run)}
    expected |= {folder / POLICIES for folder in findings.compared_policies}
    for file in sorted(expected):
        if not os.path.lexists(file):
            words = "is missing: it was lost, or the comparison has not ended; its runs are shown without it"
            yield Problem(str(file), words)


def _was_compared(run: RunRecord) -> bool:
    """Whether a comparison started the run: Python replaces the name of a module that it runs by the module's path."""
    command = run.manifest.get("command")
    if not isinstance(command, list) or not command:
        return False
    return str(command[0]).removesuffix(".py").replace(os.sep, ".").endswith(WORKER)


def _json_files(paths: Sequence[str | Path], folders: set[Path]) -> list[Path]:
    """Files that were named, and those in folders, except what belongs to a run."""
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        files = [path.resolve()]
        if path.is_dir():
            inside = sorted(path.rglob("*.json"))
            files = [file for file in inside if folders.isdisjoint(file.resolve().parents)]
        for file in files:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def _add_file(findings: Findings, path: Path) -> None:
    try:
        contents = json.loads(read_file(path))
        if isinstance(contents, dict):
            contents = unsealed(contents)
        entries = list(_entries(contents))
    except UnicodeDecodeError:
        findings.problems.append(Problem(str(path), "is not UTF-8 text"))
    except (OSError, ValueError, RecursionError) as error:
        findings.problems.append(Problem(str(path), f"cannot be read: {error}"))
    else:
        if not entries:
            findings.problems.append(Problem(str(path), NOTHING_KNOWN))
        named = path.name
        if named == PROBES:  # every run has one
            named = str(path)
        for name, values in entries:
            place = str(values.get("file", named))
            try:
                _add_result(findings, path.parent, place, name, values)
            except ValueError as error:
                findings.problems.append(Problem(place, f"its {values['kind']} cannot be read: {error}"))
            except Exception as error:  # entries that do not fit together; whatever breaks, it is the file
                words = f"its {values['kind']} cannot be read: its entries do not fit together ({error!r})"
                findings.problems.append(Problem(place, words))


def _entries(contents: object) -> Iterator[tuple[str, Settings]]:
    """The results in a file, which holds one, a list of them, or several by name; each says its kind."""
    if isinstance(contents, list):
        named = [("", entry) for entry in contents]
    elif not isinstance(contents, Mapping):
        return
    elif "kind" in contents:
        named = [("", contents)]
    else:
        named = list(contents.items())
    for name, values in named:
        if isinstance(values, Mapping) and "kind" in values:
            yield name, values


def _add_result(findings: Findings, folder: Path, place: str, name: str, values: Settings) -> None:
    """Puts a result where its type belongs."""
    result = read_checked(values)
    if isinstance(result, claims.Result):
        findings.claims.append(result)
    elif isinstance(result, train.Comparison):
        findings.comparisons.append((folder, result))
    elif isinstance(result, PolicyComparison):
        findings.policy_comparisons.append(result)
    elif isinstance(result, Record):
        curves = tuple(InformationCurve(*found) for found in curves_inside(result.results))
        findings.records.append(StoredExperiment(place, result, curves, tuple(_parts_of(result))))
    elif isinstance(result, MutualInformation):
        # The law beside a curve was fitted as whoever wrote the file wished, which the curve alone does not tell.
        law = None
        if isinstance(values.get("fit"), Mapping):
            law = InformationLaw.from_dict(values["fit"])
        findings.curves.append(InformationCurve(place, result, law))
    elif isinstance(result, ProbeResult):
        findings.probes.append(ProbeFinding(place, name or result.kind, result))
    elif result.kind == CELL:
        if COMPARED in _environments(values):
            findings.compared_policies.add(folder.parent.parent)
    else:
        findings.problems.append(Problem(place, NOTHING_KNOWN))


def _parts_of(record: Record) -> list[Part]:
    """Its runs beside the printed numbers; nothing if this version does not know the table."""
    known = {experiment.id for experiment in list_experiments()}
    if record.experiment not in known or "cells" not in record.results:
        return []
    return stored_parts(find_experiment(record.experiment), [record])


def curves_inside(results: object, name: str = "") -> Iterator[tuple[str, MutualInformation, InformationLaw | None]]:
    """Every curve of mutual information inside the results of a record: where it stands, itself, and its law."""
    if isinstance(results, list):
        for entry in results:
            yield from curves_inside(entry, name)
    elif isinstance(results, Mapping):
        label = str(results.get("label", name))
        if results.get("kind") == KEPT_CURVE:
            curve = kept_curve(results)
            curve.figures()  # or its numbers do not fit together
            yield label or "curve", curve, kept_law(results)
            return
        for key, value in results.items():
            place = str(key)
            if key == "curve" or "label" in results:
                place = label
            yield from curves_inside(value, place)


def _environments(values: Settings) -> Settings:
    """Where a policy of a cell was let play; none for any other measurement."""
    found: object = values
    for key in ("settings", "environments"):
        if not isinstance(found, Mapping):
            return {}
        found = found.get(key)
    if not isinstance(found, Mapping):
        return {}
    return found
