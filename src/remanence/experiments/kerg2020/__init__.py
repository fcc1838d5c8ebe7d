"""Kerg et al. 2020 (document 000): Tables 1 to 5 and figures 1 to 11."""

from remanence.experiments.kerg2020._dense import FIGURE_7, FIGURE_8, FIGURE_9, TABLE_3
from remanence.experiments.kerg2020._dependencies import DEPENDENCIES
from remanence.experiments.kerg2020._gradients import (
    FIGURE_1,
    FIGURE_2,
    FIGURE_2_CENTRE,
    FIGURE_3,
    FIGURE_10,
    FIGURE_11,
)
from remanence.experiments.kerg2020._policies import TABLE_4
from remanence.experiments.kerg2020._recall import (
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    OTHERS,
    TABLE_1,
    TABLE_1_AFTER_ALL,
    TABLE_2,
    TABLE_5,
)
from remanence.experiments.kerg2020._transfer_causes import TABLE_1_CAUSES

EXPERIMENTS = (
    TABLE_1,
    TABLE_1_AFTER_ALL,
    TABLE_1_CAUSES,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TABLE_5,
    OTHERS,
    FIGURE_1,
    FIGURE_2,
    FIGURE_2_CENTRE,
    FIGURE_3,
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    FIGURE_7,
    FIGURE_8,
    FIGURE_9,
    FIGURE_10,
    FIGURE_11,
    DEPENDENCIES,
)

__all__ = ["EXPERIMENTS"]
