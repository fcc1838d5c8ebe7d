"""What models are called: as their runs say; where runs of different settings say the same, by what differs too.

A label is told by the run, and the command that made it sees to it that its own runs differ. A page, though, may show
runs of several commands, runs made from Python, and runs from before there were labels. Two of those may say "LSTM" and
differ in the learning rate; as seeds of one model they would be averaged. Only the page sees them side by side, so it
is the one place that can tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from remanence._wording import bracketed
from remanence.report._numbers import only_if
from remanence.report._run_record import RunRecord
from remanence.runs import flat_table


def model_labels(runs: Sequence[RunRecord]) -> dict[Path, str]:
    """A name for the model of each run, by the run's folder.

    Example:
        >>> runs = [RunRecord(Path(str(n)), {"model": {"name": "RelRNN", "options": {"recent": n}}}) for n in (5, 10)]
        >>> list(model_labels(runs).values())
        ['RelRNN (recent 5)', 'RelRNN (recent 10)']
        >>> model_labels([RunRecord(Path("a"), {"model": {"name": "LSTM"}, "label": "LSTM, no curriculum"})])[Path("a")]
        'LSTM, no curriculum'
    """
    settings = {run.folder: _telling(run) for run in runs}
    labels = {}
    for run in runs:
        same = [settings[other.folder] for other in runs if other.label == run.label]
        keys = sorted({key for table in same for key in table})
        differing = [key for key in keys if len({str(table.get(key)) for table in same}) > 1]
        parts = [_told(key, settings[run.folder].get(key, "default")) for key in differing]
        labels[run.folder] = bracketed(run.label, ", ".join(parts))
    return labels


def _telling(run: RunRecord) -> dict[str, object]:
    """Settings that may tell two models apart; a curriculum counts as one, there or not."""
    kept = {key: value for key, value in run.config.items() if key not in ("seed", "task", "curriculum", "label")}
    return {"curriculum": run.has_curriculum, **flat_table(kept)}


def _told(key: str, value: object) -> str:
    if key == "curriculum":
        return only_if(not value, "no ") + key
    return f"{key.rpartition('.')[2].replace('_', ' ')} {value}"
