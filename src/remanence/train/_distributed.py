"""One run on several processes: the same batches, shared out by rows; rank 0 writes."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

PARTING = timedelta(minutes=5)
"""How long processes that are done wait for the others to part together."""


class Processes:
    """The processes of a run, or this one alone.

    Example:
        >>> alone = Processes()
        >>> alone.rank, alone.size, alone.sums([1.0, 2.0])
        (0, 1, [1.0, 2.0])
    """

    def __init__(self) -> None:
        self.rank = 0
        self.size = 1
        if dist.is_available() and dist.is_initialized():
            self.rank = dist.get_rank()
            self.size = dist.get_world_size()

    @property
    def writes(self) -> bool:
        """Whether this process owns the run folder."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model with gradients averaged over the processes."""
        if self.size == 1:
            return model
        return DistributedDataParallel(model, forward_sync_buffers=False)

    def sums(self, numbers: list[float]) -> list[float]:
        """Adds up numbers over the processes."""
        if self.size == 1:
            return numbers
        total = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(total)
        return total.tolist()

    def shared(self, value: object) -> Any:
        """Gives everyone what rank 0 has; the others' value is ignored."""
        if self.size == 1:
            return value
        holder = [value]
        dist.broadcast_object_list(holder, src=0)
        return holder[0]

    def gathered(self, value: object) -> list[Any]:
        """Collects one value of every process, in order of rank."""
        if self.size == 1:
            return [value]
        holder: list[Any] = [None] * self.size
        dist.all_gather_object(holder, value)
        return holder

    def rows(self, batch_size: int, parts: int) -> list[tuple[int, int]]:
        """The rows of a batch that this process works through, in `parts` parts."""
        total = self.size * parts
        if batch_size < total:
            raise ValueError(
                f"`task.batch_size` must be at least {total}, one row for each of {self.size} processes times "
                f"{parts} parts (loop.accumulate); got {batch_size}"
            )
        borders = [batch_size * number // total for number in range(total + 1)]
        mine = range(self.rank * parts, (self.rank + 1) * parts)
        return [(borders[number], borders[number + 1]) for number in mine]


@contextlib.contextmanager
def joined_processes(device: str = "cpu") -> Iterator[bool]:
    """Joins the other processes if ``torchrun`` started this one, says whether there are any, and leaves at the end.

    Args:
        device: Where models run; decides between gloo and nccl.

    Example:
        >>> with joined_processes() as together:  # in a process of its own
        ...     together
        False
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield False
        return
    if dist.is_initialized():  # by somebody else, who also parts
        yield True
        return
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield True
        if dist.get_backend() == "gloo":  # nobody goes while another one still talks to it
            dist.monitored_barrier(timeout=PARTING)
    finally:
        gc.collect()  # a wrapped model holds the group, and is held by itself
        dist.destroy_process_group()
