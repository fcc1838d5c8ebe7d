"""What fills a cell: a run to be trained, and what is measured on it; its folder is named by its settings."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from remanence.rl import PolicyConfig
from remanence.runs import Settings, Values, nested_table, with_table
from remanence.train import RunConfig, config_from, run_name

SEED = "seed"


@dataclass(frozen=True)
class Measure:
    """A measurement by its name.

    Args:
        name: one of :data:`remanence.experiments.measures.MEASURES`.
        settings: plain values that decide what comes out; with a ``"seed"`` it takes the seed of the cell.

    Example:
        >>> Measure("answers", {"lengths": [100]}).file.startswith("answers-")
        True
    """

    name: str
    settings: Settings = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that name the settings."""
        return _digest([self.name, dict(self.settings)])

    @property
    def file(self) -> str:
        """Where its result lies in the cell's folder."""
        return f"{self.name}-{self.digest}.json"

    def with_setting(self, key: str, value: object) -> Measure:
        """The same with one setting changed; ``"settings.KEY"`` changes one key of the table ``settings``."""
        table, _, inner = key.partition(".")
        if inner:
            return Measure(self.name, {**self.settings, table: {**self.settings[table], inner: value}})
        return Measure(self.name, {**self.settings, key: value})

    def seeded(self, seed: int) -> Measure:
        """The same with the seed of a cell, if it takes one."""
        if SEED not in self.settings:
            return self
        return self.with_setting(SEED, seed)


@dataclass(frozen=True)
class Work:
    """All that must be done for a cell.

    Args:
        config: of the run, None where nothing is trained.
        measures: what is measured, in order.

    Example:
        >>> Work(RunConfig(), ()).name.startswith("copy-LSTM-s0-")
        True
    """

    config: RunConfig | PolicyConfig | None
    measures: tuple[Measure, ...]

    @property
    def name(self) -> str:
        """Folder of the cell. Measurements of one run share it: a table may ask for more of what another has run."""
        if isinstance(self.config, RunConfig):
            return run_name(self.config)
        if isinstance(self.config, PolicyConfig):
            config = self.config
            environment = config.environment.removesuffix("-v0").removeprefix("MiniGrid-")
            environment = environment.replace("/", "-").replace(":", "-")
            return f"{environment}-{config.model.name}-s{config.seed}-f{config.frames}-{config.digest}"
        digest = _digest([[measure.name, dict(measure.settings)] for measure in self.measures])
        return f"{self.measures[0].name}-{digest}"

    @property
    def threads(self) -> int:
        """Processor cores that it asks for."""
        if isinstance(self.config, RunConfig):
            return self.config.loop.threads
        if isinstance(self.config, PolicyConfig):
            return self.config.threads
        return 1

    def to_dict(self) -> Values:
        """Plain values, for another process or a record."""
        kind = {RunConfig: "training", PolicyConfig: "policy"}.get(type(self.config), "measurement")
        config = self.config and dataclasses.asdict(self.config)
        measures = [{"name": measure.name, "settings": dict(measure.settings)} for measure in self.measures]
        return {"kind": kind, "config": config, "measures": measures}

    @classmethod
    def from_dict(cls, values: Settings) -> Work:
        """What :meth:`to_dict` gave, also after a way through JSON."""
        config = values["config"]
        if values["kind"] == "training":
            config = config_from(_plain(config))
        elif values["kind"] == "policy":
            config = with_table(PolicyConfig(), _plain(config))
        return cls(config, tuple(Measure(one["name"], one["settings"]) for one in values["measures"]))


def make_config(kind: str, settings: Settings, seed: int) -> RunConfig | PolicyConfig | None:
    """The configuration of a run; a ``"measurement"`` has none.

    Args:
        kind: ``"training"``, ``"policy"``, or ``"measurement"``.
        settings: values by dotted keys; None is written "none".
        seed: of the run.

    Example:
        >>> make_config("training", {"task.name": "denoise", "optimiser.learning_rate": 2e-4}, seed=3).seed
        3
    """
    if kind == "measurement":
        return None
    table = nested_table({**settings, SEED: seed})
    if kind == "policy":
        return with_table(PolicyConfig(), table)
    return config_from(table)


def _plain(value: object) -> Any:
    """A dumped configuration as a table to read: None has a word of its own there."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return list(value)
    return value


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]
