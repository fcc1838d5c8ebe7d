"""Kerg et al. 2020 (document 000): Tables 1 to 5 and figures 1 to 11."""

from remanence.experiments.kerg2020._recall import TABLE_2, TABLE_5

EXPERIMENTS = (TABLE_2, TABLE_5)

__all__ = ["EXPERIMENTS"]
