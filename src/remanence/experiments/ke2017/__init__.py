"""Ke et al. 2017: Tables 1 to 8, figure 3, and the ablation of clipping in 7.2."""

from remanence.experiments.ke2017._adding import TABLE_4, TABLE_5
from remanence.experiments.ke2017._copying import CLIPPING as CLIPPING_COPY
from remanence.experiments.ke2017._copying import FIGURE_3, TABLE_1, TABLE_2, TABLE_3
from remanence.experiments.ke2017._real_data import CLIPPING, TABLE_6, TABLE_7, TABLE_8

TABLES = (TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5, TABLE_6, TABLE_7, TABLE_8)
EXPERIMENTS = (*TABLES, FIGURE_3, CLIPPING, CLIPPING_COPY)

__all__ = ["EXPERIMENTS"]
