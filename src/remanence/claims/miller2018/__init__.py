"""Claims of Miller and Hardt 2018; importing it registers them."""

from . import _contraction, _truncation  # noqa: F401  (each registers its claims)
