"""The commands about reinforcement learning: their options. What they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remanence.cli._training import Jobs, Json, Quiet, Settings, Trust

rl = typer.Typer(no_args_is_help=True, help="Train and play policies with a memory, in any Gymnasium environment.")


@rl.command()
def train(
    environment: Annotated[str, typer.Argument(help="Id of a Gymnasium environment.", metavar="ENVIRONMENT")],
    model: Annotated[str, typer.Option(help="Core of the policy; see `remanence models`.")] = "RelLSTM",
    frames: Annotated[int | None, typer.Option(min=1, help="Environment steps (default: 5,000,000).")] = None,
    hidden: Annotated[int | None, typer.Option(min=1, help="Hidden units (default: 64).")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed for weights, episodes and actions (default 0).")] = None,
    settings: Settings = None,
    run: Annotated[Path | None, typer.Option(help="Run folder (default: named after the settings).")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a policy by PPO. The same command again, also with more frames, resumes the same run."""
    from remanence.cli._policies import start_policy
    from remanence.cli._train import table_of

    given = {"environment": environment, "model.name": model, "frames": frames, "seed": seed}
    given["model.options.hidden_size"] = hidden
    start_policy(table_of(given), settings or [], run, quiet=quiet, as_json=json)


@rl.command()
def play(
    run: Annotated[Path, typer.Argument(help="Run folder of a policy.", metavar="RUN")],
    environment: Annotated[
        str | None, typer.Option(help="Environment to play in (default: the one it was trained in).")
    ] = None,
    option: Annotated[list[str] | None, typer.Option(help="Option of that environment, such as length=500.")] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Number of new episodes.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed for episodes and actions.")] = 0,
    likeliest: Annotated[
        bool, typer.Option("--likeliest", help="Take the most likely action instead of sampling.")
    ] = False,
    video: Annotated[Path | None, typer.Option(help="Write a GIF of one episode and its memory.")] = None,
    film: Annotated[
        bool, typer.Option("--film", help="Keep such a GIF in the run folder, for `remanence report`.")
    ] = False,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Play new episodes with a trained policy, in any environment."""
    from remanence.cli._policies import play_episodes

    play_episodes(
        run,
        environment,
        option or [],
        episodes,
        seed,
        likeliest=likeliest,
        video=video,
        film=film,
        trust=trust,
        as_json=json,
    )


@rl.command()
def compare(
    environment: Annotated[str, typer.Argument(help="Id of a Gymnasium environment.", metavar="ENVIRONMENT")],
    models: Annotated[
        str, typer.Option(help="Cores, separated by commas; none is the same network without memory.")
    ] = "RelLSTM,LSTM,GRU,MinGRU,none",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds for each model.")] = 3,
    frames: Annotated[int | None, typer.Option(min=1, help="Environment steps of each (default: 5,000,000).")] = None,
    hidden: Annotated[int | None, typer.Option(min=1, help="Hidden units (default: 64).")] = None,
    episodes: Annotated[int, typer.Option(min=1, help="New episodes played after training.")] = 100,
    settings: Settings = None,
    folder: Annotated[Path | None, typer.Option(help="Folder for the runs (default: runs/compare-...).")] = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Train several policies with equal budgets and compare them. The same command again resumes them."""
    from remanence.cli._rl_compare import compare_policies

    given = {"frames": frames, "model.options.hidden_size": hidden}
    compare_policies(environment, models, seeds, given, settings or [], episodes, folder, jobs, as_json=json)
