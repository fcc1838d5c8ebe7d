"""What a page needs of trained weights: measured once, and kept in the run's folder, so that pages only read files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from remanence import probes
from remanence.report._comparison import best_of, compare
from remanence.report._measured_weights import MeasuredWeights
from remanence.report._reading import folders_with
from remanence.report._run_record import PROBES, RunRecord, read_run
from remanence.runs import Values, replace_file, sealed, tag
from remanence.tasks import Task
from remanence.train import Run

ROWS = 8
"""Sequences over which the gradient is averaged."""
REPEATS = 7
"""Times that a cost is measured; the fastest counts."""
LONGEST_MAP = 1000
"""Steps up to which attention is kept: its map has a number for each pair of steps."""
COST_LENGTHS = (200, 400, 800, 1600)
"""Steps at which the cost is measured: the same for all models, and long enough for a clock."""


def measure_missing(paths: Sequence[str | Path], say: Callable[[str], None] = lambda text: None) -> list[Path]:
    """Measures the best run of every model and length, unless that was done, and writes ``probes.json`` to its folder.

    Gives the files that were written.
    """
    records = [read_run(folder, []) for folder in folders_with("config.toml", paths)]
    written = []
    for cell in (cell for comparison in compare(records) for cell in comparison.cells):
        best = best_of([run for run in cell.runs if run.best is not None])
        if best is None or best.is_measured:
            continue
        if best.config.get("imports"):
            say(f"{best.folder} is not measured: it names code of its own, which a report does not run")
            continue
        say(f"measuring {cell.name} in {best.folder}")
        try:
            table = measure_run(best)
            replace_file(best.folder / PROBES, sealed(table).encode())
        except Exception as error:  # whatever is wrong with one run, the page shows the others
            say(f"{best.folder} could not be measured: {error}")
            continue
        written.append(best.folder / PROBES)
    return written


def measure_run(record: RunRecord) -> dict[str, object]:
    """Gradient reach, attention, cost and sizes of a run's best weights, on its task's test sequences.

    Returns:
        For JSON: ``update`` of the weights, ``parameters``, ``steps`` of a sequence, ``chance``, and the results of the
        probes by name; what a probe refuses is in ``errors``.
    """
    model, task = Run(record.folder).load()
    batch = task.batch(0, ROWS, split="test")
    one = task.batch(0, 1, split="test").inputs
    steps = int(batch.inputs.shape[0])
    measured: dict[str, Callable[[], object]] = {
        "gradient_reach": lambda: probes.gradient_reach(model, batch, task.loss).to_dict(),
        "cost": lambda: probes.cost(model, COST_LENGTHS, one, repeats=REPEATS, count=False).to_dict(),
    }
    if steps <= LONGEST_MAP:
        measured["attention_map"] = lambda: probes.attention_map(model, one).to_dict()
    table: Values = {
        **tag(MeasuredWeights.kind, MeasuredWeights.version),
        "update": record.best_update,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "steps": steps,
        "rows": ROWS,
        "chance": _chance(task),
        "errors": {},
    }
    for name, measure in measured.items():
        try:
            with _threads(record):
                table[name] = _rounded(measure())
        except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
            table["errors"][name] = str(error)
    return table


@contextmanager
def _threads(record: RunRecord) -> Iterator[None]:
    """As many threads as the run was trained with, so that times can be compared."""
    before = torch.get_num_threads()
    torch.set_num_threads(int(record.table("loop").get("threads", 1)))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _chance(task: Task) -> float | None:
    try:
        return task.chance.accuracy
    except (ValueError, RuntimeError, OSError):
        return None


def _rounded(value: object) -> object:
    """Six digits: more than any picture shows, in half the space."""
    if isinstance(value, float):
        return float(f"{value:.6g}") or 0
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
