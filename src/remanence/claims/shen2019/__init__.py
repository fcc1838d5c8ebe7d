"""Claims of Shen 2019; importing it registers them."""

from . import _linear_networks, _mutual_information, _trained_models  # noqa: F401  (each registers its claims)
