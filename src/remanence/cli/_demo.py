"""``remanence demo``: cells with and without a memory learn to recall, side by side, as in ``remanence compare``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from remanence.cli._compare import carry_out_or_leave, keep_comparison, leave_if_failed
from remanence.cli._demo_display import DemoResult, conclusion, introduction, race_line, race_table, result_table, where
from remanence.cli._live import live
from remanence.report import write_report
from remanence.runs import Values
from remanence.tasks import Denoise
from remanence.train import ComparedRun, EvaluationConfig, RunConfig, evaluate, plan_grid, recipe, with_settings

_BY_ACCURACY = "evaluation.metric=accuracy"  # which weights are judged; by loss, an LSTM that half learnt would lose
CURRICULUM = ("curriculum.start=10", "curriculum.accuracy=0.9")


@dataclass(frozen=True)
class Plan:
    """What the demo runs; the quick one only shows that everything does.

    `far` is the T of a second test, of `far_rows` sequences, which nobody is trained for.
    """

    length: int = 100
    far: int = 5000
    settings: tuple[str, ...] = ("budget.updates=8000", "budget.accuracy=0.998", "evaluation.every=250", _BY_ACCURACY)
    rows: int = 200
    far_rows: int = 20

    def configs(self, seed: int) -> dict[str, RunConfig]:
        """The contenders by what the table calls them, in the order of their start."""
        contenders = {
            "RelLSTM": ("RelLSTM", *CURRICULUM),
            "LSTM": ("LSTM", "optimiser.learning_rate=3e-3", *CURRICULUM),
            "RelRNN": ("RelRNN", *CURRICULUM),
            "LSTM, no curriculum": ("LSTM",),
        }
        return {label: self._config(seed, *contender) for label, contender in contenders.items()}

    def _config(self, seed: int, model: str, *settings: str) -> RunConfig:
        return with_settings(recipe("denoise", model), [f"seed={seed}", *settings, *self.settings])


_TINY = ("budget.updates=4", "evaluation.every=2", "evaluation.batch_size=2", "model.options.hidden_size=8")
QUICK = Plan(length=12, far=40, settings=(*_TINY, "loop.log_every=2"), rows=4, far_rows=4)


def run_demo(
    *, quick: bool = False, seed: int = 0, folder: Path | None = None, console: Console | None = None
) -> list[DemoResult]:
    """Trains every contender in a run folder of its own, as many at a time as there are cores, and compares them.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = run_demo(quick=True, folder=Path(folder), console=Console(quiet=True))
        >>> [result.label for result in results]
        ['RelLSTM', 'LSTM', 'RelRNN', 'LSTM, no curriculum']
    """
    console = console or Console()
    plan = QUICK if quick else Plan()
    place = folder or Path("runs") / ("demo-quick" if quick else "demo")
    task = Denoise(length=plan.length)
    cells = plan_grid(plan.configs(seed), place, [plan.length])
    introduction(console, cells, task, seed)
    rows = carry_out_or_leave(cells, place, None, live(console, race_table, race_line))
    leave_if_failed(rows, place)
    results = [judge(cell, plan) for cell in cells]
    console.print(result_table(results, plan.length, plan.far))
    words = conclusion(results, plan.length, plan.far, task.chance.accuracy)
    console.print(words, highlight=False, soft_wrap=not console.is_terminal)
    keep_comparison(place, {"runs": rows, "transfer": [_far(result, plan) for result in results]})
    where(console, [cell.run.folder for cell in cells], _report(place, measure=not quick))
    return results


def _far(result: DemoResult, plan: Plan) -> Values:
    """A contender at the length that it was not trained for, as a comparison keeps it."""
    which = {"model": result.label, "trained_at": plan.length, "run": str(result.run)}
    return {**which, "measured_at": plan.far, "sequences": plan.far_rows, "accuracy": result.far_accuracy}


def _report(place: Path, measure: bool) -> Path | None:
    """The page about the runs; None without plotly."""
    try:
        return write_report([place], place / "report.html", measure=measure)
    except ImportError:
        return None


def judge(cell: ComparedRun, plan: Plan) -> DemoResult:
    """Measures a trained contender on test sequences, at the length that it was trained for and far beyond."""
    model, task = cell.run.load()
    near = evaluate(model, task, EvaluationConfig(batches=1, batch_size=plan.rows), "test")
    far = evaluate(model, task.with_length(plan.far), EvaluationConfig(batches=1, batch_size=plan.far_rows), "test")
    status = cell.run.status
    return DemoResult(
        label=cell.model,
        run=cell.run.folder,
        has_memory=cell.run.config.model.name.startswith("Rel"),
        accuracy=near["accuracy"],
        far_accuracy=far["accuracy"],
        updates=status["update"],
        seconds=status["seconds"],
        state_bytes=model.core.initial_state(1).nbytes,  # pyright: ignore[reportCallIssue]
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )
