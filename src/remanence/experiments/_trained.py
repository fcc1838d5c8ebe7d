"""Models trained one after the other, each measured once it is done: what was found is kept model by model."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from remanence.experiments._stored import save_stored
from remanence.nn import SequenceModel
from remanence.tasks import Task
from remanence.train import RunConfig, config_from, train

Measure = Callable[[SequenceModel, Task, int], dict[str, Any]]


@dataclass(frozen=True)
class Entry:
    """One model of an experiment.

    Args:
        label: how tables name it, such as ``"LSTM 32"``.
        model: one of :func:`remanence.nn.list_models`.
        options: of the model.
        task: options of the task that differ from the experiment's.
        seed: of weights and batches.

    Example:
        >>> Entry("LSTM 32", "LSTM", {"hidden_size": 32}, seed=1).folder
        'LSTM-32-seed-1'
    """

    label: str
    model: str
    options: dict[str, Any] = field(default_factory=dict)
    task: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def folder(self) -> str:
        """Name of its run folder."""
        return f"{self.label.replace(' ', '-')}-seed-{self.seed}"


def run_entries(
    entries: Sequence[Entry], recipe: dict[str, Any], measure: Measure, out: Path, weights: str = "best"
) -> list[dict[str, Any]]:
    """Trains and measures what has not been measured yet.

    Args:
        entries: the models, in order.
        recipe: settings that all share, as in a configuration file.
        measure: takes the trained model, its task and the seed; gives what is to be kept.
        out: folder of the runs and of one result a model, so that a stop loses nothing.
        weights: measured are the ``"best"`` by validation, or the ``"last"``.

    Returns:
        What was kept of each model, in order.
    """
    return [_result(entry, recipe, measure, out, weights) for entry in entries]


def _result(entry: Entry, recipe: dict[str, Any], measure: Measure, out: Path, weights: str) -> dict[str, Any]:
    kept = out / f"{entry.folder}.json"
    if not kept.exists():
        started = time.perf_counter()
        result = _trained(entry, recipe, measure, out / "runs" / entry.folder, weights)
        minutes = round((time.perf_counter() - started) / 60, 2)
        kept.write_text(json.dumps(result | {"minutes": minutes}, indent=1), encoding="utf-8")
        print(f"{entry.folder}: {minutes} min, {result['validation']}", flush=True)
    return json.loads(kept.read_text(encoding="utf-8"))


def _trained(entry: Entry, recipe: dict[str, Any], measure: Measure, folder: Path, weights: str) -> dict[str, Any]:
    outcome = train(configuration(entry, recipe), folder)
    if outcome.status != "done":
        raise KeyboardInterrupt(f"stopped at update {outcome.update} of {entry.label}; the same command goes on")
    model, task = outcome.run.load(weights)
    facts = {
        "label": entry.label,
        "model": entry.model,
        "options": entry.options,
        "task": entry.task,
        "seed": entry.seed,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "updates": outcome.update,
        "validation": outcome.run.status.get("best", outcome.validation.get("loss")),
    }
    return facts | measure(model, task, entry.seed)


def configuration(entry: Entry, recipe: dict[str, Any]) -> RunConfig:
    """The recipe with the model in it.

    Example:
        >>> configuration(Entry("LSTM 8", "LSTM", {"hidden_size": 8}), {"task": {"name": "copy"}}).model.options
        {'hidden_size': 8}
    """
    shared = config_from(recipe)
    own = {"name": entry.model, "options": {**shared.model.options, **entry.options}}
    return config_from({"task": {"options": entry.task}, "model": own, "seed": entry.seed}, shared)


def keep(name: str, what: str, scaled_down: str, results: dict[str, Any], out: Path) -> Path:
    """Writes the record of an experiment as far as it has come.

    Args:
        name: of the record.
        what: was run, in one sentence.
        scaled_down: what is smaller than in the document.
        results: what came out.
        out: folder of the record.
    """
    command = f"python -m remanence.experiments {name.partition('_')[2]} FOLDER"
    machine = f"{platform.machine()}, one thread, torch {torch.__version__}"
    record = {"what": what, "command": command, "scaled_down": scaled_down, "machine": machine, "results": results}
    return save_stored(name, record, out)
