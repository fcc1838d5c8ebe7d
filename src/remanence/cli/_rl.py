"""The commands about reinforcement learning: their options. What they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remanence.cli._training import Json, Quiet, Settings, Trust

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
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Play new episodes with a trained policy, in any environment."""
    from remanence.cli._policies import play_episodes

    play_episodes(
        run, environment, option or [], episodes, seed, likeliest=likeliest, video=video, trust=trust, as_json=json
    )
