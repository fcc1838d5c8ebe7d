"""The commands about reinforcement learning: their options. What they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remanence.cli._training import Json, Quiet, Settings, Trust

rl = typer.Typer(no_args_is_help=True, help="Let policies with a memory learn by playing, in MiniGrid and elsewhere.")


@rl.command()
def train(
    environment: Annotated[str, typer.Argument(help="Id of a gymnasium environment.", metavar="ENVIRONMENT")],
    model: Annotated[str, typer.Option(help="Core of the policy; see `remanence models`.")] = "RelLSTM",
    frames: Annotated[int | None, typer.Option(min=1, help="Steps to play; 5,000,000 unless told.")] = None,
    hidden: Annotated[int | None, typer.Option(min=1, help="Hidden units; 64 unless told.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of weights, episodes and actions.")] = None,
    settings: Settings = None,
    run: Annotated[Path | None, typer.Option(help="Run folder; made from the settings unless told.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a policy by PPO. The same command again, also with more frames, goes on with the same run."""
    from remanence.cli._policies import start_policy
    from remanence.cli._train import table_of

    given = {"environment": environment, "model.name": model, "frames": frames, "seed": seed}
    given["model.options.hidden_size"] = hidden
    start_policy(table_of(given), settings or [], run, quiet=quiet, as_json=json)


@rl.command()
def play(
    run: Annotated[Path, typer.Argument(help="Folder of a policy's run.", metavar="RUN")],
    environment: Annotated[str | None, typer.Option(help="Play here instead of where it has learnt.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="Of the environment there, such as length=500.")] = None,
    episodes: Annotated[int, typer.Option(min=1, help="How many; none was seen in training.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of episodes and actions.")] = 0,
    likeliest: Annotated[bool, typer.Option("--likeliest", help="Take the likeliest action, do not draw.")] = False,
    video: Annotated[Path | None, typer.Option(help="Write a film (GIF) of one episode and its memory.")] = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Let a trained policy play fresh episodes, also in an environment that it has never seen."""
    from remanence.cli._policies import play_episodes

    play_episodes(
        run, environment, option or [], episodes, seed, likeliest=likeliest, video=video, trust=trust, as_json=json
    )
