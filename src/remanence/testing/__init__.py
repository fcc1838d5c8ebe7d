"""For tests of sequence layers: the tolerance rule, the layer contract as checks, models with known answers."""

from ._closed_forms import DelayLine, LeakyIntegrator, MarkovModel
from ._conformance import Check, check_names, check_recurrent_layer
from ._numbers import assert_agrees, assert_estimates, assert_frequency, assert_sampled
from ._running import collect, replacements, sharpen_
from ._tolerance import assert_matches, relative_error, tolerance

__all__ = [
    "Check",
    "DelayLine",
    "LeakyIntegrator",
    "MarkovModel",
    "assert_agrees",
    "assert_estimates",
    "assert_frequency",
    "assert_matches",
    "assert_sampled",
    "check_names",
    "check_recurrent_layer",
    "collect",
    "relative_error",
    "replacements",
    "sharpen_",
    "tolerance",
]
