"""From a configuration to its policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remanence._validate import message
from remanence.rl._config import PolicyConfig
from remanence.rl._core import grows
from remanence.rl._environment import longest_episode, make_environment, observed
from remanence.rl._observations import Field
from remanence.rl._policy import MemoryPolicy
from remanence.runs import Settings, Values, import_all, require_trust

if TYPE_CHECKING:  # gymnasium is an extra
    from gymnasium import Env, Space


def build_policy(
    config: PolicyConfig, environment: str | None = None, there_options: Settings | None = None
) -> MemoryPolicy:
    """Makes the policy of a configuration; its weights come from torch's global generator.

    The code that the configuration names is run first.

    Args:
        config: The run's settings.
        environment: Where it will play, if elsewhere.
        there_options: Options of that environment, if they differ from training.

    Raises:
        UntrustedCodeError: If that code is neither the user's own choice nor trusted.
        ValueError: If the configuration cannot be built.

    Example:
        >>> build_policy(PolicyConfig()).core.hidden_size
        64
    """
    require_trust(config.code)
    import_all(config.imports)
    home = make_environment(config.environment, config.environment_options)
    there = home
    if environment is not None or there_options is not None:
        there = make_environment(environment or config.environment, there_options)
    spaces = _spaces(home, config)
    if _spaces(there, config) != spaces:
        expected = f"show and allow what {config.environment} does"
        raise ValueError(message("environment", expected, f"{_spaces(there, config)} in {environment}, not {spaces}"))
    name = config.model.name
    options = dict(config.model.options)
    choices: Values = {"words": config.words, "squash": config.squash, "forgets": config.forgets}
    choices["memory_use"] = config.memory
    policy = MemoryPolicy(*spaces, name, **choices, **options)
    if not grows(policy.core):
        return policy
    limit = longest_episode(there)  # else the state would grow for ever, with what resets have emptied in it
    if limit is None:
        expected = "have a `limit` where episodes have none"
        raise ValueError(message("model.options", expected, options, f"{name} keeps every state"))
    return MemoryPolicy(*spaces, name, **choices, **{**options, "limit": limit})


def _spaces(environment: Env, config: PolicyConfig) -> tuple[tuple[Field, ...], Space]:
    """What a policy sees there, and what it can do."""
    return observed(environment, config.words, config.observe), environment.action_space
