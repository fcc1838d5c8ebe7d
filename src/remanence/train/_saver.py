"""The state of a training as checkpoints: how it is kept, and how it is brought back."""

from __future__ import annotations

from remanence.runs import (
    Checkpoint,
    CheckpointError,
    Values,
    random_states,
    save_checkpoint,
    set_random_states,
    taking_up,
)
from remanence.train._distributed import Processes
from remanence.train._journal import Journal
from remanence.train._learner import Learner
from remanence.train._optimisers import load_optimiser
from remanence.train._progress import Progress
from remanence.train._run import Run

OTHER_PARAMETERS = "the model has other parameters than the checkpoint; undo the change of its options"


class Saver:
    """Keeps what a training needs to go on as if it had never stopped; one of its processes writes."""

    def __init__(self, run: Run, learner: Learner, processes: Processes, journal: Journal) -> None:
        self.run = run
        self.learner = learner
        self.processes = processes
        self.journal = journal
        self.saved_update: int | None = None

    def save(self, progress: Progress) -> None:
        """Writes a checkpoint."""
        carried = self.processes.gathered(self.learner.carried)
        if self.processes.writes:
            training = {
                "optimiser": self.learner.optimiser.state_dict(),
                "progress": progress.to_dict(),
                "random": random_states(),
                "carried": carried,
            }
            self.run.metrics.sync()
            checkpoint = Checkpoint(progress.update, dict(self.learner.model.state_dict()), training)
            save_checkpoint(self.run.checkpoints, checkpoint)
        self.saved_update = progress.update
        self.journal.tell({"kind": "saved", "update": progress.update})

    def restore(self, checkpoint: Checkpoint) -> Progress:
        """Brings everything back to where a checkpoint stands; gives how far the training was then.

        Raises:
            CheckpointError: the model has other parameters, or the checkpoint lacks something.
        """
        try:
            self.learner.model.load_state_dict(checkpoint.weights)
        except RuntimeError as error:
            raise CheckpointError(OTHER_PARAMETERS) from error
        with taking_up(self.run.checkpoints):
            progress = self._take_up(checkpoint.training)
        self.saved_update = checkpoint.update
        return progress

    def _take_up(self, training: Values) -> Progress:
        optimiser = self.learner.optimiser
        load_optimiser(optimiser, _matched(optimiser.state_dict(), training["optimiser"]))
        progress = Progress.from_dict(training["progress"])
        set_random_states(training["random"])
        carried = training["carried"]
        if len(carried) == self.processes.size and len(carried[0]) == len(self.learner.rows):
            self.learner.carried = carried[self.processes.rank]
        elif any(state is not None for states in carried for state in states):
            self.journal.say("the batch is split differently now; the carried layer state is dropped")
        return progress


def _matched(fresh: Values, saved: Values) -> Values:
    """The saved state of the optimiser; rates and penalties come from the configuration, which may have changed."""
    if [group["names"] for group in fresh["param_groups"]] != [group["names"] for group in saved["param_groups"]]:
        raise CheckpointError(OTHER_PARAMETERS)
    return {"state": saved["state"], "param_groups": fresh["param_groups"]}
