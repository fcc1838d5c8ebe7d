"""The commands about training: their options. What they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="Change one setting: section.key=value. Repeatable.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="TOML file with settings.", dir_okay=False)]
RunFolder = Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only the result.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Parallel processes (default: one per core).")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the code that the stored settings name. Read that code first.")
]
OwnFile = Annotated[
    Path | None, typer.Argument(help="Your own data, for the tasks text, sequence and series.", metavar="FILE")
]
Weights = Annotated[str, typer.Option(help="'best' (by validation) or 'last'.")]


def add_training_commands(app: typer.Typer) -> None:
    """Adds the commands of this module to the application."""
    for command in (train, resume, evaluate, generate, compare, tasks, runs):
        app.command()(command)


def train(
    task: Annotated[str, typer.Argument(help="Task to train on; see `remanence tasks`.", metavar="TASK")],
    file: OwnFile = None,
    model: Annotated[str, typer.Option(help="Model to train; see `remanence models`.")] = "RelRNN",
    length: Annotated[int | None, typer.Option(help="Sequence length T (default: the recipe's).")] = None,
    hidden: Annotated[int | None, typer.Option(help="Hidden units (default: the recipe's).")] = None,
    updates: Annotated[int | None, typer.Option(help="Number of training batches (default: the recipe's).")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed for weights, data and dropout (default 0).")] = None,
    config: ConfigFile = None,
    settings: Settings = None,
    run: Annotated[Path | None, typer.Option(help="Run folder (default: named after the settings).")] = None,
    trust: Trust = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a model on a task. The same command again resumes the same run."""
    from remanence.cli._train import budget_of, full_path, start_run, table_of

    given = table_of(
        {
            "task.options.length": length,
            "task.options.path": full_path(file),
            "model.options.hidden_size": hidden,
            "seed": seed,
        }
    )
    given |= budget_of(updates)
    start_run(task, model, given, settings or [], config, run, trust=trust, quiet=quiet, as_json=json)


def resume(
    run: RunFolder, settings: Settings = None, trust: Trust = False, quiet: Quiet = False, json: Json = False
) -> None:
    """Resume a run of a model or a policy. It ends with the same weights as a run that never stopped."""
    from remanence.cli._train import resume_run

    resume_run(run, settings or [], trust=trust, quiet=quiet, as_json=json)


def evaluate(
    run: RunFolder,
    length: Annotated[str | None, typer.Option(help="Lengths to evaluate at, such as 100,200,5000.")] = None,
    split: Annotated[str, typer.Option(help="validation or test.")] = "test",
    batches: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Number of batches; 0 is one epoch (default: 10; the run's own for texts and series).",
        ),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Sequences per batch (default: 100; the run's own for texts and series).")
    ] = None,
    weights: Weights = "best",
    chunk: Annotated[
        int | None, typer.Option(min=1, help="Steps per chunk (default: whole sequences; 1000 if T > 10,000).")
    ] = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Evaluate a trained model, at any length, or a policy in new episodes."""
    from remanence.cli._evaluate import evaluate_run

    evaluate_run(run, length, split, batches, batch_size, weights, chunk, trust=trust, as_json=json)


def generate(
    run: RunFolder,
    length: Annotated[int, typer.Option(min=1, help="Number of symbols to generate.")] = 200,
    prompt: Annotated[str, typer.Option(help="Text to continue.")] = "",
    temperature: Annotated[
        float, typer.Option(min=0.0, help="Sampling temperature; 0 takes the most likely symbol.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed for sampling.")] = 0,
    weights: Weights = "best",
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Generate text with a trained model."""
    from remanence.cli._generate import generate_from

    generate_from(run, length, prompt, temperature, seed, weights, trust=trust, as_json=json)


def compare(
    task: Annotated[str, typer.Argument(help="Task to train on; see `remanence tasks`.", metavar="TASK")],
    file: OwnFile = None,
    models: Annotated[str, typer.Option(help="Models to compare, such as LSTM,RelRNN.")] = "LSTM,RelLSTM",
    lengths: Annotated[str | None, typer.Option(help="Sequence lengths T, such as 50,100.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds per model and length.")] = 1,
    updates: Annotated[
        int | None, typer.Option(help="Number of training batches (default: 8,000 for copy and denoise).")
    ] = None,
    transfer: Annotated[str | None, typer.Option(help="Also evaluate the best run of each at these lengths.")] = None,
    settings: Settings = None,
    folder: Annotated[Path | None, typer.Option(help="Folder for the runs (default: runs/compare-TASK).")] = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Train several models on one task and compare them. The same command again resumes.

    With the defaults, copy takes one to two minutes on two cores.

    Copy and denoise start at length 10 and get longer as a model learns.
    --set curriculum.start=none switches this curriculum off.
    """
    from remanence.cli._compare import compare_models
    from remanence.cli._train import budget_of, full_path, table_of

    given = table_of({"task.options.path": full_path(file)}) | budget_of(updates)
    compare_models(task, models, given, lengths, seeds, settings or [], folder, jobs, transfer, as_json=json)


def tasks(json: Json = False) -> None:
    """List the tasks, and the accuracy that is possible without memory."""
    from remanence.cli._listing import show_tasks

    show_tasks(as_json=json)


def runs(
    folder: Annotated[Path, typer.Argument(help="Folder to search.", metavar="FOLDER")] = Path("runs"),
    json: Json = False,
) -> None:
    """List the runs below a folder, with their status."""
    from remanence.cli._listing import show_runs

    show_runs(folder, as_json=json)
