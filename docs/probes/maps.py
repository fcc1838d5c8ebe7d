"""Draws the heat maps of the papers' figures from the stored result ``attention``, as small SVGs.

``python docs/probes/make.py`` calls it and puts the pictures on the page of ``attention_map``.
"""

from pathlib import Path

import numpy as np

from remanence.experiments import load_stored
from remanence.figures import Axis, Figure, HeatMap, to_svg

HERE = Path(__file__).parent
READ = Axis("step read")
READER = Axis("reader", downwards=True)

FIGURES = {
    "figure_1": ("Figure 1 of Kerg et al. 2020: full attention on Copy and Denoise", ("copy-MemRNN", "denoise-MemRNN")),
    "figure_7_9": (
        "Figures 7 and 9 of Kerg et al. 2020: full attention on PTB and MNIST",
        ("ptb-char-MemRNN", "pixel-mnist-MemRNN"),
    ),
    "figure_10_11": (
        "Figures 10 and 11 of Kerg et al. 2020: the short-term buffer alone",
        ("copy-RelRNN", "denoise-RelRNN"),
    ),
    "figure_3_sab": (
        "Figure 3 of Ke et al. 2017: SAB on Copy after 1,000, 6,000 and 24,000 updates",
        ("copy-SABLSTM-1000", "copy-SABLSTM-6000", "copy-SABLSTM-24000"),
    ),
}


def picture(runs, names):
    """Several maps side by side."""
    figures = [Figure(name, "", (HeatMap(np.array(runs[name]["map"])),), READ, READER) for name in names]
    return to_svg(*figures)


def table(results):
    """What every map says in numbers, with the command that trains its model."""
    rows = ["| figure | run | accuracy | states read (untrained), of those there | on symbols, evenly |"]
    rows.append("|---|---|---|---|---|")
    for run in results["runs"]:
        arm = results["arms"][run["arm"]]
        symbols = f"{run['on_symbols']:.2f}, {run['even']:.2f}" if "on_symbols" in run else ""
        read = f"{run['effective']:.1f} ({run['untrained']:.1f}) of {run['available']:.0f}"
        rows.append(f"| {arm['figure']} | {run['arm']} | {100 * run['accuracy']:.0f} % | {read} | {symbols} |")
    return "\n".join(rows)


def section():
    """Writes the pictures and gives the words around them."""
    record = load_stored("attention")
    results = record["results"]
    runs = {run["arm"]: run for run in results["runs"]}
    parts = []
    for name, (title, arms) in FIGURES.items():
        (HERE / f"{name}.svg").write_text(picture(runs, arms), encoding="utf-8")
        commands = "\n".join(f"$ {results['arms'][arm]['command']}" for arm in arms)
        parts.append(f"### {title}\n\n![{title}]({name}.svg)\n\n```console\n{commands}\n```")
    words = f"""## Figures of the papers

Readers go down, the steps they read to the right, in blocks. Each command trains one model and prints the folder of its
run; `remanence probe FOLDER --output page.html` then draws its map with all other probes. All of them at once:
`{record["command"]}`. Scaled down: {record["scaled_down"]}.
Figure 3 of Ke et al. 2017 shows the rows that answer alone; here are all.

{table(results)}

A step *reads* the exponential of the entropy of its weights. What the papers say about these maps is measured by the
claims `kerg2020/figure1`, `kerg2020/figure1-denoise`, `kerg2020/figure7-9`, `kerg2020/figure10-11` and
`ke2017/figure3`."""
    return "\n\n".join([words, *parts])
