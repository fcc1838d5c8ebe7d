"""Draws the heat maps of the papers' figures from the stored records, as small SVGs.

``python docs/probes/make.py`` calls it and puts the pictures on the page of ``attention_map``.
"""

from pathlib import Path

import numpy as np

from remanence.experiments import stored_cells
from remanence.figures import Axis, Figure, HeatMap, to_svg

HERE = Path(__file__).parent
READ = Axis("step read")
READER = Axis("reader", downwards=True)

FIGURES = {
    "figure_1": ("Figure 1 of Kerg et al. 2020: full attention on Copy and Denoise", ("kerg2020/figure-1",)),
    "figure_7_9": (
        "Figures 7 and 9 of Kerg et al. 2020: full attention on PTB and MNIST",
        ("kerg2020/figure-7", "kerg2020/figure-9"),
    ),
    "figure_10_11": (
        "Figures 10 and 11 of Kerg et al. 2020: the short-term buffer alone",
        ("kerg2020/figure-10", "kerg2020/figure-11"),
    ),
    "figure_3_sab": ("Figure 3 of Ke et al. 2017: SAB on Copy at three stages of training", ("ke2017/figure-3",)),
}


def maps_of(id):
    """The cells of a figure with a whole map, by a name for the picture."""
    cells = [cell for cell in stored_cells(id) if "effective" in cell.result("attention")]
    return {f"{id.partition('/')[2]}, {' '.join(str(v) for k, v in c.place.items() if k != 'seed')}": c for c in cells}


def picture(cells):
    """Several maps side by side."""
    maps = {name: np.array(cell.result("attention")["map"]) for name, cell in cells.items()}
    return to_svg(*(Figure(name, "", (HeatMap(found),), READ, READER) for name, found in maps.items()))


def table(cells):
    """What every map says in numbers."""
    names = "| figure | accuracy | states read (untrained), of those stored | on symbols, if uniform |"
    rows = [names, "|---|---|---|---|"]
    for name, cell in cells.items():
        run = cell.result("attention")
        symbols = f"{run['on_symbols']:.2f}, {run['even']:.2f}" if "on_symbols" in run else ""
        read = f"{run['effective']:.1f} ({run['untrained']:.1f}) of {run['available']:.0f}"
        rows.append(f"| {name} | {100 * cell.state.validation['accuracy']:.0f} % | {read} | {symbols} |")
    return "\n".join(rows)


def section():
    """Writes the pictures and gives the words around them."""
    parts, whole = [], {}
    for name, (title, ids) in FIGURES.items():
        cells = {label: cell for id in ids for label, cell in maps_of(id).items()}
        whole |= cells
        (HERE / f"{name}.svg").write_text(picture(cells), encoding="utf-8")
        commands = "\n".join(f"$ remanence reproduce {id} --scale paper" for id in ids)
        parts.append(f"### {title}\n\n![{title}]({name}.svg)\n\n```console\n{commands}\n```")
    words = f"""## Figures of the papers

Readers go down, the steps they read to the right, in blocks. Each command runs a figure with the paper's settings; the
maps here are of smaller models, whose settings [](../tables/index.md) lists. Figure 3 of Ke et al. 2017 shows only the
rows that answer; here are all rows.

{table(whole)}

The number of states that a step *reads* is the exponential of the entropy of its weights. What the papers say about
these maps is measured by the claims `kerg2020/figure1`, `kerg2020/figure1-denoise`, `kerg2020/figure7-9`,
`kerg2020/figure10-11` and `ke2017/figure3`."""
    return "\n\n".join([words, *parts])
