"""Writes this folder's page from the stored records: what was measured beside what the papers print.

``python docs/tables/make.py``; it trains nothing.
"""

from pathlib import Path

from remanence.experiments import entries, figures_of, list_experiments, nearest, stored_cells
from remanence.figures import to_svg

HERE = Path(__file__).parent
WORDS = """# Tables and figures of the papers

`remanence reproduce ID` runs a table or figure of the papers by its name ([](../reproduce.md)). Here are all cells that
were run: measured numbers, one a seed, with the printed one in brackets; how much of the paper's budget a run had; and
every setting that is not the paper's. Runs that are *not* with the paper's settings are older and smaller. They do not
settle whether a printed number holds. [](../papers.md) and `remanence verify` say what follows from all of them.
"""


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(one).replace('|', '/') for one in line)} |" for line in lines)


def section(experiment, cells):
    """All stored cells of one table or figure, those with the paper's settings first."""
    groups = {}
    for cell in sorted(cells, key=lambda cell: (len(cell.departures), not cell.is_as_printed)):
        place = tuple(value for name, value in cell.place.items() if name != "seed")
        groups.setdefault((cell.departures, cell.is_as_printed, place), []).append(cell)
    readings = list(dict.fromkeys(reading.name for reading in experiment.readings))
    head = [*experiment.axes, *readings, "trained", "settings"]
    rows = [row(experiment, readings, group) for group in groups.values()]
    note = f"\n\n{experiment.note}" if experiment.note else ""
    return f"""## {experiment.title}

`remanence reproduce {experiment.id} --scale paper`{note}

{table(head, rows)}
{picture(experiment, cells)}"""


def row(experiment, readings, group):
    """The seeds of one place and one choice of settings."""
    axes = [group[0].place.get(name, "") for name in experiment.axes]
    found = {entry.reading: entry for entry in entries(experiment, group)}
    numbers = [number(found[name]) if name in found else "" for name in readings]
    return [*axes, *numbers, trained(group), settings(group[0])]


def settings(cell):
    """How they depart from the paper's."""
    if cell.departures:
        return ", ".join(cell.departures)
    return "the paper's" if cell.is_as_printed else "the paper's, less budget"


def number(entry):
    """Values by seed, and what is printed."""
    values = "; ".join(f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}" for value in entry.values.values())
    return f"{values or '-'} [{entry.printed_words}]" if entry.printed_words else values


def trained(group):
    """How much of the paper's budget the runs had."""
    spent = sorted({cell.spent for cell in group if cell.spent is not None})
    if not spent:
        return ""
    span = f"{spent[0]:,.0f}" if len(spent) == 1 else f"{spent[0]:,.0f} to {spent[-1]:,.0f}"
    return f"{span} of {group[0].paper.budget:,.0f} {group[0].paper.unit}"


def picture(experiment, cells):
    """The curves of the cells nearest to the paper's settings, of the first seed of each."""
    drawn = figures_of(experiment, [cell for cell in nearest(cells) if cell.place["seed"] == 0])
    if not drawn:
        return ""
    name = f"{experiment.id.replace('/', '_')}.svg"
    (HERE / name).write_text(to_svg(*drawn), encoding="utf-8")
    return f"\n![{experiment.title}]({name})\n"


def main():
    """Writes the page."""
    parts = [section(experiment, cells) for experiment in list_experiments() if (cells := stored_cells(experiment.id))]
    (HERE / "index.md").write_text("\n".join([WORDS, *parts]), encoding="utf-8")


if __name__ == "__main__":
    main()
