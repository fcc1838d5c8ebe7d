"""Shen 2019: figures 1 to 10."""

from remanence.experiments.shen2019 import _estimates, _models

EXPERIMENTS = (
    _models.FIGURE_1,
    _models.FIGURE_2,
    _models.FIGURE_3,
    _estimates.FIGURE_3D,
    _estimates.FIGURE_4,
    _estimates.FIGURE_5,
    _estimates.FIGURE_6,
    _models.FIGURE_7,
    _models.FIGURE_8,
    _models.FIGURE_9,
    _models.FIGURE_10,
)

__all__ = ["EXPERIMENTS"]
