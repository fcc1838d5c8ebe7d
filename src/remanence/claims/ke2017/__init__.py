"""Claims of Ke et al. 2017; importing it registers them."""

from . import _sparse_backtracking  # noqa: F401  (it registers its claims)
