"""Configurations of training: from TOML files, tables, and single settings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from remanence.runs import Settings, read_table, settings_table, with_table
from remanence.train._config import RunConfig


def read_config(path: str | Path) -> RunConfig:
    r"""Reads a configuration; what it does not name keeps its default.

    Raises:
        ValueError: If a key is unknown (the nearest is proposed) or a value is of the wrong kind.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "config.toml"
        ...     _ = path.write_text('[task]\nname = "denoise"')
        ...     read_config(path).task.name
        'denoise'
    """
    return config_from(read_table(path))


def config_from(table: Settings, base: RunConfig | None = None) -> RunConfig:
    """Makes a configuration out of nested tables; a key that is unknown or a value that is refused is a ValueError.

    Args:
        table: Keys as in :class:`RunConfig`; ``"none"`` stands for None.
        base: What to change; None changes the defaults.

    Example:
        >>> config_from({"optimizer": {}})
        Traceback (most recent call last):
        ValueError: `key` must be one of 'task', ...; got 'optimizer'. Did you mean 'optimiser'?
    """
    return with_table(base or RunConfig(), table)


def with_settings(config: RunConfig, settings: Iterable[str]) -> RunConfig:
    """Changes single keys, written as on the command line.

    Args:
        config: What to change.
        settings: ``"section.key=value"``; the value is TOML, and a bare word is a string.

    Raises:
        ValueError: If a setting has no ``=``, names an unknown key, or has a wrong value.

    Example:
        >>> config = with_settings(RunConfig(), ["optimiser.learning_rate=0.01", "task.name=denoise"])
        >>> config.optimiser.learning_rate, config.task.name
        (0.01, 'denoise')
        >>> with_settings(RunConfig(), ["optimiser.learning_rat=0.01"])
        Traceback (most recent call last):
        ValueError: `key of [optimiser]` must be one of ...; got 'learning_rat'. Did you mean 'learning_rate'?
    """
    return config_from(settings_table(settings), config)
