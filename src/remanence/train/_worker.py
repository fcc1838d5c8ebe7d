"""``python -m remanence.train._worker RUN``: carries one run to its end in a process of its own."""

from __future__ import annotations

import sys

from remanence.runs import RunError, trusting
from remanence.train._trainer import resume


def work(folder: str, trust: bool = False) -> int:
    """Resumes a run and gives the exit code: 0 if it is done, 128 + signal if it was interrupted, or that of the error.

    Example:
        >>> work("no such folder")
        `run` must be a run folder with a config.toml; got 'no such folder', which does not exist
        2
    """
    try:
        with trusting(trust):
            outcome = resume(folder)
    except RunError as error:
        print(error)
        return error.exit_code
    except ValueError as error:
        print(error)
        return 2
    if outcome.status == "interrupted":
        return 128 + (outcome.signal or 0)
    return 0


if __name__ == "__main__":
    sys.exit(work(sys.argv[1], trust="--trust" in sys.argv[2:]))
