"""``python -m remanence.experiments.worker FOLDER [STORAGE] < WORK``: fills one cell in a process of its own."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

from remanence.data import DataError
from remanence.experiments._cell import carry_out
from remanence.experiments._work import Work
from remanence.train import RunError

FAILED = 1


def work(folder: str, text: str, storage: str = "") -> int:
    """Fills a cell and gives the exit code: 0 if it is done, 128 + signal if interrupted, or that of the error."""
    try:
        signal = carry_out(Work.from_dict(json.loads(text)), Path(folder), storage=storage)
    except RunError as error:
        print(error, flush=True)
        return error.exit_code
    except DataError as error:
        print(error, flush=True)
        return FAILED
    except Exception:
        traceback.print_exc()
        return FAILED
    if signal is not None:
        return 128 + signal
    return 0


if __name__ == "__main__":
    sys.exit(work(sys.argv[1], sys.stdin.read(), *sys.argv[2:]))
