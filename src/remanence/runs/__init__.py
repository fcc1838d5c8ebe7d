"""What a run is: folder, lock, whole files, checkpoints, random states, manifest, metrics, history, results.

It lies below :mod:`remanence.train` and :mod:`remanence.rl`, which make runs, and knows no model.
"""

from remanence.ops.states import detach, map_tensors
from remanence.runs._checkpoint import (
    Checkpoint,
    forget_drafts,
    list_checkpoints,
    load_best,
    load_checkpoint,
    save_best,
    save_checkpoint,
    taking_up,
)
from remanence.runs._errors import (
    CheckpointError,
    DamagedFileError,
    NonFiniteError,
    RunError,
    RunLockedError,
    StorageError,
    UntrustedCodeError,
)
from remanence.runs._files import (
    is_locked,
    locked,
    read_file,
    read_json,
    replace_file,
    require_no_link,
    require_regular,
    write_folder,
)
from remanence.runs._history import Growth, History, Measurement
from remanence.runs._imports import absolute_imports, import_all
from remanence.runs._manifest import available_cores, changed_facts, make_manifest
from remanence.runs._metrics import MetricsFile, NoEvents, Observer, TensorBoard, read_lines
from remanence.runs._plain import Settings, Values, plain
from remanence.runs._processes import Engine, Process, ProcessEngine, run_jobs, start_process
from remanence.runs._random import isolated, random_states, seed_all, seed_torch, set_random_states
from remanence.runs._result import (
    NewerVersionError,
    Result,
    ResultError,
    UnknownKindError,
    check_version,
    dataclass_from,
    read_result,
    result_from,
    result_kinds,
    tag,
    write_result,
)
from remanence.runs._run import Run, find_folders, list_runs
from remanence.runs._seal import sealed, unsealed
from remanence.runs._signals import Stopped, StopRequest, stop_requests
from remanence.runs._states import bits_equal, register_state
from remanence.runs._tensors import read_tensors, write_tensors
from remanence.runs._toml import (
    digest_of,
    flat_table,
    nested_table,
    read_stored_table,
    read_table,
    settings_table,
    to_toml,
    with_table,
)
from remanence.runs._trust import is_trusted, remember_code, require_trust, trusting

__all__ = [
    "Run",
    "list_runs",
    "find_folders",
    "History",
    "Measurement",
    "Growth",
    "Result",
    "read_result",
    "write_result",
    "write_tensors",
    "result_from",
    "result_kinds",
    "tag",
    "require_no_link",
    "require_regular",
    "sealed",
    "unsealed",
    "check_version",
    "dataclass_from",
    "ResultError",
    "UnknownKindError",
    "NewerVersionError",
    "MetricsFile",
    "Observer",
    "read_lines",
    "TensorBoard",
    "NoEvents",
    "Checkpoint",
    "save_checkpoint",
    "taking_up",
    "load_checkpoint",
    "list_checkpoints",
    "save_best",
    "load_best",
    "forget_drafts",
    "register_state",
    "map_tensors",
    "detach",
    "bits_equal",
    "locked",
    "is_locked",
    "replace_file",
    "read_file",
    "flat_table",
    "nested_table",
    "plain",
    "Values",
    "Settings",
    "read_json",
    "write_folder",
    "seed_all",
    "seed_torch",
    "random_states",
    "set_random_states",
    "isolated",
    "make_manifest",
    "changed_facts",
    "available_cores",
    "StopRequest",
    "stop_requests",
    "Stopped",
    "Engine",
    "ProcessEngine",
    "Process",
    "run_jobs",
    "start_process",
    "import_all",
    "absolute_imports",
    "trusting",
    "is_trusted",
    "require_trust",
    "remember_code",
    "read_stored_table",
    "read_table",
    "read_tensors",
    "with_table",
    "settings_table",
    "to_toml",
    "digest_of",
    "RunError",
    "NonFiniteError",
    "RunLockedError",
    "StorageError",
    "CheckpointError",
    "DamagedFileError",
    "UntrustedCodeError",
]
