"""Engines that fill cells: processes of this machine, or tasks of a Ray cluster. A further one is a file here."""

from __future__ import annotations

from pathlib import Path

from remanence._validate import one_of
from remanence.experiments._cell import TableCell
from remanence.runs import Engine

ENGINES = ("local", "ray")


def make_engine(
    name: str, workers: int | None = None, address: str | None = None, storage: str | Path | None = None
) -> Engine[TableCell]:
    """An engine by its name.

    Args:
        name: ``"local"`` or ``"ray"``.
        workers: cells at a time; None takes what the machine, or the cluster, has room for.
        address: of a Ray cluster; None starts one on this machine.
        storage: folder of the cells, or a URL that mirrors them, which all nodes must see.

    Raises:
        ValueError: there is no such engine, Ray is missing, no cluster answers, or a node does not see the storage.

    Example:
        >>> make_engine("slurm")
        Traceback (most recent call last):
        ValueError: `engine` must be one of 'local', 'ray'; got 'slurm'...
    """
    if one_of("engine", name, ENGINES) == "local":
        from remanence.experiments.engines._local import LocalEngine

        return LocalEngine(workers)
    from remanence.experiments.engines._ray import RayEngine

    return RayEngine(workers, address, str(storage or Path.cwd()))
