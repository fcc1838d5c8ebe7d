"""Training: a run is a folder, it can be killed at any moment, and goes on with the same bits."""

from remanence.train._checkpoint import Checkpoint, load_checkpoint, save_checkpoint
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
)
from remanence.train._distributed import Processes, join_processes
from remanence.train._errors import CheckpointError, NonFiniteError, RunError, RunLockedError, StorageError
from remanence.train._evaluation import evaluate
from remanence.train._grid import Cell, carry_out, plan_grid, run_name, summarise
from remanence.train._metrics import MetricsFile
from remanence.train._optimisers import AveragingSGD, make_optimiser, parameter_groups
from remanence.train._outcome import Outcome
from remanence.train._recipes import recipe
from remanence.train._run import Run, best_run, list_runs
from remanence.train._toml import config_from, read_config, to_toml, with_settings
from remanence.train._trainer import resume, train

__all__ = [
    "train",
    "resume",
    "evaluate",
    "Outcome",
    "Run",
    "list_runs",
    "best_run",
    "recipe",
    "Cell",
    "plan_grid",
    "run_name",
    "carry_out",
    "summarise",
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
    "make_optimiser",
    "parameter_groups",
    "Checkpoint",
    "save_checkpoint",
    "load_checkpoint",
    "MetricsFile",
    "Processes",
    "join_processes",
    "RunError",
    "NonFiniteError",
    "RunLockedError",
    "StorageError",
    "CheckpointError",
]
