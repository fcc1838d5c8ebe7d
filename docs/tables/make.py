"""Writes this folder's page and a table of the README from the stored records: what was measured, what is printed.

``python docs/tables/make.py``; it trains nothing.
"""

from pathlib import Path

from remanence.experiments import (
    entries,
    figures_of,
    find_experiment,
    grid,
    list_experiments,
    markdown_table,
    nearest,
    plan_cells,
    runs_by_settings,
    stored_cells,
)
from remanence.figures import to_svg

HERE = Path(__file__).parent
COLUMNS = 16
"""That a page can show; what has more of them is no table in its paper, but a figure of many curves."""
README = HERE.parents[1] / "README.md"
BEGIN, END = "<!-- written by docs/tables/make.py -->", "<!-- end -->"
HEADLINE = (
    ("Copy", "kerg2020/table-5", "accuracy"),
    ("Copy, evaluated at T = 5,000", "kerg2020/table-1", "T = 5000"),
    ("Denoise", "kerg2020/table-2", "accuracy"),
)
WORDS = """# Tables and figures of the papers

`remanence reproduce ID` runs a table or figure of the papers by its name ([](../reproduce.md)). Each section starts
with the document's table: the numbers measured with the paper's settings and budget, the printed number in brackets,
and *not run* where nothing was run. Below it are those runs one by one, then the runs with other settings or a smaller
budget, with every departure. Only runs with the paper's settings can say whether a printed number holds.
[](../papers.md) and `remanence verify` say what follows from all of them.
"""


def section(experiment, cells):
    """Everything that is stored of one table or figure."""
    printed = [cell for cell in cells if cell.is_as_printed]
    others = [cell for cell in cells if not cell.is_as_printed]
    parts = [f"## {experiment.title}", f"`remanence reproduce {experiment.id} --scale paper`", experiment.note]
    if printed:
        parts += as_printed(experiment, printed)
    else:
        parts.append("No run with the paper's settings and budget is stored.")
    if others:
        words = "Runs with other settings or a smaller budget"
        listed = runs_table(experiment, others)
        parts.append(folded(words, listed) if printed else listed)
    parts.append(picture(experiment, cells))
    return "\n\n".join(filter(None, parts)) + "\n"


def as_printed(experiment, cells):
    """The table as the document has it, with the places where nothing was run, and the runs one by one."""
    everywhere = with_missing(experiment, cells)
    laid = grid(experiment, entries(experiment, everywhere))
    runs = runs_table(experiment, cells)
    if len(laid.head) > COLUMNS:
        places = len({place_of(cell) for cell in everywhere})
        filled = len({place_of(cell) for cell in cells})
        words = f"{filled} of {places} places have a run with the paper's settings; the others were not run."
        return [words, runs]
    return [markdown_table(laid.head, laid.rows), folded("Runs with the paper's settings", runs)]


def with_missing(experiment, cells):
    """The cells, and those of the paper's places that have none, in the order of the document."""
    planned = plan_cells(experiment, "paper", "runs", seeds=[0])
    filled = {place_of(cell) for cell in cells}
    missing = [cell for cell in planned if place_of(cell) not in filled]
    order = {place_of(cell): number for number, cell in enumerate(planned)}
    return sorted([*cells, *missing], key=lambda cell: (order.get(place_of(cell), len(order)), cell.place["seed"]))


def place_of(cell):
    """Where a cell stands, without its seed."""
    return tuple((name, str(value)) for name, value in cell.place.items() if name != "seed")


def runs_table(experiment, cells):
    """A row for the seeds of each place and choice of settings, the paper's first."""
    laid = runs_by_settings(experiment, cells)
    return markdown_table(laid.head, laid.rows)


def folded(words, text):
    """A part that a reader opens."""
    return f"<details><summary>{words}</summary>\n\n{text}\n\n</details>"


def picture(experiment, cells):
    """The curves of the cells nearest to the paper's settings, of the first seed of each."""
    drawn = figures_of(experiment, [cell for cell in nearest(cells) if cell.place["seed"] == 0])
    if not drawn:
        return ""
    name = f"{experiment.id.replace('/', '_')}.svg"
    (HERE / name).write_text(to_svg(*drawn), encoding="utf-8")
    return f"![{experiment.title}]({name})"


def not_run(experiments):
    """What nothing is stored of."""
    rows = [(f"`{one.id}`", one.title) for one in experiments]
    words = "Declared with the paper's settings; no run is stored."
    return f"## Not run\n\n{words}\n\n{markdown_table(('id', 'what'), rows)}\n"


def headline():
    """The README's table: what was measured with the paper's settings, and in brackets what is printed."""
    columns = [by_model(id, reading) for _, id, reading in HEADLINE]
    models = list(dict.fromkeys(model for column in columns for model in column))
    rows = [(f"`{model}`", *(column.get(model, "") for column in columns)) for model in models]
    return markdown_table(("", *(name for name, *_ in HEADLINE)), rows)


def by_model(id, reading):
    """Measured and printed numbers of the models trained at T = 100."""
    experiment = find_experiment(id)
    printed = [cell for cell in stored_cells(id) if cell.is_as_printed]
    found = entries(experiment, with_missing(experiment, printed))
    shown = [entry for entry in found if entry.reading == reading and entry.place.get("length", 100) == 100]
    return {entry.place["model"]: f"{entry.words} [{entry.printed_words}]" for entry in shown}


def write_headline():
    """Puts the table between its two marks in the README."""
    before, begin, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    README.write_text(f"{before}{begin}\n\n{headline()}\n\n{end}{after}", encoding="utf-8")


def main():
    """Writes the page and the README's table."""
    write_headline()
    found = [(experiment, stored_cells(experiment.id)) for experiment in list_experiments()]
    parts = [section(experiment, cells) for experiment, cells in found if cells]
    waiting = not_run([experiment for experiment, cells in found if not cells])
    (HERE / "index.md").write_text("\n".join([WORDS, *parts, waiting]), encoding="utf-8")


if __name__ == "__main__":
    main()
