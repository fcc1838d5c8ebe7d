"""Cells as tasks of a Ray cluster: one task a cell, its checkpoints on storage that all nodes see.

Ray runs a task again when its worker or node dies; it then goes on from the last checkpoint, elsewhere. Where cells
stand is read from the storage, so this engine keeps nothing that a lost driver would lose.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fsspec

from remanence._validate import message
from remanence.experiments._cell import LOG, TableCell, carry_out
from remanence.experiments._size import memory_of, size_of
from remanence.experiments._work import Work
from remanence.runs import Values
from remanence.train import RunConfig, RunLockedError

RETRIES = 10
"""How often a cell is taken up again after its worker or its node died."""
PATIENCE = 120.0
"""Seconds that a task waits for a cell which another process, perhaps of a driver that was lost, still holds."""
KNOCKING = 10.0
"""Seconds that an address has to answer."""
SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The frame that both sides of an HTTP/2 connection send first; byte 3 is its kind. Ray speaks gRPC, which is that."""
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS
INSTALL = "pip install 'remanence[cluster]'"


class RayEngine:
    """Fills cells on a cluster.

    Args:
        workers: cells at a time; None leaves it to the resources of the cluster.
        address: of the cluster, ``"auto"`` finds one; None starts one on this machine.
        storage: folder of the cells, or a URL that mirrors them, which all nodes must see.

    Raises:
        ValueError: Ray is not installed, no cluster answers, or a node does not see the storage.
    """

    def __init__(self, workers: int | None, address: str | None, storage: str) -> None:
        self.ray = _import_ray()
        self.workers = workers
        self.waiting: list[TableCell] = []
        self.working: list[Any] = []
        _connect(self.ray, address)
        _check_storage(self.ray, storage)

    def start(self, cells: Sequence[TableCell], /) -> None:
        """Takes on cells, the longest first: Ray starts tasks of one shape in the order in which they came."""
        self.waiting += sorted(cells, key=lambda cell: -size_of(cell.work))

    def poll(self) -> bool:
        """Submits what there is room for; whether anything is still waiting or at work."""
        if self.working:
            _, self.working = self.ray.wait(self.working, num_returns=len(self.working), timeout=0)
        while self.waiting and (self.workers is None or len(self.working) < self.workers):
            self.working.append(self._submit(self.waiting.pop(0)))
        return bool(self.waiting or self.working)

    def _submit(self, cell: TableCell) -> Any:
        # A process of its own a cell, as the local engine has: nothing is left over from another one.
        task = self.ray.remote(
            num_cpus=cell.work.threads,
            num_gpus=_gpus(cell.work),
            memory=int(memory_of(cell.work)),
            max_retries=RETRIES,
            retry_exceptions=[RunLockedError],
            max_calls=1,
        )(fill)
        return task.remote(cell.work.to_dict(), str(cell.folder), cell.storage)

    def stop(self) -> None:
        """Asks every task to save and end, and waits for it."""
        self.waiting = []
        for task in self.working:
            self.ray.cancel(task, force=False)
        if self.working:
            self.ray.wait(self.working, num_returns=len(self.working), timeout=PATIENCE)
        self.working = []


def fill(work: Values, folder: str, storage: str = "") -> int | None:
    """Fills one cell on whatever node it is; what goes wrong is in the cell's folder.

    Args:
        work: as plain values.
        folder: of the cell, which all nodes see; with a storage that mirrors it, only its name counts.
        storage: URL of that.
    """
    if not storage:
        return _fill_in(Path(folder), work, storage)
    # A fresh folder, because the storage says where a cell stands: not what another task may have left on this node.
    with tempfile.TemporaryDirectory(prefix="remanence-cell-") as fresh:
        return _fill_in(Path(fresh) / Path(folder).name, work, storage)


def _fill_in(place: Path, work: Values, storage: str) -> int | None:
    place.mkdir(parents=True, exist_ok=True)
    with (place / LOG).open("a") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        return carry_out(Work.from_dict(work), place, storage=storage, patience=PATIENCE)


def _gpus(work: Work) -> int:
    return int(isinstance(work.config, RunConfig) and work.config.loop.device.startswith("cuda"))


def _import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ValueError(message("engine", "be 'local' without Ray", "'ray'", f"Install it: {INSTALL}")) from error


def _connect(ray: Any, address: str | None) -> None:
    if ray.is_initialized():
        return
    found = address
    try:
        found = _found(address)
        _knock(found)
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except Exception as error:
        hint = f"Start one with `ray start --head`, or leave the address out ({error})"
        got = repr(address) if found == address else f"{address!r}, which is {found}"
        raise ValueError(message("address", "be that of a Ray cluster that answers", got, hint)) from error


def _found(address: str | None) -> str | None:
    """What ``auto`` stands for: a variable, or what the last ``ray start`` here has left, perhaps long ago."""
    if address != "auto":
        return address
    temporary = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
    left = Path(temporary) / "ray" / "ray_current_cluster"
    return os.environ.get("RAY_ADDRESS") or (left.read_text().strip() if left.is_file() else address)


def _knock(address: str | None) -> None:
    """Sees that something like Ray listens there: Ray itself would try for minutes."""
    host, _, port = (address or "").rpartition("/")[2].rpartition(":")
    if not host or not port.isdecimal():
        return
    with socket.create_connection((host, int(port)), timeout=KNOCKING) as line:
        if os.environ.get("RAY_USE_TLS", "0") != "0":  # it would not answer in the clear
            return
        line.sendall(GREETING)
        answer = line.recv(len(SETTINGS), socket.MSG_WAITALL)
    if answer[3:4] != SETTINGS[3:4]:
        raise ConnectionError("another program listens there")


def _check_storage(ray: Any, storage: str) -> None:
    """Every node must find a file there that the driver has just written."""
    system, root = fsspec.core.url_to_fs(storage)
    system.makedirs(root, exist_ok=True)
    sign = f"{root}/.seen-{uuid.uuid4().hex}"
    system.pipe_file(sign, b"written by the driver")
    try:
        blind = [node for node, seen in _asked(ray, system.unstrip_protocol(sign)).items() if not seen]
    finally:
        system.rm(sign)
    if blind:
        hint = "Name a folder that is mounted on all of them, with --storage"
        got = f"{str(storage)!r}, which {', '.join(blind)} cannot read"
        raise ValueError(message("storage", "be a folder that all nodes of the cluster see", got, hint))


def _asked(ray: Any, path: str) -> dict[str, bool]:
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    look = ray.remote(num_cpus=0)(_sees)
    tasks = {}
    for node in ray.nodes():
        if node["Alive"]:
            there = strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            tasks[node["NodeManagerAddress"]] = look.options(scheduling_strategy=there).remote(path)
    return {name: ray.get(task) for name, task in tasks.items()}


def _sees(url: str) -> bool:
    system, path = fsspec.core.url_to_fs(url)
    return system.isfile(path)
