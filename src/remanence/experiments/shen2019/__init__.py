"""Shen 2019 (document 003): figures 1 to 10."""

from remanence.experiments.shen2019._estimates import FIGURE_3D, FIGURE_4, FIGURE_5, FIGURE_6
from remanence.experiments.shen2019._models import (
    FIGURE_1,
    FIGURE_2,
    FIGURE_3,
    FIGURE_7,
    FIGURE_8,
    FIGURE_9,
    FIGURE_10,
)

EXPERIMENTS = (
    FIGURE_1,
    FIGURE_2,
    FIGURE_3,
    FIGURE_3D,
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    FIGURE_7,
    FIGURE_8,
    FIGURE_9,
    FIGURE_10,
)

__all__ = ["EXPERIMENTS"]
