"""``remanence train`` and ``remanence resume``."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import typer

from remanence import runs, train
from remanence._validate import message
from remanence._wording import bracketed
from remanence.cli._errors import exit_codes
from remanence.cli._progress import watch
from remanence.cli._tables import json_text
from remanence.runs import Values, nested_table, remember_code, require_trust, settings_table, tag, trusting
from remanence.tasks import list_tasks
from remanence.train import Outcome, RunConfig

READ_A_FILE = ("text", "sequence", "series")


def table_of(given: Values) -> Values:
    """Options of the command as nested tables; those that were not given are left out.

    Example:
        >>> table_of({"seed": 3, "task.options.length": 5, "model.options.hidden_size": None})
        {'seed': 3, 'task': {'options': {'length': 5}}}
    """
    return nested_table({key: value for key, value in given.items() if value is not None})


def budget_of(updates: int | None) -> Values:
    """The budget that ``--updates`` asks for, in place of the recipe's epochs.

    Example:
        >>> budget_of(5), budget_of(None)
        ({'budget': {'updates': 5, 'epochs': 'none'}}, {})
    """
    if updates is None:
        return {}
    return {"budget": {"updates": updates, "epochs": "none"}}


def start_run(
    task: str,
    model: str,
    given: Values,
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
        config = replace(config, label=config.label or label_of(config))
        place = folder or Path("runs") / train.run_name(config)
        with (
            train.joined_processes(config.loop.device),
            watch(place, quiet or as_json or not train.Processes().writes) as observer,
        ):
            outcome = train.train(config, place, observer)
            speaks = train.Processes().writes
        finish(outcome, as_json, speaks)


def resume_run(folder: Path, settings: list[str], *, trust: bool, quiet: bool, as_json: bool) -> None:
    """Does what ``remanence resume`` says."""
    with exit_codes(), trusting(trust):
        if runs.Run.open(folder).kind == "policy":
            from remanence.cli._policies import continue_policy

            continue_policy(folder, settings, quiet=quiet, as_json=as_json)
            return
        run = train.Run.open(folder)
        config = train.with_settings(run.config, settings)
        if "imports" in settings_table(settings):
            remember_code(config.imports)
        require_trust(config.imports)
        wanted = None  # what is stored once the lock is ours
        if settings:
            wanted = config
        with (
            train.joined_processes(run.config.loop.device),
            watch(folder, quiet or as_json or not train.Processes().writes) as observer,
        ):
            outcome = train.resume(folder, observer, wanted)
            speaks = train.Processes().writes
        finish(outcome, as_json, speaks)


def configuration(
    task: str, model: str, given: Values, settings: list[str], config_file: Path | None = None
) -> RunConfig:
    """The recipe of a task and a model, or a file, with the command's options and single settings.

    Example:
        >>> configuration("copy", "LSTM", {"seed": 3}, ["budget.updates=5"]).budget.updates
        5
    """
    start = train.recipe(task, model)
    if config_file is not None:
        start = train.config_from({"task": {"name": task}}, train.read_config(config_file.resolve()))
    return adjusted(start, given, settings)


def label_of(config: RunConfig) -> str:
    """What tables and pages call a run: its model, and the options of it that are not the recipe's.

    Example:
        >>> label_of(configuration("copy", "RelRNN", {}, ["model.options.recent=20"]))
        'RelRNN (recent 20)'
    """
    usual = train.recipe(config.task.name, config.model.name).model.options
    own = [f"{name} {value}" for name, value in config.model.options.items() if usual.get(name) != value]
    return bracketed(config.model.name, ", ".join(own))


def adjusted(start: RunConfig, given: Values, settings: list[str]) -> RunConfig:
    """A configuration with the command's options and single settings.

    Example:
        >>> adjusted(train.recipe("copy", "LSTM"), budget_of(5), []).budget.updates
        5
    """
    _refuse_file(start.task.name, given)
    return train.with_settings(train.config_from(given, start), settings)


def _refuse_file(task: str, given: Values) -> None:
    """A file stands for an option that only some tasks have, and which nobody typed."""
    file = given.get("task", {}).get("options", {}).get("path")
    if file is None or task not in list_tasks() or task in READ_A_FILE:
        return
    hint = f"These tasks read one: {', '.join(READ_A_FILE)}"
    raise ValueError(message("FILE", f"be left out for the task {task!r}, which makes its own data", repr(file), hint))


def full_path(file: Path | None) -> str | None:
    """A file of the user's so that it is found from any folder.

    Example:
        >>> full_path(None), full_path(Path("/data/../a.txt"))
        (None, '/a.txt')
    """
    if file is None:
        return None
    return str(file.expanduser().resolve())


def finish(outcome: Outcome, as_json: bool, speaks: bool) -> None:
    """Prints how a run ended, if this of its processes speaks for all, and leaves with the exit code that says so."""
    facts = {
        "run": str(outcome.run.folder),
        "status": outcome.status,
        "reason": outcome.reason,
        "update": outcome.update,
        "validation": outcome.validation,
    }
    if speaks:
        show_end(facts, _words(outcome), as_json)
    leave_if_interrupted(outcome.status, outcome.signal)


def show_end(facts: Values, words: str, as_json: bool) -> None:
    """Prints how a run of any kind ended."""
    if as_json:
        words = json_text({**tag("outcome"), **facts})
    typer.echo(words)


def leave_if_interrupted(status: str, number: int | None) -> None:
    """Leaves with the exit code of the signal that stopped a run, if one did."""
    if status == "interrupted":
        raise typer.Exit(128 + (number or signal.SIGINT))


def _words(outcome: Outcome) -> str:
    found = ", ".join(f"{name} {value:.4g}" for name, value in outcome.validation.items()) or "not evaluated yet"
    if outcome.status == "interrupted":
        return f"stopped at update {outcome.update}, saved. Resume with: remanence resume {outcome.run.folder}"
    return f"done after {outcome.update} updates ({outcome.reason}): validation {found}. Run: {outcome.run.folder}"
