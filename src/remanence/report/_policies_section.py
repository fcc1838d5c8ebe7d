"""Sections about policies: how their returns grew, and how they were trained."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from remanence.figures import Axis, Band, Curve, Figure, Look
from remanence.report._blocks import (
    Block,
    Code,
    Column,
    Details,
    Entry,
    Facts,
    Figures,
    Film,
    Finding,
    Heading,
    Section,
    Switches,
    Table,
    Text,
)
from remanence.report._comparison_section import machines
from remanence.report._numbers import count, if_known, number_of, plain
from remanence.report._page import link_from
from remanence.report._policy_record import PolicyRecord
from remanence.rl import PolicyComparison

FILMS = (
    "One new episode of each. Beside the environment stands the memory: a bar at every step that it holds, as high as "
    "the attention that it gets now; recent states are blue, relevant ones red."
)
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


def policies_sections(
    runs: Sequence[PolicyRecord],
    styles: Mapping[str, Look],
    folder: Path,
    comparisons: Sequence[PolicyComparison] = (),
) -> Iterator[Section]:
    """A section for each environment.

    Args:
        runs: of policies.
        styles: how each model looks.
        folder: that the page lies in; links are relative to it.
        comparisons: what ``remanence rl compare`` found.

    Example:
        >>> list(policies_sections([], {}, Path(".")))
        []
    """
    for number, environment in enumerate(sorted({run.environment for run in runs}), start=1):
        here = [run for run in runs if run.environment == environment]
        compared = [one for one in comparisons if one.environment == environment]
        said = [Finding(sentence) for one in compared for sentence in one.sentences]
        said += [Finding(_sentence(run), styles[run.model].colour) for run in here]
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
    filmed = [run for run in runs if run.film]
    if filmed:
        yield Heading("What they remember as they play")
        yield Text(FILMS)
        yield from (Film(run.film, f"{run.model}, seed {run.seed}") for run in filmed)
    yield Heading("How they were trained")
    yield Facts(machines([run.manifest for run in runs]))
    yield from (Details(f"{run.model}, seed {run.seed}", [Code(run.settings)]) for run in runs if run.settings)


def _figure(runs: Sequence[PolicyRecord], styles: Mapping[str, Look]) -> Figure:
    """A curve for each model: the mean over its seeds, within a band from the least to the greatest of them."""
    curves: list[Curve | Band] = []
    for alike in _alike(runs):
        model = alike[0].model
        seeds = [dict(run.curve) for run in alike]
        frames = sorted(set.intersection(*(set(curve) for curve in seeds)))
        values = [[curve[place] for curve in seeds] for place in frames]
        look = styles[model]
        if len(seeds) > 1:
            names = (f"{model}, least seed", f"{model}, greatest seed")
            curves.append(Band(names, frames, [*map(min, values)], [*map(max, values)], look=look, group=model))
        curves.append(Curve(model, frames, [fmean(at) for at in values], look=look, group=model))
    words = "Mean return of the last episodes against frames, the mean over the seeds; the band spans the seeds."
    return Figure("Mean return", words, tuple(curves), Axis("frames", unit="SI"), Axis("mean return"), wide=True)


def _alike(runs: Sequence[PolicyRecord]) -> list[list[PolicyRecord]]:
    """The runs in groups that differ by nothing but their seeds and how long they may last."""
    groups: dict[str, list[PolicyRecord]] = {}
    for run in runs:
        settings = {key: value for key, value in run.config.items() if key not in ("seed", "frames", "save_every")}
        groups.setdefault(json.dumps(settings, sort_keys=True, default=str), []).append(run)
    return list(groups.values())


def _row(run: PolicyRecord, styles: Mapping[str, Look], folder: Path) -> list[Entry]:
    best = max((value for _, value in run.curve), default=None)
    return [
        Entry(run.name, link=link_from(folder, run.folder)),
        Entry(run.model, colour=styles[run.model].colour),
        Entry(if_known(run.seed), run.seed),
        Entry(run.status),
        Entry(count(run.frames), run.frames),
        Entry(plain(run.mean_return), run.mean_return),
        Entry(plain(best), best),
        Entry(plain(run.frames_per_second), run.frames_per_second),
    ]
