"""The commands about training: their options. What they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Change one setting: section.key=value. May be given often.")
]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="A TOML file to start from.", dir_okay=False)]
RunFolder = Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the end only.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes at a time; as many as there are cores unless told.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the code that stored settings name. Read it before you trust it.")
]
Weights = Annotated[str, typer.Option(help="'best' by validation, or 'last'.")]


def add_training_commands(app: typer.Typer) -> None:
    """Adds the commands of this module to the application.

    Args:
        app: the application.

    Example:
        >>> app = typer.Typer()
        >>> add_training_commands(app)
        >>> len(app.registered_commands)
        7
    """
    for command in (train, resume, evaluate, generate, compare, tasks, runs):
        app.command()(command)


def train(
    task: Annotated[str, typer.Argument(help="What to learn; see `remanence tasks`.", metavar="TASK")],
    file: Annotated[
        Path | None, typer.Argument(help="Your own data, for the tasks text and sequence.", metavar="[FILE]")
    ] = None,
    model: Annotated[str, typer.Option(help="What learns; see `remanence models`.")] = "RelRNN",
    length: Annotated[int | None, typer.Option(help="Length T of the task.")] = None,
    hidden: Annotated[int | None, typer.Option(help="Hidden units.")] = None,
    updates: Annotated[int | None, typer.Option(help="Batches to learn from.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of weights, batches and dropout.")] = None,
    config: ConfigFile = None,
    settings: Settings = None,
    run: Annotated[Path | None, typer.Option(help="Run folder; made from the settings unless told.")] = None,
    trust: Trust = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a model on a task. The same command again goes on with the same run."""
    from remanence.cli._train import budget_of, start_run, table_of

    given = table_of({"task.options.length": length, "model.options.hidden_size": hidden, "seed": seed})
    given |= budget_of(updates)
    if file is not None:
        given.setdefault("task", {}).setdefault("options", {})["path"] = str(file.expanduser().resolve())
    start_run(task, model, given, settings or [], config, run, trust=trust, quiet=quiet, as_json=json)


def resume(
    run: RunFolder, settings: Settings = None, trust: Trust = False, quiet: Quiet = False, json: Json = False
) -> None:
    """Go on with a run, also of a policy; it ends with the weights of one that never stopped."""
    from remanence.cli._resume import resume_run

    resume_run(run, settings or [], trust=trust, quiet=quiet, as_json=json)


def evaluate(
    run: RunFolder,
    length: Annotated[str | None, typer.Option(help="Lengths to measure at, as 100,200,5000.")] = None,
    split: Annotated[str, typer.Option(help="validation or test.")] = "test",
    batches: Annotated[int, typer.Option(min=0, help="Batches; 0 is a whole pass, for tasks that end.")] = 10,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows of a batch.")] = 100,
    weights: Weights = "best",
    chunk: Annotated[
        int | None, typer.Option(min=1, help="Steps at a time; default: whole sequences, 1000 if T > 10,000.")
    ] = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Measure a trained model, also at lengths that it was not trained at; a policy plays."""
    from remanence.cli._evaluate import evaluate_run

    evaluate_run(run, length, split, batches, batch_size, weights, chunk, trust=trust, as_json=json)


def generate(
    run: RunFolder,
    length: Annotated[int, typer.Option(min=1, help="Symbols to draw.")] = 200,
    prompt: Annotated[str, typer.Option(help="What comes before.")] = "",
    temperature: Annotated[float, typer.Option(min=0.0, help="0 takes the likeliest symbol.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the drawing.")] = 0,
    weights: Weights = "best",
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Let a trained model write."""
    from remanence.cli._generate import generate_from

    generate_from(run, length, prompt, temperature, seed, weights, trust=trust, as_json=json)


def compare(
    task: Annotated[str, typer.Argument(help="What to learn.", metavar="TASK")],
    models: Annotated[str, typer.Option(help="Models to compare, as LSTM,RelRNN.")],
    lengths: Annotated[str | None, typer.Option(help="Lengths T, as 50,100.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 1,
    updates: Annotated[int | None, typer.Option(help="Batches to learn from.")] = None,
    transfer: Annotated[str | None, typer.Option(help="Measure the best of each at these lengths, too.")] = None,
    settings: Settings = None,
    folder: Annotated[Path | None, typer.Option(help="Where the runs go; runs/compare-TASK unless told.")] = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Train several models side by side. The same command again goes on where it was."""
    from remanence.cli._compare import compare_models

    compare_models(task, models, lengths, seeds, updates, settings or [], folder, jobs, transfer, as_json=json)


def tasks(json: Json = False) -> None:
    """List the tasks, and what a predictor without memory reaches."""
    from remanence.cli._listing import show_tasks

    show_tasks(as_json=json)


def runs(folder: Annotated[Path, typer.Argument(help="Where to look.")] = Path("runs"), json: Json = False) -> None:
    """List the runs below a folder, and where they stand."""
    from remanence.cli._listing import show_runs

    show_runs(folder, as_json=json)
