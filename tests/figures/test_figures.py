"""One specification, two renderers: both show the same, and neither trips over odd numbers."""

import json
import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from remanence.figures import (
    Axis,
    Band,
    Bars,
    Curve,
    Figure,
    HeatMap,
    Look,
    compact,
    log_axis,
    overlay,
    plotly_dict,
    share_axis,
    to_plotly,
    to_svg,
)

ODD = [1.0, math.nan, math.inf, -math.inf, None, -1.0, 0.0, 1e-300]
FIGURES = {
    "curves": Figure("a", "b", (Curve("one", [1, 2], [1.0, 2.0]), Curve("two", [1, 2], [3.0, 4.0], "both"))),
    "odd": Figure("a", "b", (Curve("odd", range(8), ODD),), Axis("x"), log_axis("y", ODD)),
    "band": Figure("a", "b", (Band(("low", "high"), [1, 2], [1.0, 1.0], [2.0, 3.0]),)),
    "bars": Figure("a", "b", (Bars(["x", "y"], [0.1, 0.9]),), Axis(scale="category"), share_axis("share")),
    "map": Figure("a", "b", (HeatMap(np.eye(5)),), Axis("read"), Axis("reader", downwards=True)),
    "one value": Figure("a", "b", (Curve("flat", [5], [512]),), log_axis("T", [5]), log_axis("bytes", [512], "SI")),
    "nothing": Figure("a", "b"),
    "hostile": Figure("<b>", "&", (Curve("</svg><script>", [1, 2], [1, 2]), Curve("&", [1, 2], [2, 1]))),
}


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_every_figure_can_be_drawn_by_both(name):
    json.dumps(plotly_dict(FIGURES[name]), allow_nan=False)
    ElementTree.fromstring(to_svg(FIGURES[name]))


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_plotly_takes_what_we_make(name):
    plotly = pytest.importorskip("plotly.graph_objects")
    assert isinstance(to_plotly([FIGURES[name]]), plotly.Figure)
    assert len(to_plotly([FIGURES[name], FIGURES["curves"]]).data) >= 2


def test_what_a_logarithmic_axis_cannot_show_is_a_gap():
    heights = plotly_dict(FIGURES["odd"])["data"][0]["y"]
    assert heights == [1.0, None, None, None, None, None, None, 1e-300]


@pytest.mark.parametrize("values", [[1.9, 2.1], [2.0, 2.0], [0.7, 2.3], [1e-3, 1e3], [0.02, 0.03]])
def test_a_logarithmic_axis_always_has_ticks_inside_its_range(values):
    ticks = log_axis("loss", values).ticks
    assert ticks
    assert all(0.99 * min(values) <= tick <= 1.01 * max(values) for tick in ticks)


def test_several_curves_have_a_legend_and_one_has_none():
    assert all(trace["showlegend"] for trace in plotly_dict(FIGURES["curves"])["data"])
    assert not plotly_dict(FIGURES["one value"])["data"][0]["showlegend"]


def test_curves_of_a_figure_have_different_colours():
    first, second = plotly_dict(FIGURES["curves"])["data"]
    assert first["line"]["color"] != second["line"]["color"]


def test_names_are_inert_for_plotly():
    assert plotly_dict(FIGURES["hostile"])["data"][0]["name"] == "&lt;/svg&gt;&lt;script&gt;"


def test_overlaid_figures_take_their_look_and_keep_their_dashes():
    fit = Look(dash="dash")
    one = Figure("a", "says", (Curve("measured", [1], [1.0]), Curve("fit", [1], [1.0], look=fit)), y=log_axis("y", [1]))
    whole = overlay("Both", {"LSTM": one, "GRU": one}, {"LSTM": Look("#111111"), "GRU": Look("#222222")})
    assert [part.name for part in whole.parts] == ["LSTM", "LSTM, fit", "GRU", "GRU, fit"]
    assert [part.group for part in whole.parts] == ["LSTM", "LSTM", "GRU", "GRU"]
    assert [part.look for part in whole.parts if "fit" in part.name] == [
        Look("#111111", dash="dash"),
        Look("#222222", dash="dash"),
    ]


def test_pooling_keeps_the_greatest_of_every_block():
    values = np.random.default_rng(0).random((13, 11))
    pooled = HeatMap(values).pooled(5)
    assert pooled.block == 3
    assert pooled.values.shape == (5, 4)
    assert pooled.values[1, 2] == values[3:6, 6:9].max()
    assert pooled.values[-1, -1] == values[12:, 9:].max()


@pytest.mark.parametrize("values", [(2e5, 8e6), (3.0, 97.0), (1.1, 99.0)])
def test_a_logarithmic_axis_over_one_power_of_ten_has_more_than_that_tick(values):
    assert len(log_axis("bytes", values).ticks) >= 3


def test_a_compact_figure_keeps_both_ends():
    long = Figure("a", "b", (Curve("c", np.arange(5000), np.arange(5000.0)), HeatMap(np.ones((400, 400)))))
    curve, heat = compact(long, points=100).parts
    assert (curve.x[0], curve.x[-1], len(curve.x)) == (0, 4999, 100)
    assert heat.values.shape == (134, 134)


def test_a_legend_that_all_panels_share_is_drawn_once():
    curves = (Curve("LSTM", [0, 1], [1.0, 2.0]), Curve("GRU", [0, 1], [2.0, 1.0]))
    drawn = to_svg(*(Figure(name, "", curves) for name in "abc"))
    assert drawn.count(">LSTM<") == 1
    other = Figure("d", "", (curves[0], Curve("RNN", [0, 1], [2.0, 1.0])))
    assert to_svg(Figure("a", "", curves), other).count(">LSTM<") == 2


def test_the_longest_name_of_a_legend_has_room():
    long = "Transformer 16, context 32, trained on sequences of 256"
    curves = (Curve(long, [0, 1], [1.0, 2.0]), Curve("data", [0, 1], [2.0, 1.0]))
    drawn = ElementTree.fromstring(to_svg(Figure("a", "", curves)))
    width = float(drawn.attrib["viewBox"].split()[2])
    [panel] = [part for part in drawn.iter() if any(text.text == long for text in part)]
    assert float(panel.attrib["width"]) > 6 * len(long)  # six pixels a letter at least
    assert width > 490 + 6 * len(long)


def test_several_panels_fit_a_page_of_text_without_shrinking():
    curves = (Curve("LSTM", [0, 1], [1.0, 2.0]), Curve("GRU", [0, 1], [2.0, 1.0]))
    drawn = ElementTree.fromstring(to_svg(*(Figure(name, "", curves) for name in "abcd")))
    assert float(drawn.attrib["viewBox"].split()[2]) <= 750
