"""Claims of the lecture notes; importing it registers them."""

from . import _attention, _optimisation  # noqa: F401  (each registers its claims)
