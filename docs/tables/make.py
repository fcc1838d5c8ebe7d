"""Writes this folder's page from the stored records: what was measured beside what the papers print.

``python docs/tables/make.py``; it trains nothing.
"""

from pathlib import Path

from remanence.experiments import (
    entries,
    figures_of,
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
    filled = {place_of(cell) for cell in cells}
    planned = plan_cells(experiment, "paper", "runs", seeds=[0])
    missing = [cell for cell in planned if place_of(cell) not in filled]
    order = {place_of(cell): number for number, cell in enumerate(planned)}
    everywhere = [*cells, *missing]
    everywhere.sort(key=lambda cell: (order.get(place_of(cell), len(order)), cell.place["seed"]))
    laid = grid(experiment, entries(experiment, everywhere))
    runs = runs_table(experiment, cells)
    if len(laid.head) > COLUMNS:
        filled_words = f"{len(planned) - len(missing)} of {len(planned)} places have a run with the paper's settings"
        return [f"{filled_words}; the others were not run.", runs]
    return [markdown_table(laid.head, laid.rows), folded("Runs with the paper's settings", runs)]


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


def main():
    """Writes the page."""
    found = [(experiment, stored_cells(experiment.id)) for experiment in list_experiments()]
    parts = [section(experiment, cells) for experiment, cells in found if cells]
    waiting = not_run([experiment for experiment, cells in found if not cells])
    (HERE / "index.md").write_text("\n".join([WORDS, *parts, waiting]), encoding="utf-8")


if __name__ == "__main__":
    main()
