"""Closed forms and bounds: what the papers claim, what is true, and constants to check. Knows no model."""

from ._chains import chain_sum
from ._costs import Cost, attention_cost, recurrent_cost
from ._features import random_feature_variance
from ._linear_gaussian import LinearGaussianRNN
from ._sparse import dependency_bound, random_sets, read_depth, sparse_chi, sparse_transfer
from ._truncation import (
    Constants,
    gradient_gap,
    gradient_smoothness,
    output_gap,
    state_gap,
    sufficient_window,
    tanh_constants,
    training_window,
    weight_gap,
)
from ._uniform import (
    chi,
    chi_bounds,
    growth_exponent,
    omega,
    omega_constants,
    omega_polynomial,
    power_sums,
    printed_exponent,
    psi,
    theta,
    theta_bounds,
    uniform_transfer,
)

__all__ = [
    "uniform_transfer",
    "growth_exponent",
    "printed_exponent",
    "power_sums",
    "omega",
    "theta",
    "chi",
    "omega_constants",
    "psi",
    "omega_polynomial",
    "theta_bounds",
    "chi_bounds",
    "chain_sum",
    "sparse_transfer",
    "random_sets",
    "sparse_chi",
    "read_depth",
    "dependency_bound",
    "Constants",
    "tanh_constants",
    "state_gap",
    "sufficient_window",
    "gradient_gap",
    "gradient_smoothness",
    "weight_gap",
    "output_gap",
    "training_window",
    "random_feature_variance",
    "LinearGaussianRNN",
    "Cost",
    "attention_cost",
    "recurrent_cost",
]
