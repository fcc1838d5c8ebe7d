"""What a run leaves in its folder and tells whoever watches; among several processes only one does either."""

from __future__ import annotations

import contextlib
import json

import safetensors.torch

from remanence.runs import (
    NoEvents,
    Observer,
    RunError,
    TensorBoard,
    Values,
    changed_facts,
    make_manifest,
    tag,
    to_toml,
    write_folder,
)
from remanence.tasks import Batch
from remanence.train._config import RunConfig
from remanence.train._distributed import Processes
from remanence.train._progress import Progress
from remanence.train._run import Run


class Journal:
    """The files and the observer of one run, of whose processes one writes.

    Example:
        >>> from pathlib import Path
        >>> Journal(Run(Path("mine")), Processes(), print).say("resumed")
        {'kind': 'message', 'text': 'resumed', 'budget': 0}
    """

    def __init__(self, run: Run, processes: Processes, observer: Observer | None) -> None:
        self.run = run
        self.processes = processes
        self.observer = observer
        self.budget = 0
        self.tensorboard: TensorBoard | NoEvents = NoEvents()

    def begin(self, config: RunConfig, changed: bool, update: int) -> None:
        """Writes down how the run goes on from an update, and drops what was measured after it."""
        if not self.processes.writes:
            return
        if changed:
            self.run.write("config.toml", to_toml(config))
        manifest = make_manifest(config, self.processes.size)
        before = self.run.manifest
        if before and (changes := changed_facts(before, manifest)):
            self.say("bits may differ from an uninterrupted run: " + "; ".join(changes))
            manifest["began_with"] = before.get("began_with", {name: before.get(name) for name in manifest})
        self.run.write_table("manifest.json", manifest)
        self.run.metrics.cut_after(update)
        self.run.set_status("running", update=update)
        self.tensorboard = TensorBoard(self.run.folder / "tensorboard", update, self.say)

    def record(self, line: Values) -> None:
        """Keeps a measurement, and tells it."""
        if self.processes.writes:
            self.run.metrics.append(line)
            self.tensorboard.add(line)
        self.tell(line)

    def say(self, text: str) -> None:
        """Tells a message."""
        self.tell({"kind": "message", "text": text})

    def tell(self, line: Values) -> None:
        """Tells what is not kept."""
        if self.observer is not None and self.processes.writes:
            self.observer({**line, "budget": self.budget})

    def end(self, status: str, reason: str, progress: Progress) -> None:
        """Says how the run ended, and what it reached."""
        if self.processes.writes:
            self.run.set_status(
                status,
                reason=reason,
                update=progress.update,
                budget=self.budget,
                seconds=progress.seconds,
                cpu_seconds=progress.cpu_seconds,
                best=progress.best,
                best_update=progress.best_update,
                validation=progress.validation,
            )
        self.tell({"kind": "end", "update": progress.update, "status": status, "reason": reason})

    def fail(self, error: RunError, update: int) -> None:
        """Says why the run could not go on."""
        if self.processes.writes:
            with contextlib.suppress(RunError):  # on a full disk not even this can be written
                self.run.set_status("failed", update=update, reason=str(error))

    def keep_failure(self, batch: Batch, report: Values) -> None:
        """Keeps the batch after which a number was not finite, and what is known about it."""
        # Clones, because inputs and targets may be two views of one sequence, which cannot be saved together.
        tensors = {name: part.clone().contiguous() for name, part in batch._asdict().items() if part is not None}
        text = json.dumps({**tag("failure"), **report})
        files = {"batch.safetensors": safetensors.torch.save(tensors), "report.json": text.encode()}
        write_folder(self.run.folder / "failure", files)

    def close(self) -> None:
        """Writes out what is left."""
        self.tensorboard.close()
