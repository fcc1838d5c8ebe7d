"""What goes past the papers: lengths nobody ran, a million steps in constant memory, modern baselines."""

from remanence.experiments.beyond._bits import LONG_BITS
from remanence.experiments.beyond._defaults import DEFAULTS
from remanence.experiments.beyond._lengths import BASELINES, LENGTHS, MILLION

EXPERIMENTS = (LENGTHS, MILLION, BASELINES, LONG_BITS, DEFAULTS)

__all__ = ["EXPERIMENTS"]
