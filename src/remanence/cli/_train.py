"""``remanence train``."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import typer

from remanence.cli._errors import exit_codes
from remanence.cli._progress import watch
from remanence.runs import require_trust, settings_table, tag, trusting
from remanence.train import (
    Outcome,
    Processes,
    RunConfig,
    config_from,
    joined_processes,
    read_config,
    recipe,
    run_name,
    train,
    with_settings,
)


def table_of(given: dict[str, Any]) -> dict[str, Any]:
    """Options of the command as nested tables; those that were not given are left out.

    Example:
        >>> table_of({"seed": 3, "task.options.length": 5, "model.options.hidden_size": None})
        {'seed': 3, 'task': {'options': {'length': 5}}}
    """
    table: dict[str, Any] = {}
    for key, value in given.items():
        if value is None:
            continue
        *sections, last = key.split(".")
        inner = table
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[last] = value
    return table


def budget_of(updates: int | None) -> dict[str, Any]:
    """The budget that ``--updates`` asks for, in place of the recipe's epochs.

    Example:
        >>> budget_of(5), budget_of(None)
        ({'budget': {'updates': 5, 'epochs': 'none'}}, {})
    """
    return {} if updates is None else {"budget": {"updates": updates, "epochs": "none"}}


def start_run(
    task: str,
    model: str,
    given: dict[str, Any],
    settings: list[str],
    config_file: Path | None,
    folder: Path | None,
    *,
    trust: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Does what ``remanence train`` says."""
    with exit_codes(), trusting(trust):
        config = configuration(task, model, given, settings, config_file)
        if config_file is not None and "imports" not in settings_table(settings):
            require_trust(config.imports)  # the file names this code, and not the command
        place = folder or Path("runs") / run_name(config)
        with (
            joined_processes(config.loop.device),
            watch(place, quiet or as_json or not Processes().writes) as observer,
        ):
            outcome = train(config, place, observer)
            speaks = Processes().writes
        finish(outcome, as_json, speaks)


def configuration(
    task: str, model: str, given: dict[str, Any], settings: list[str], config_file: Path | None = None
) -> RunConfig:
    """The recipe of a task and a model, or a file, with the command's options and single settings.

    Args:
        task: Its name.
        model: Its name.
        given: Options as nested tables.
        settings: As ``section.key=value``; they come last.
        config_file: To start from, in place of the recipe.

    Example:
        >>> configuration("copy", "LSTM", {"seed": 3}, ["budget.updates=5"]).budget.updates
        5
    """
    start = recipe(task, model)
    if config_file is not None:
        start = config_from({"task": {"name": task}}, read_config(config_file.resolve()))
    return adjusted(start, given, settings)


def adjusted(start: RunConfig, given: dict[str, Any], settings: list[str]) -> RunConfig:
    """A configuration with the command's options and single settings.

    Args:
        start: To start from.
        given: Options as nested tables.
        settings: As ``section.key=value``; they come last.

    Example:
        >>> adjusted(recipe("copy", "LSTM"), budget_of(5), []).budget.updates
        5
    """
    return with_settings(config_from(given, start), settings)


def full_path(file: Path | None) -> str | None:
    """A file of the user's so that it is found from any folder.

    Example:
        >>> full_path(None), full_path(Path("/data/../a.txt"))
        (None, '/a.txt')
    """
    return None if file is None else str(file.expanduser().resolve())


def finish(outcome: Outcome, as_json: bool, speaks: bool) -> None:
    """Prints how a run ended, if this of its processes speaks for all, and leaves with the exit code that says so."""
    if speaks:
        typer.echo(json.dumps(_facts(outcome), indent=2) if as_json else _words(outcome))
    if outcome.status == "interrupted":
        raise typer.Exit(128 + (outcome.signal or signal.SIGINT))


def _facts(outcome: Outcome) -> dict[str, Any]:
    return {
        **tag("outcome"),
        "run": str(outcome.run.folder),
        "status": outcome.status,
        "reason": outcome.reason,
        "update": outcome.update,
        "validation": outcome.validation,
    }


def _words(outcome: Outcome) -> str:
    found = ", ".join(f"{name} {value:.4g}" for name, value in outcome.validation.items()) or "not evaluated yet"
    if outcome.status == "interrupted":
        return f"stopped at update {outcome.update}, saved. Resume with: remanence resume {outcome.run.folder}"
    return f"done after {outcome.update} updates ({outcome.reason}): validation {found}. Run: {outcome.run.folder}"
