"""Whether an environment needs memory at all: one policy trained with and without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from remanence._validate import message, positive_int
from remanence.rl._comparison import COMPARISON, NO_MEMORY, PolicyComparison
from remanence.rl._config import PolicyConfig
from remanence.rl._play import evaluate_policy
from remanence.rl._run import load_policy, train_policy
from remanence.runs import Observer, RunError, write_result


def memory_demand(
    config: PolicyConfig,
    folder: str | Path,
    *,
    seeds: int = 3,
    episodes: int = 100,
    observer: Observer | None = None,
) -> PolicyComparison:
    """Trains a policy with and without its memory, equally long, and compares their returns in new episodes.

    Without memory it is the same network, its core reset at every step. Call it again to resume it, or with
    more `frames` to go on. ``remanence rl compare ENVIRONMENT --models LSTM,none`` does the same, several runs at once.

    Args:
        config: of the policy; its `seed` is the first of the seeds.
        folder: of all runs; ``remanence report`` makes a page of it.
        seeds: how many runs with memory, and as many without.
        episodes: that each plays after training.
        observer: is told what :func:`train_policy` tells.

    Returns:
        The comparison. Its `verdict` says in words what `needs_memory` and `gains` say in numbers.

    Raises:
        RunError: a run was interrupted, or could not go on.
        ValueError: `config` has no memory to begin with.

    Example:
        >>> import tempfile
        >>> config = PolicyConfig("remanence/TMaze-v0", frames=256, copies=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = memory_demand(config, folder, seeds=2, episodes=2)
        >>> sorted(found.returns)
        ['RelLSTM', 'none']
    """
    positive_int("seeds", seeds)
    positive_int("episodes", episodes)
    if config.forgets:
        raise ValueError(message("config.forgets", "be False: both are trained", config.forgets))
    name = config.model.name
    place = Path(folder)
    returns: dict[str, list[float]] = {name: [], NO_MEMORY: []}
    for seed in range(config.seed, config.seed + seeds):
        for model in returns:
            run = place / f"{model}-s{seed}"
            outcome = train_policy(replace(config, seed=seed, forgets=model == NO_MEMORY), run, observer)
            if outcome.status == "interrupted":
                raise RunError(f"{run} was interrupted by signal {outcome.signal}; the same call resumes it")
            policy, _ = load_policy(run)
            score = evaluate_policy(policy, config.environment, episodes, options=config.environment_options)
            returns[model].append(score.mean)
    found = PolicyComparison(config.where, config.frames, episodes, returns)
    write_result(place / COMPARISON, found)
    return found
