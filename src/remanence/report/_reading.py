"""What lies at the given paths: runs, comparisons, probes, information curves, claims, stored experiments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remanence._validate import message
from remanence.probes import InformationLaw, MutualInformation, ProbeResult
from remanence.report._page import Problem
from remanence.report._policy_record import POLICY, PolicyRecord, read_policy
from remanence.report._probe_results import read_probe
from remanence.report._run_record import PROBES, RunRecord, read_run
from remanence.report._version_0 import CURVE, stored_curve, tagged
from remanence.rl import PolicyComparison

CELL = "cell-measurement"
"""Kind of what an experiment's cell keeps beside its run; the tables of ``remanence reproduce`` show it."""
COMPARISON = "comparison.json"
"""Name of the file that ``remanence compare`` leaves beside its runs."""


@dataclass(frozen=True)
class ProbeFinding:
    """The result of one probe.

    Args:
        place: where it was found.
        kind: name of the probe.
        result: what it found.
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
    """A stored experiment: what was run, how, where, and its results.

    Args:
        place: the file.
        record: its contents.
        curves: the curves of mutual information among its results.
    """

    place: str
    record: Mapping[str, Any]
    curves: tuple[InformationCurve, ...] = ()


@dataclass
class Findings:
    """Everything that was found, in the order of the paths.

    Example:
        >>> Findings().is_empty
        True
    """

    runs: list[RunRecord] = field(default_factory=list)
    policies: list[PolicyRecord] = field(default_factory=list)
    policy_comparisons: list[PolicyComparison] = field(default_factory=list)
    comparisons: list[tuple[Path, dict[str, Any]]] = field(default_factory=list)
    claims: list[dict[str, Any]] = field(default_factory=list)
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
    """All folders at or below the paths that hold a file of a name, each once.

    Args:
        name: such as ``"config.toml"``, which makes a folder a run.
        paths: files and folders.

    Example:
        >>> folders_with("config.toml", [])
        []
    """
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        for file in sorted(path.rglob(name)) if path.is_dir() else []:
            found.setdefault(file.parent.resolve(), file.parent)
    return list(found.values())


def find_results(paths: Sequence[str | Path]) -> Findings:
    """Reads everything that lies at the paths.

    Args:
        paths: run folders, folders that hold runs or JSON files at any depth, and JSON files.

    Returns:
        What was found; files that cannot be read are problems, not errors.

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
    runs, policies = folders_with("config.toml", paths), folders_with(POLICY, paths)
    for folder in runs:
        findings.runs.append(read_run(folder, findings.problems))
    for folder in policies:
        findings.policies.append(read_policy(folder, findings.problems))
    for path in _json_files(paths, {folder.resolve() for folder in (*runs, *policies)}):
        _add_file(findings, path)
    if findings.is_empty:
        hint = "Name a run's folder, a comparison's, or a file of `remanence probe|mi|verify --json`"
        raise ValueError(message("path", "hold results", ", ".join(map(str, paths)) or "nothing", hint))
    return findings


def _json_files(paths: Sequence[str | Path], folders: set[Path]) -> list[Path]:
    """Files that were named, and those in folders, except what belongs to a run."""
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
            belongs = path.is_dir() and any(parent in folders for parent in file.resolve().parents)
            if not belongs:
                found.setdefault(file.resolve(), file)
    return list(found.values())


def _add_file(findings: Findings, path: Path) -> None:
    try:
        known = _add_contents(findings, path, json.loads(path.read_text(encoding="utf-8")))
    except UnicodeDecodeError:
        findings.problems.append(Problem(str(path), "is not UTF-8 text"))
    except (OSError, ValueError) as error:
        findings.problems.append(Problem(str(path), f"cannot be read: {error}"))
    else:
        if not known:
            findings.problems.append(Problem(str(path), "holds no results that are known here"))


def _add_contents(findings: Findings, path: Path, contents: Any) -> bool:
    """Puts what a file holds where it belongs; False if it is nothing known."""
    place = path.name if path.name != PROBES else str(path)
    if isinstance(contents, list) and contents and all(isinstance(entry, dict) for entry in contents):
        return _add_list(findings, place, contents)
    if not isinstance(contents, dict):
        return False
    if {"what", "command", "results"} <= contents.keys():
        curves = tuple(_curves_inside(contents["results"]))
        findings.records.append(StoredExperiment(place, contents, curves))
        return True
    if contents.get("kind") == PolicyComparison.kind:
        findings.policy_comparisons.append(PolicyComparison.from_dict(contents))
        return True
    if contents.get("kind") == CELL:
        return True
    if {"runs", "transfer"} <= contents.keys():
        findings.comparisons.append((path.parent, contents))
        return True
    return _add_probes(findings, str(contents.get("file", place)), contents)


def _add_list(findings: Findings, place: str, entries: list[dict[str, Any]]) -> bool:
    if all({"id", "verdict"} <= entry.keys() for entry in entries):
        findings.claims += entries
        return True
    if all(entry.keys() >= CURVE for entry in entries):
        findings.curves += [_curve(str(entry.get("file", place)), entry) for entry in entries]
        return True
    return False


def _add_probes(findings: Findings, place: str, contents: Mapping[str, Any]) -> bool:
    """Takes one result of a probe, or several by name; False if there is none."""
    named = {"": contents} if "kind" in tagged(contents) else contents
    known = {name: values for name, values in named.items() if "kind" in _tagged_table(values, name)}
    for name, values in known.items():
        try:
            result = read_probe(values, name)
        except ValueError as error:
            kind = tagged(values, name)["kind"]
            findings.problems.append(Problem(place, f"its {kind} cannot be read: {error}"))
            continue
        if isinstance(result, MutualInformation):
            findings.curves.append(_curve(place, values))
        else:
            findings.probes.append(ProbeFinding(place, name or result.kind, result))
    return bool(known)


def _tagged_table(values: Any, name: str) -> Mapping[str, Any]:
    return tagged(values, name) if isinstance(values, Mapping) else {}


def _curve(place: str, values: Mapping[str, Any]) -> InformationCurve:
    """A curve of ``remanence mi --json``, with the law that was fitted as its caller wished."""
    curve = MutualInformation.from_dict(values)
    fit = values.get("fit")
    law = InformationLaw.from_dict(fit) if isinstance(fit, Mapping) else None
    return InformationCurve(place, curve, law)


def _curves_inside(results: Any, name: str = "") -> Iterator[InformationCurve]:
    """Every curve of mutual information inside the results of a record, named after where it stands."""
    if isinstance(results, list):
        for entry in results:
            yield from _curves_inside(entry, name)
    elif isinstance(results, dict):
        label = str(results["label"]) if "label" in results else name
        if results.keys() >= CURVE:
            yield InformationCurve(label or "curve", *stored_curve(results))
            return
        for key, value in results.items():
            yield from _curves_inside(value, label if key == "curve" or "label" in results else str(key))
