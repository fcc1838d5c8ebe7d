"""What goes past the papers: lengths nobody ran, a million steps in constant memory, modern baselines."""

from remanence.experiments.beyond._agents import AGENTS
from remanence.experiments.beyond._bits import LONG_BITS
from remanence.experiments.beyond._defaults import DEFAULTS, DEFAULTS_TEXT
from remanence.experiments.beyond._lengths import BASELINES, LENGTHS, MILLION
from remanence.experiments.beyond._screens import SCREENED

EXPERIMENTS = (LENGTHS, MILLION, BASELINES, LONG_BITS, DEFAULTS, DEFAULTS_TEXT, SCREENED, AGENTS)

__all__ = ["EXPERIMENTS"]
