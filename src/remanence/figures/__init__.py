"""Pictures as values: what is drawn, apart from who draws it.

A result says once what its picture shows, as a :class:`Figure` of curves, bands, bars or a heat map on two axes.
:func:`to_plotly` draws it for notebooks and for the report's page, :func:`to_svg` for documents.
"""

from ._figure import Axis, Band, Bars, Curve, Figure, HeatMap, length_axis, log_axis, overlay, share_axis
from ._looks import Look, looks
from ._plotly import compact, plotly_dict, to_plotly
from ._svg import to_svg

__all__ = [
    "Figure",
    "Axis",
    "Curve",
    "Band",
    "Bars",
    "HeatMap",
    "overlay",
    "compact",
    "log_axis",
    "length_axis",
    "share_axis",
    "Look",
    "looks",
    "to_plotly",
    "plotly_dict",
    "to_svg",
]
