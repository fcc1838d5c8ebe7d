"""What lies at the given paths: runs, comparisons, probes, information curves, claims, stored experiments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remanence._validate import message
from remanence.report._runs import PROBES, Problem, RunRecord, read_run

COMPARISON = "comparison.json"
"""Name of the file that ``remanence compare`` leaves beside its runs."""

# What tells the results of the probes apart: fields that only they have.
PROBE_FIELDS: dict[str, set[str]] = {
    "gradient_reach": {"distance", "log_norm"},
    "attention_map": {"maps", "occupancy"},
    "dependency_depth": {"depth", "kappa"},
    "gradient_paths": {"parts", "total"},
    "cost": {"lengths", "peak_bytes", "state_bytes"},
    "tradeoff": {"lengths", "points"},
    "stability": {"lyapunov", "contraction"},
    "truncation_gap": {"ks", "full_loss"},
    "memory_demand": {"memory_free", "chance"},
    "mutual_information": {"lags", "values", "floor"},
}


@dataclass(frozen=True)
class Probed:
    """The result of one probe.

    Args:
        place: where it was found.
        kind: name of the probe.
        values: as its ``to_dict`` gave them.

    Example:
        >>> Probed("x.json", "cost", {"verdict": "time linear in T"}).verdict
        'time linear in T'
    """

    place: str
    kind: str
    values: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        """The one line that says what was found."""
        return str(self.values.get("verdict", ""))


@dataclass
class Findings:
    """Everything that was found, in the order of the paths.

    Example:
        >>> Findings().is_empty
        True
    """

    runs: list[RunRecord] = field(default_factory=list)
    comparisons: list[tuple[Path, dict[str, Any]]] = field(default_factory=list)
    claims: list[dict[str, Any]] = field(default_factory=list)
    curves: list[Probed] = field(default_factory=list)
    probes: list[Probed] = field(default_factory=list)
    records: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show, not even a problem."""
        return not any((self.runs, self.claims, self.curves, self.probes, self.records, self.problems))


def run_folders(paths: Sequence[str | Path]) -> list[Path]:
    """All run folders at or below the paths, each once.

    Args:
        paths: files and folders.

    Example:
        >>> run_folders([])
        []
    """
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        for config in sorted(path.rglob("config.toml")) if path.is_dir() else []:
            found.setdefault(config.parent.resolve(), config.parent)
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
    folders = run_folders(paths)
    for folder in folders:
        record, problems = read_run(folder)
        findings.runs.append(record)
        findings.problems += problems
    for path in _json_files(paths, {folder.resolve() for folder in folders}):
        _add_file(findings, path)
    if findings.is_empty:
        hint = "Name a run's folder, a comparison's, or a file of `remanence probe|mi|verify --json`"
        raise ValueError(message("path", "hold results", ", ".join(map(str, paths)) or "nothing", hint))
    return findings


def _json_files(paths: Sequence[str | Path], folders: set[Path]) -> list[Path]:
    """Files that were named, and those in folders, except what belongs to a run."""
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        inside = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        for file in inside:
            if path.is_dir() and any(parent in folders for parent in file.resolve().parents):
                continue
            found.setdefault(file.resolve(), file)
    return list(found.values())


def _add_file(findings: Findings, path: Path) -> None:
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        known = _add_contents(findings, path, contents)
    except (OSError, ValueError) as error:
        reason = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else f"cannot be read: {error}"
        findings.problems.append(Problem(str(path), reason))
        return
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
        findings.records.append((place, contents))
    elif {"runs", "transfer"} <= contents.keys():
        findings.comparisons.append((path.parent, contents))
    elif found := list(_probes(place, contents)):
        for probe in found:
            (findings.curves if probe.kind == "mutual_information" else findings.probes).append(probe)
    else:
        return False
    return True


def _add_list(findings: Findings, place: str, entries: list[dict[str, Any]]) -> bool:
    if all({"id", "verdict"} <= entry.keys() for entry in entries):
        findings.claims += entries
    elif all(entry.keys() >= PROBE_FIELDS["mutual_information"] for entry in entries):
        findings.curves += [Probed(str(entry.get("file", place)), "mutual_information", entry) for entry in entries]
    else:
        return False
    return True


def _probes(place: str, contents: dict[str, Any]) -> Iterable[Probed]:
    """One result of a probe, or several by name."""
    if (kind := probe_kind(contents)) is not None:
        yield Probed(str(contents.get("file", place)), kind, contents)
        return
    for value in contents.values():
        if isinstance(value, dict) and (kind := probe_kind(value)) is not None:
            yield Probed(place, kind, value)


def probe_kind(values: Mapping[str, Any]) -> str | None:
    """The probe whose result this is, None if it is none.

    Example:
        >>> probe_kind({"ks": [1], "full_loss": 0.5})
        'truncation_gap'
    """
    return next((kind for kind, fields in PROBE_FIELDS.items() if fields <= values.keys()), None)
