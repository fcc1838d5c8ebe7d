"""What goes past the papers: lengths nobody ran, a million steps in constant memory, modern baselines."""

from remanence.experiments.beyond._bits import LONG_BITS
from remanence.experiments.beyond._lengths import BASELINES, LENGTHS, MILLION

EXPERIMENTS = (LENGTHS, MILLION, BASELINES, LONG_BITS)

__all__ = ["EXPERIMENTS"]
