"""Miller and Hardt 2018: figures 1 and 2, perplexities, stable beside free models, weights, context."""

from remanence.experiments.miller2018._gaussian import FIGURE_1
from remanence.experiments.miller2018._wikitext import BEFORE, CONTEXT, FIGURE_2, PERPLEXITY, STABLE, WEIGHTS

EXPERIMENTS = (FIGURE_1, FIGURE_2, BEFORE, PERPLEXITY, STABLE, WEIGHTS, CONTEXT)

__all__ = ["EXPERIMENTS"]
