"""``remanence compare``: several models, lengths and seeds side by side."""

from __future__ import annotations

import contextlib
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from remanence import train
from remanence.cli._demo_display import percent
from remanence.cli._errors import exit_codes
from remanence.cli._live import Rows, Tick, live, resumable
from remanence.cli._tables import json_text, numbers, plain_table, show_rows, shown
from remanence.cli._train import adjusted
from remanence.data import DataError
from remanence.report import sentences
from remanence.runs import RunError, Values, available_cores, tag, write_result
from remanence.tasks import Baseline, Task
from remanence.train import ComparedRun, Comparison, carry_out

COLUMNS = ("model", "length", "seed", "status", "update", "loss", "accuracy", "best_accuracy", "updates_per_second")
HEADINGS = {"best_accuracy": "best", "updates_per_second": "updates/s"}
"""Shorter than the names, so that the table fits 80 characters."""
TRANSFER_ROWS = 20
FAILED = 1


def compare_models(
    task: str,
    models: str,
    given: Values,
    lengths: str | None,
    seeds: int,
    settings: list[str],
    folder: Path | None,
    jobs: int | None,
    transfer: str | None,
    *,
    as_json: bool,
) -> None:
    """Does what ``remanence compare`` says."""
    with exit_codes():
        configs = {name: adjusted(train.comparison_recipe(task, name), given, settings) for name in models.split(",")}
        place = folder or Path("runs") / f"compare-{task}"
        cells = train.plan_grid(configs, place, numbers("lengths", lengths) or [None], seeds)
        transfer_lengths = numbers("transfer", transfer)
        display = contextlib.nullcontext() if as_json else live(Console(), make_table, _line)
        rows = carry_out_or_leave(cells, place, jobs, display)
        report = {"runs": rows, "seeds": over_seeds(rows), "transfer": _transferred(cells, transfer_lengths)}
        keep_comparison(place, report)
    _show(report, as_json)
    if not as_json:
        _conclude(cells, place)
    leave_if_failed(rows, place)


def carry_out_or_leave(
    cells: list[ComparedRun], place: Path, jobs: int | None, display: AbstractContextManager[Tick | None]
) -> Rows:
    """Carries out the runs of a comparison; Ctrl-C and SIGTERM save them all, say how to go on, and leave."""
    # The message comes when the display has ended, which would draw its table over it.
    with resumable(f"every run in {place} is saved"), display as tick:
        return carry_out(cells, jobs or available_cores(), tick)


def leave_if_failed(rows: Rows, place: Path) -> None:
    """Leaves with an exit code if a run failed."""
    if any(row["status"] != "done" for row in rows):
        typer.echo(f"some runs failed; see output.txt in their folders below {place}", err=True)
        raise typer.Exit(FAILED)


def _line(row: Values) -> str:
    return "  ".join(f"{name} {shown(row[name])}" for name in COLUMNS if row[name] is not None)


def make_table(rows: Rows) -> Table:
    """The runs of a comparison as a table."""
    table = plain_table(*(HEADINGS.get(name, name) for name in COLUMNS))
    for row in rows:
        table.add_row(*(shown(row[name]) for name in COLUMNS))
    return table


def over_seeds(rows: Rows) -> Rows:
    """Mean and range of the accuracies of each model and length.

    Example:
        >>> runs = [{"model": "LSTM", "length": 5, "accuracy": value} for value in (0.5, 1.0)]
        >>> over_seeds(runs)
        [{'model': 'LSTM', 'length': 5, 'seeds': 2, 'mean': 0.75, 'least': 0.5, 'most': 1.0}]
    """
    found: dict[tuple[str, int | None], list[float]] = {}
    for row in rows:
        if row["accuracy"] is not None:
            found.setdefault((row["model"], row["length"]), []).append(row["accuracy"])
    return [
        {
            "model": model,
            "length": length,
            "seeds": len(values),
            "mean": sum(values) / len(values),
            "least": min(values),
            "most": max(values),
        }
        for (model, length), values in found.items()
    ]


def _transferred(cells: list[ComparedRun], lengths: list[int]) -> Rows:
    """The best run of every model and length by validation, measured at other lengths without more training."""
    rows = []
    for model, length in dict.fromkeys((cell.model, cell.length) for cell in cells):
        best = train.best_run([cell.run for cell in cells if (cell.model, cell.length) == (model, length)])
        if best is None or not lengths:
            continue
        network, task = best.load()
        for other in lengths:
            found = train.evaluate(
                network, task.with_length(other), train.EvaluationConfig(batches=1, batch_size=TRANSFER_ROWS), "test"
            )
            which = {"model": model, "trained_at": length, "seed": best.config.seed, "run": str(best.folder)}
            rows.append({**which, "measured_at": other, "sequences": TRANSFER_ROWS, **found})
    return rows


def keep_comparison(place: Path, report: dict[str, Rows]) -> Path:
    """Stores the results and the command next to the runs, for ``remanence report``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     keep_comparison(Path(folder), {"runs": [], "transfer": []}).name
        'comparison.json'
    """
    comparison = Comparison(**report, command=["remanence", *sys.argv[1:]])
    return write_result(place / "comparison.json", comparison)


def _show(report: dict[str, Rows], as_json: bool) -> None:
    if as_json:
        typer.echo(json_text({**tag("comparison"), **report}))
        return
    Console().print(make_table(report["runs"]))
    if any(row["seeds"] > 1 for row in report["seeds"]):
        typer.echo("\naccuracy over the seeds:")
        show_rows(report["seeds"], as_json=False)
    if report["transfer"]:
        typer.echo("\nbest by validation, at other lengths without more training:")
        show_rows([{key: row[key] for key in row if key != "run"} for row in report["transfer"]], as_json=False)


def _conclude(cells: list[ComparedRun], place: Path) -> None:
    """Says in sentences what the baselines get, what each model reached, and where to read more."""
    typer.echo("")
    for sentence in (*_baselines(cells), *sentences([cell.run.folder for cell in cells])):
        typer.echo(sentence)
    typer.echo(f"\nCurves, costs and settings on one page: remanence report {place}")


def _baselines(cells: list[ComparedRun]) -> list[str]:
    """What can be reached without learning, if the task can say so; its data may have gone."""
    with contextlib.suppress(ValueError, DataError, RunError):
        _, task = cells[0].run.load()
        return [baseline_words(task)]
    return []


def baseline_words(task: Task) -> str:
    """What the baselines of a task reach, in a sentence.

    Example:
        >>> from remanence.tasks import Copy
        >>> baseline_words(Copy(length=5))
        'For comparison: a guess gets 12.5 % (loss 0.8318).'
    """
    words = f"For comparison: {task.chance_name} gets {_reached(task.chance)}"
    if task.memory_free == task.chance:
        return f"{words}."
    return f"{words}; the present input alone allows {_reached(task.memory_free)}."


def _reached(baseline: Baseline) -> str:
    return f"{percent(baseline.accuracy)} (loss {shown(baseline.loss)})"
