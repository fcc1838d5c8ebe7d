"""Tasks: seeded recipes for sequences whose memory is known. They know no model."""

from remanence.tasks._recall import Copy as Copy
from remanence.tasks._recall import Denoise as Denoise
from remanence.tasks._registry import list_tasks as list_tasks
from remanence.tasks._registry import make_task as make_task
from remanence.tasks._registry import register_task as register_task
from remanence.tasks._stream import SPLITS as SPLITS
from remanence.tasks._stream import Split as Split
from remanence.tasks._task import Baseline as Baseline
from remanence.tasks._task import Batch as Batch
from remanence.tasks._task import Score as Score
from remanence.tasks._task import Task as Task
