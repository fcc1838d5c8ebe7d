"""``python -m remanence.experiments NAME FOLDER`` runs an experiment, or goes on with it."""

import sys
from pathlib import Path

from remanence.experiments._gradients import run_gradients
from remanence.experiments._recall import run_recall

EXPERIMENTS = {"gradients": run_gradients, "recall": run_recall}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in EXPERIMENTS:
        sys.exit(f"usage: python -m remanence.experiments {{{','.join(EXPERIMENTS)}}} FOLDER")
    EXPERIMENTS[sys.argv[1]](Path(sys.argv[2]))
