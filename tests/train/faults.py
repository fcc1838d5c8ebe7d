"""Faults done to real processes, and whether the run is lost: used by the tests, and by hand for the whole table.

``python tests/train/faults.py --times 100`` prints one row per fault.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch

from remanence.runs import _files as files
from remanence.tasks import Copy
from remanence.train import NonFiniteError, Run, RunConfig, RunError, config_from, load_checkpoint, resume, train

UPDATES = 24


def tiny_config(**changes) -> RunConfig:
    """Dropout, random gradient cuts, a plateau and a curriculum: everything that a resumed run must get right."""
    table = {
        "task": {"name": "copy", "options": {"length": 4, "items": 2, "symbols": 2}, "batch_size": 4},
        "model": {"name": "HDetachLSTM", "options": {"hidden_size": 6, "dropout": 0.2}},
        "schedule": {"name": "plateau"},
        "budget": {"updates": UPDATES},
        "loop": {"save_every": 3, "log_every": 2},
        "evaluation": {"every": 5, "batches": 1, "batch_size": 8},
        "curriculum": {"start": 2, "accuracy": 0.1, "window": 4},
        "seed": 5,
    }
    return config_from(changes, config_from(table))


def final_state(folder: Path) -> dict[str, torch.Tensor]:
    """Weights, the optimiser's tensors and the generator at the end of a run."""
    checkpoint = load_checkpoint(Run(folder).checkpoints)
    assert checkpoint is not None
    assert checkpoint.update == UPDATES
    found = dict(checkpoint.weights)
    for number, state in checkpoint.training["optimiser"]["state"].items():
        found |= {f"{number}.{name}": value for name, value in state.items()}
    return found | {"random": checkpoint.training["random"]["torch"]}


def measurements(folder: Path) -> list[dict]:
    """All measurements but the times."""
    times = ("seconds", "cpu_seconds", "updates_per_second")
    return [{key: value for key, value in line.items() if key not in times} for line in Run(folder).metrics.read()]


def same_end(folder: Path, reference: Path) -> bool:
    """Whether two runs ended with the same bits and told the same story."""
    one, other = final_state(folder), final_state(reference)
    equal = one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    return equal and measurements(folder) == measurements(reference)


def in_child(work: Callable[[], object]) -> int:
    """Starts work in a process of its own and gives its number; a fork saves the seconds of importing torch again."""
    child = os.fork()
    if child:
        return child
    with contextlib.suppress(BaseException):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        outcome = work()
        os._exit(0 if getattr(outcome, "status", "done") == "done" else 128 + (getattr(outcome, "signal", 0) or 0))
    os._exit(1)


def exit_code(child: int) -> int:
    """Waits for a process; minus the signal that killed it, or its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at_random(
    folder: Path, config: RunConfig, draws: random.Random, number: int = signal.SIGKILL, longest: float = 0.2
) -> int:
    """Signals the run's process at random moments until it is done; how often."""
    kills = 0
    while True:
        child = in_child(lambda: train(config, folder))
        time.sleep(draws.uniform(0.0, longest))
        os.kill(child, number)
        code = exit_code(child)
        if code == 0 and Run(folder).is_done:
            return kills
        if code not in (-signal.SIGKILL, -number, 128 + number):
            raise RuntimeError(f"exit code {code}")
        kills += 1
        longest *= 1.02  # a loaded machine may need longer to get anywhere at all


def kill_at_write(folder: Path, config: RunConfig, moment: int) -> bool:
    """Kills the run's process at its `moment`-th call into the file system; whether it got that far."""

    def work() -> object:
        calls = iter(range(moment + 1))

        def counted(function):
            def call(*arguments, **options):
                if next(calls) == moment:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **options)

            return call

        for name in ("fsync", "replace"):
            setattr(files.os, name, counted(getattr(os, name)))
        shutil.rmtree = counted(shutil.rmtree)
        return train(config, folder)

    return exit_code(in_child(work)) == -signal.SIGKILL


def fill_disk(folder: Path, config: RunConfig, moment: int) -> bool:
    """Runs until the `moment`-th write finds no room; whether it got that far. The half of it is on the disk."""
    calls, real = iter(range(10**9)), files.write_bytes

    def write(path: Path, contents: bytes) -> None:
        if next(calls) >= moment:
            path.write_bytes(contents[: len(contents) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, contents)

    files.write_bytes = write
    try:
        train(config, folder)
    except RunError:
        return True
    finally:
        files.write_bytes = real
    return False


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[Path | None]:
    """A file system of 600 kB; None where this process may not mount one."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def run_out_of_room(folder: Path, config: RunConfig, disk: Path, room: int) -> bool:
    """Runs on a disk with so many bytes left until it is full, then elsewhere; whether it filled up."""
    filler, run = disk / "filler", disk / "run"
    shutil.rmtree(run, ignore_errors=True)
    space = os.statvfs(disk)
    filler.write_bytes(bytes(max(space.f_bavail * space.f_frsize - room, 0)))
    try:
        train(config, run)
    except RunError:
        return True
    finally:
        filler.unlink()
        if run.exists():
            shutil.move(run, folder)
    return False


def damage(folder: Path, draws: random.Random) -> str:
    """Cuts or changes a random file of the newest checkpoint."""
    newest = sorted(path for path in Run(folder).checkpoints.iterdir() if path.name.isdigit())[-1]
    victim = draws.choice(sorted(newest.iterdir()))
    contents = bytearray(victim.read_bytes())
    if draws.random() < 0.5 or not contents:
        victim.write_bytes(bytes(contents[: draws.randrange(max(len(contents), 1))]))
    else:
        contents[draws.randrange(len(contents))] ^= 1 << draws.randrange(8)
        victim.write_bytes(bytes(contents))
    return victim.name


def stop_midway(folder: Path, config: RunConfig) -> None:
    """Leaves a run with checkpoints at 15 and 16 updates: the request comes while the first is saved."""

    def observer(line: dict) -> None:
        if line["kind"] == "saved" and line["update"] == 15:
            signal.raise_signal(signal.SIGTERM)

    train(config, folder, observer)


def meet_nan(folder: Path, config: RunConfig, update: int) -> bool:
    """Runs until batch number `update` holds a NaN; whether the run stopped there with its last good state."""
    real = Copy.batch

    def batch(self, position, *arguments, **options):
        drawn = real(self, position, *arguments, **options)
        if position == update and "split" not in options:
            drawn.inputs[0, 0, 0] = torch.nan
        return drawn

    Copy.batch = batch
    try:
        train(config, folder)
    except NonFiniteError:
        kept = load_checkpoint(Run(folder).checkpoints)
        return kept is not None and kept.update == update
    finally:
        Copy.batch = real
    return False


def come_second(folder: Path, config: RunConfig) -> bool:
    """Starts a process on a folder that another one works on; whether it was refused and the first not disturbed."""
    refused = []

    def observer(line: dict) -> None:
        if line["kind"] == "saved" and line["update"] == 6:
            refused.append(exit_code(in_child(lambda: resume(folder))) == 1)

    train(config, folder, observer)
    return refused == [True]


def table(times: int, seed: int) -> list[dict]:
    """Tries every fault so many times."""
    draws, config, rows = random.Random(seed), tiny_config(), []
    with tempfile.TemporaryDirectory() as scratch:
        reference = Path(scratch) / "reference"
        train(config, reference)

        def attempt(name: str, count: int, fault: Callable[[Path, int], int]) -> None:
            row = {"fault": name, "tried": 0, "lost": 0, "equal": 0, "runs": count}
            for number in range(count):
                folder = Path(scratch) / "run"
                shutil.rmtree(folder, ignore_errors=True)
                row["tried"] += fault(folder, number)
                try:
                    resume(folder) if Run(folder).exists else train(config, folder)
                    row["equal"] += same_end(folder, reference)
                except RunError:
                    row["lost"] += 1
            rows.append(row)
            print(json.dumps(row), flush=True)

        runs = max(times // 8, 1)
        attempt("SIGKILL at a random moment", runs, lambda folder, _: kill_at_random(folder, config, draws))
        attempt("SIGKILL inside a write", times, lambda folder, n: kill_at_write(folder, config, n))
        attempt("SIGTERM", runs, lambda folder, _: kill_at_random(folder, config, draws, signal.SIGTERM))
        attempt("full disk", times, lambda folder, n: fill_disk(folder, config, n))
        with small_disk(Path(scratch) / "disk") as disk:
            if disk is not None:
                size = sum(path.stat().st_size for path in reference.rglob("*") if path.is_file())
                fills = partial(run_out_of_room, config=config, disk=disk)
                attempt("disk fills up", times, lambda folder, _: fills(folder, room=draws.randrange(size)))

        def torn(folder: Path, _: int) -> int:
            stop_midway(folder, config)
            damage(folder, draws)
            return 1

        attempt("torn or corrupted checkpoint", times, torn)
        attempt("NaN in a batch", times, lambda folder, n: meet_nan(folder, config, n % UPDATES))
        attempt("two processes on one folder", times, lambda folder, _: come_second(folder, config))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    table(arguments.times, arguments.seed)
