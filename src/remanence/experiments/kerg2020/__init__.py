"""Kerg et al. 2020: Tables 1 to 5 and figures 1 to 11."""

from remanence.experiments.kerg2020 import (
    _causes,
    _dependencies,
    _gradients,
    _policies,
    _recall,
    _text_and_pictures,
)

EXPERIMENTS = (
    _recall.TABLE_1,
    _recall.TABLE_1_AFTER_ALL,
    _causes.TABLE_1_CAUSES,
    _recall.TABLE_2,
    _causes.TABLE_2_CAUSES,
    _text_and_pictures.TABLE_3,
    _policies.TABLE_4,
    _policies.TABLE_4_CODE,
    _recall.TABLE_5,
    _recall.OTHERS,
    _gradients.FIGURE_1,
    _gradients.FIGURE_2,
    _gradients.FIGURE_2_CENTRE,
    _gradients.FIGURE_3,
    _recall.FIGURE_4,
    _recall.FIGURE_5,
    _recall.FIGURE_6,
    _text_and_pictures.FIGURE_7,
    _text_and_pictures.FIGURE_8,
    _text_and_pictures.FIGURE_9,
    _gradients.FIGURE_10,
    _gradients.FIGURE_11,
    _dependencies.DEPENDENCIES,
)

__all__ = ["EXPERIMENTS"]
