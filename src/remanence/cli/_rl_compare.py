"""``remanence rl compare``: several cores and seeds of a policy side by side in one environment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import torch
import typer

from remanence._validate import message
from remanence.cli._cells import leave_if_failed, watching
from remanence.cli._errors import exit_codes
from remanence.cli._tables import json_text, show_rows
from remanence.cli._train import table_of
from remanence.experiments import Measure, TableCell, Work, make_engine, row_of, run_cells
from remanence.rl import COMPARED, COMPARISON, NO_MEMORY, PolicyComparison, PolicyConfig, build_policy
from remanence.runs import Values, settings_table, with_table, write_result


def compare_policies(
    environment: str,
    models: str,
    seeds: int,
    given: Values,
    settings: list[str],
    episodes: int,
    folder: Path | None,
    workers: int | None,
    *,
    as_json: bool,
) -> None:
    """Does what ``remanence rl compare`` says."""
    with exit_codes():
        place = folder or Path("runs") / f"compare-{environment.replace('/', '-').replace(':', '-')}"
        names = models.split(",")
        check_models(names)
        configs = {name: policy_config(environment, name, given, settings).trusted() for name in names}
        cells = plan_cells(configs, seeds, episodes, place)
        engine = make_engine("local", workers)
        with watching(["model", "seed"], cells, as_json, f"every run in {place} is saved") as tick:
            failures = run_cells(cells, engine, tick)
        found = comparison_of(configs, cells, episodes)
        write_result(place / COMPARISON, found)
    _show(found, cells, place, as_json)
    leave_if_failed(failures)


def policy_config(environment: str, model: str, given: Values, settings: Sequence[str]) -> PolicyConfig:
    """The configuration of one model; without memory it is an LSTM that starts afresh at every step.

    Example:
        >>> policy_config("CartPole-v1", "none", {}, []).forgets
        True
    """
    core: Values = {"model.name": model, "label": model}
    if model == NO_MEMORY:
        core = {"model.name": "LSTM", "forgets": True, "label": "LSTM (without memory)"}
    table = table_of({"environment": environment, **core, **given})
    return with_table(with_table(PolicyConfig(), table), settings_table(list(settings)))


def plan_cells(configs: dict[str, PolicyConfig], seeds: int, episodes: int, place: Path) -> list[TableCell]:
    """One cell for each model and seed: a run, and what it gets in new episodes.

    Args:
        configs: by the model's name.
        seeds: how many.
        episodes: that are played after training.
        place: folder of the cells.

    Raises:
        ValueError: a configuration cannot be built.

    Example:
        >>> plan_cells({"LSTM": PolicyConfig("CartPole-v1")}, 2, 10, Path("runs"))[1].label
        'model=LSTM seed=1'
    """
    cells = []
    for name, config in configs.items():
        played = Measure("play", {"environments": {COMPARED: config.environment}, "episodes": episodes})
        with torch.random.fork_rng(devices=[]):
            build_policy(config)  # what cannot be built is said here, and not by every worker
        for seed in range(seeds):
            work = Work(with_table(config, {"seed": seed}), (played,))
            cells.append(TableCell({"model": name, "seed": seed}, work, place))
    return cells


def comparison_of(configs: dict[str, PolicyConfig], cells: Sequence[TableCell], episodes: int) -> PolicyComparison:
    """What the cells that are done have found."""
    returns: dict[str, list[float]] = {name: [] for name in configs}
    for cell in cells:
        found = cell.result("play")
        if found is not None:
            returns[cell.place["model"]].append(found[COMPARED]["mean"])
    config = next(iter(configs.values()))
    return PolicyComparison(config.where, config.frames, episodes, returns, ["remanence", *sys.argv[1:]])


def _show(found: PolicyComparison, cells: Sequence[TableCell], place: Path, as_json: bool) -> None:
    if as_json:
        rows = {"runs": [row_of(cell) for cell in cells], "models": found.rows, "sentences": found.sentences}
        typer.echo(json_text({**found.to_dict(), **rows}))
        return
    typer.echo(f"mean return in {found.episodes} new episodes, over the seeds:")
    show_rows(found.rows, as_json=False)
    for sentence in found.sentences:
        typer.echo(sentence)
    typer.echo(f"Learning curves: remanence report {place}")


def check_models(names: Sequence[str]) -> None:
    """Refuses a model that is named twice.

    Example:
        >>> check_models(["LSTM", "LSTM"])
        Traceback (most recent call last):
        ValueError: `models` must be different; got LSTM, LSTM
    """
    if len(set(names)) < len(names):
        raise ValueError(message("models", "be different", ", ".join(names)))
