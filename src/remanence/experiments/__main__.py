"""``python -m remanence.experiments recall RUNS``: trains what is missing below RUNS and stores what came out."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from remanence.experiments import _recall

EXPERIMENTS: dict[str, Callable[[Path, int], Path]] = {"recall": _recall.store}


def main(arguments: Sequence[str] | None = None) -> None:
    """Carries out one experiment.

    Args:
        arguments: of the command line; None takes the process's own.
    """
    parser = argparse.ArgumentParser(prog="python -m remanence.experiments", description=__doc__)
    parser.add_argument("experiment", choices=sorted(EXPERIMENTS))
    parser.add_argument("runs", type=Path, help="folder of the runs; those that are done are not done again")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time; 0 only stores what is done")
    chosen = parser.parse_args(arguments)
    print(EXPERIMENTS[chosen.experiment](chosen.runs, chosen.jobs))


if __name__ == "__main__":
    main()
