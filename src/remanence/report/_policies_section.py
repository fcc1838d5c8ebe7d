"""Sections about policies: how their returns grew, and how they were trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from remanence.figures import Axis, Curve, Figure, Look
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
from remanence.report._comparison_section import machines
from remanence.report._numbers import ABSENT, count, number_of, plain
from remanence.report._page import link_from
from remanence.report._policy_record import PolicyRecord

COLUMNS = (
    Column("run", numeric=False),
    Column("model", numeric=False),
    Column("seed"),
    Column("status", numeric=False),
    Column("frames"),
    Column("mean return", "last episodes"),
    Column("best mean return"),
    Column("frames", "per second"),
)


def policies_sections(runs: Sequence[PolicyRecord], styles: Mapping[str, Look], folder: Path) -> Iterator[Section]:
    """A section for each environment.

    Args:
        runs: of policies.
        styles: how each model looks.
        folder: that the page lies in; links are relative to it.

    Example:
        >>> list(policies_sections([], {}, Path(".")))
        []
    """
    for number, environment in enumerate(sorted({run.environment for run in runs}), start=1):
        here = [run for run in runs if run.environment == environment]
        said = [Finding(_sentence(run), styles[run.model].colour) for run in here]
        headline = f"{number_of(len(here), 'policy run')} in {environment}"
        yield Section(f"policies-{number}", environment, list(_blocks(here, styles, folder)), headline, said)


def _sentence(run: PolicyRecord) -> str:
    name = f"{run.model}, seed {run.seed}"
    if run.mean_return is None:
        return f"{name}: no episode has ended after {count(run.frames)} frames."
    so_far = "" if run.status == "done" else " so far"
    return f"{name} has a mean return of {plain(run.mean_return)} after {count(run.frames)} frames{so_far}."


def _blocks(runs: Sequence[PolicyRecord], styles: Mapping[str, Look], folder: Path) -> Iterator[Block]:
    yield Text(f"{number_of(len(runs), 'run')} of {number_of(len({run.model for run in runs}), 'model')}.", "lead")
    yield Table(COLUMNS, [_row(run, styles, folder) for run in runs], "Runs of policies", "runs")
    yield Switches({model: styles[model] for model in sorted({run.model for run in runs})})
    figure = _figure(runs, styles)
    if not figure.is_empty:
        yield Figures([figure])
    yield Heading("How they were trained")
    yield Facts(machines([run.manifest for run in runs]))
    yield from (Details(f"{run.model}, seed {run.seed}", [Code(run.settings)]) for run in runs if run.settings)


def _figure(runs: Sequence[PolicyRecord], styles: Mapping[str, Look]) -> Figure:
    curves = []
    for run in runs:
        frames = [frames for frames, _ in run.curve]
        values = [value for _, value in run.curve]
        name = f"{run.model}, seed {run.seed}"
        curves.append(Curve(name, frames, values, look=styles[run.model], group=run.model))
    words = "Mean return of the last episodes against frames; one curve per run, the seeds of a model in one colour."
    return Figure("Mean return", words, tuple(curves), Axis("frames", unit="SI"), Axis("mean return"), wide=True)


def _row(run: PolicyRecord, styles: Mapping[str, Look], folder: Path) -> list[Entry]:
    best = max((value for _, value in run.curve), default=None)
    return [
        Entry(run.folder.name, link=link_from(folder, run.folder)),
        Entry(run.model, colour=styles[run.model].colour),
        Entry(ABSENT if run.seed is None else str(run.seed), run.seed),
        Entry(run.status),
        Entry(count(run.frames), run.frames),
        Entry(plain(run.mean_return), run.mean_return),
        Entry(plain(best), best),
        Entry(plain(run.frames_per_second), run.frames_per_second),
    ]
