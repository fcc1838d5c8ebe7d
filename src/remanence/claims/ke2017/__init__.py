"""Claims of Ke et al. 2017; importing it registers them."""

from . import _attention_maps, _sparse_backtracking  # noqa: F401  (each registers its claims)
