"""``python -m remanence.experiments NAME FOLDER`` runs an experiment, or goes on with it."""

import sys
from pathlib import Path

from remanence.experiments._attention import run_attention
from remanence.experiments._binary import run_binary
from remanence.experiments._binary_far import run_binary_far
from remanence.experiments._dense import run_dense
from remanence.experiments._estimator import run_estimator
from remanence.experiments._gradients import run_gradients
from remanence.experiments._held_out import run_held_out
from remanence.experiments._language_model import run_language_model
from remanence.experiments._memory import run_memory
from remanence.experiments._minigrid import run_minigrid
from remanence.experiments._others import run_others
from remanence.experiments._recall import run_recall
from remanence.experiments._wikitext import run_wikitext2
from remanence.experiments._wikitext_words import run_wikitext2_words

EXPERIMENTS = {
    "attention": run_attention,
    "binary": run_binary,
    "binary-far": run_binary_far,
    "dense": run_dense,
    "estimator": run_estimator,
    "gradients": run_gradients,
    "held-out": run_held_out,
    "memory": run_memory,
    "minigrid": run_minigrid,
    "others": run_others,
    "language-model": run_language_model,
    "recall": run_recall,
    "wikitext2": run_wikitext2,
    "wikitext2-words": run_wikitext2_words,
}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in EXPERIMENTS:
        sys.exit(f"usage: python -m remanence.experiments {{{','.join(EXPERIMENTS)}}} FOLDER")
    EXPERIMENTS[sys.argv[1]](Path(sys.argv[2]))
