"""``remanence rl train`` and ``remanence rl play``."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import torch
import typer

from remanence import rl
from remanence._wording import bracketed
from remanence.cli._errors import exit_codes
from remanence.cli._progress import transient_progress, watch
from remanence.cli._tables import show_rows
from remanence.cli._train import leave_if_interrupted, show_end
from remanence.rl import PolicyConfig, PolicyOutcome
from remanence.runs import Values, settings_table, tag, trusting, with_table


def start_policy(given: Values, settings: list[str], folder: Path | None, *, quiet: bool, as_json: bool) -> None:
    """Does what ``remanence rl train`` says."""
    with exit_codes():
        config = with_table(with_table(PolicyConfig(), given), settings_table(settings))
        config = replace(config, label=config.label or label_of(config))
        where = config.environment.replace("/", "-").replace(":", "-")
        place = folder or Path("runs") / f"{where}-{config.model.name}-s{config.seed}-{config.digest}"
        with watch(place, quiet or as_json) as observer:
            outcome = rl.train_policy(config, place, observer)
    finish_policy(outcome, as_json)


def label_of(config: PolicyConfig) -> str:
    """What tables and pages call a policy: its core with the options that were chosen, and whether it remembers.

    Example:
        >>> label_of(PolicyConfig(forgets=True))
        'RelLSTM (without memory)'
    """
    own = [f"{name} {value}" for name, value in config.model.options.items()]
    if config.forgets:
        own.append("without memory")
    return bracketed(config.model.name, ", ".join(own))


def continue_policy(folder: Path, settings: list[str], *, quiet: bool, as_json: bool) -> None:
    """Does what ``remanence resume`` says, for the run of a policy."""
    config = with_table(rl.PolicyRun.open(folder).config, settings_table(settings))
    with watch(folder, quiet or as_json) as observer:
        outcome = rl.resume_policy(folder, observer, config)
    finish_policy(outcome, as_json)


def finish_policy(outcome: PolicyOutcome, as_json: bool) -> None:
    """Prints how a policy's run ended, and leaves with the exit code that says so."""
    facts = {"run": str(outcome.folder), "status": outcome.status, "update": outcome.update}
    facts |= {"frames": outcome.frames, "mean_return": outcome.mean_return}
    show_end(facts, _words(outcome), as_json)
    leave_if_interrupted(outcome.status, outcome.signal)


def _words(outcome: PolicyOutcome) -> str:
    mean = "no episode has ended yet"
    if outcome.mean_return is not None:
        mean = f"mean return {outcome.mean_return:.3f} in the last episodes"
    if outcome.status == "interrupted":
        return f"stopped after {outcome.frames:,} frames, saved ({mean}). Resume with the same command."
    return f"done after {outcome.frames:,} frames: {mean}. Run: {outcome.folder}"


def play_episodes(
    run: Path,
    environment: str | None,
    options: list[str],
    episodes: int,
    seed: int,
    *,
    likeliest: bool,
    video: Path | None,
    as_json: bool,
    film: bool = False,
    trust: bool = False,
) -> None:
    """Does what ``remanence rl play`` says."""
    with exit_codes(), trusting(trust), transient_progress() as progress:
        given = settings_table(options) or None
        policy, config = rl.load_policy(run, environment, given)
        torch.set_num_threads(config.threads)
        where = environment or config.environment
        there = given or {}
        if not given and environment is None:
            there = config.environment_options
        job = progress.add_task(where, total=episodes)
        tell = lambda ended: progress.update(job, completed=ended)  # noqa: E731
        # Pictures need no window; without this, SDL prints an error where there is no display.
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        if video is not None:  # first, so that a bad path is not found out after all episodes
            rl.film_policy(policy, where, video, options=there, seed=seed, likeliest=likeliest)
        if film:
            rl.keep_film(run, seed=seed, likeliest=likeliest)
        score = rl.evaluate_policy(policy, where, episodes, seed=seed, likeliest=likeliest, options=there, tell=tell)
    error = score.error if episodes > 1 else None  # one episode has none
    row = {"environment": where, "episodes": episodes, "mean_return": score.mean, "standard_error": error}
    show_rows([{**tag("play"), **row, "mean_length": fmean(score.lengths)}], as_json)
    if video is not None and not as_json:
        typer.echo(f"film of one episode: {video}")
    if film and not as_json:
        typer.echo(f"film kept in the run folder; it is shown by: remanence report {run}")
