"""Sections about policies: how their returns grew, and how they were trained."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from remanence._wording import number_of
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
from remanence.report._numbers import count, if_known, only_if, plain
from remanence.report._page import link_from
from remanence.report._policy_record import FORGETS, PolicyRecord
from remanence.rl import NO_MEMORY, PolicyComparison

FILMS = (
    "One new episode of each policy. Next to the environment is its memory: a bar for every step that it holds, as "
    "high as the attention that the step receives now. Recent states are blue, relevant ones red."
)
RETURNS = (
    Column("model", numeric=False),
    Column("seeds"),
    Column("mean", "over the seeds"),
    Column("least"),
    Column("greatest"),
    Column("memory adds", "95 % interval", numeric=False),
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
    """A section for each environment, with what ``remanence rl compare`` found; links are relative to the folder."""
    for number, environment in enumerate(sorted({run.environment for run in runs}), start=1):
        here = [run for run in runs if run.environment == environment]
        compared = [one for one in comparisons if one.environment == environment]
        said = [Finding(sentence) for one in compared for sentence in one.sentences]
        if not compared:
            said += [Finding(_sentence(alike), styles[alike[0].model].colour) for alike in _alike(here)]
        headline = f"{number_of(len(here), 'policy run')} in {environment}"
        yield Section(f"policies-{number}", environment, list(_blocks(here, styles, folder, compared)), headline, said)


def _sentence(alike: Sequence[PolicyRecord]) -> str:
    """What the seeds of one model came to."""
    model = alike[0].model
    frames = max(run.frames for run in alike)
    name = f"{model}, {len(alike)} seeds"
    if len(alike) == 1:
        name = f"{model}, seed {alike[0].seed}"
    found = [run.mean_return for run in alike if run.mean_return is not None]
    if len(found) < len(alike):
        without = only_if(len(alike) > 1, f" in {number_of(len(alike) - len(found), 'run')}")
        return f"{name}: no episode has ended after {count(frames)} frames{without}."
    spread = only_if(len(found) > 1, f" ({plain(min(found))} to {plain(max(found))})")
    so_far = only_if(any(run.status != "done" for run in alike), " so far")
    return f"{name}: mean return {plain(fmean(found))}{spread} after {count(frames)} frames{so_far}."


def _blocks(
    runs: Sequence[PolicyRecord], styles: Mapping[str, Look], folder: Path, compared: Sequence[PolicyComparison]
) -> Iterator[Block]:
    yield Text(f"{number_of(len(runs), 'run')} of {number_of(len({run.model for run in runs}), 'model')}.", "lead")
    yield Switches({model: styles[model] for model in sorted({run.model for run in runs})})
    figure = _figure(runs, styles)
    if not figure.is_empty:
        yield Figures([figure])
    for one in compared:
        caption = f"Mean return in {count(one.episodes)} new episodes"
        yield Heading(caption)
        yield Table(RETURNS, _returns(one, styles), caption)
    yield Heading("Runs")
    yield Table(COLUMNS, [_row(run, styles, folder) for run in runs], "Runs of policies", "runs")
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


def _returns(compared: PolicyComparison, styles: Mapping[str, Look]) -> list[list[Entry]]:
    rows = []
    for row in compared.rows:
        name = FORGETS if row["model"] == NO_MEMORY else row["model"]
        look = styles.get(name)
        gained = compared.gains.get(row["model"])
        numbers = [Entry(plain(row[which]), row[which]) for which in ("mean", "least", "most")]
        first = Entry(name, colour="" if look is None else look.colour)
        rows.append([first, Entry(count(row["seeds"]), row["seeds"]), *numbers, Entry(if_known(gained))])
    return rows


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
