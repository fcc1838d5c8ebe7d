"""Training: a run is a folder that can be killed at any moment and resumed with the same bits.

Start with :func:`train`: it makes a :class:`Run` out of a :class:`RunConfig`; :func:`recipe` has a task's settings.
"""

from remanence._renamed import renamed
from remanence.runs import (
    Checkpoint,
    CheckpointError,
    MetricsFile,
    NonFiniteError,
    RunError,
    RunLockedError,
    StorageError,
    load_checkpoint,
    save_checkpoint,
    to_toml,
)
from remanence.train._building import build_model, build_task
from remanence.train._clipping import clip_gradients_
from remanence.train._config import (
    BudgetConfig,
    CurriculumConfig,
    EvaluationConfig,
    LoopConfig,
    ModelConfig,
    OptimiserConfig,
    RunConfig,
    ScheduleConfig,
    TaskConfig,
    config_from,
    read_config,
    with_settings,
)
from remanence.train._distributed import Processes, joined_processes
from remanence.train._evaluation import Evaluation, evaluate
from remanence.train._grid import ComparedRun, Comparison, carry_out, plan_grid, run_name, summarise
from remanence.train._optimisers import AveragingSGD, load_optimiser, make_optimiser, parameter_groups
from remanence.train._progress import ACCURACY_REACHED, LOSS_REACHED
from remanence.train._recipes import comparison_recipe, recipe
from remanence.train._run import Run, Weights, best_run, list_runs
from remanence.train._trainer import Outcome, resume, train

__all__ = [
    "ACCURACY_REACHED",
    "LOSS_REACHED",
    "train",
    "resume",
    "evaluate",
    "Evaluation",
    "Outcome",
    "Run",
    "Weights",
    "list_runs",
    "load_optimiser",
    "best_run",
    "recipe",
    "comparison_recipe",
    "ComparedRun",
    "plan_grid",
    "run_name",
    "carry_out",
    "summarise",
    "Comparison",
    "RunConfig",
    "TaskConfig",
    "ModelConfig",
    "OptimiserConfig",
    "ScheduleConfig",
    "BudgetConfig",
    "LoopConfig",
    "EvaluationConfig",
    "CurriculumConfig",
    "read_config",
    "config_from",
    "with_settings",
    "to_toml",
    "AveragingSGD",
    "build_task",
    "build_model",
    "make_optimiser",
    "parameter_groups",
    "clip_gradients_",
    "Checkpoint",
    "save_checkpoint",
    "load_checkpoint",
    "MetricsFile",
    "Processes",
    "joined_processes",
    "RunError",
    "NonFiniteError",
    "RunLockedError",
    "StorageError",
    "CheckpointError",
]

__getattr__ = renamed(__name__, {"Cell": "ComparedRun"})
