"""Writes this folder's pages and a table of the README from the stored records: what was measured, what is printed.

``python docs/tables/make.py``; it trains nothing.
"""

from dataclasses import dataclass
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
WIDE = 9
"""Columns from which on a table of a few rows is shown with its rows as columns."""
LONG = 24
"""Rows from which on a list of runs is shown in parts."""
CURVES = 24
"""That one picture can show."""
README = HERE.parents[1] / "README.md"
BEGIN, END = "<!-- written by docs/tables/make.py -->", "<!-- end -->"
HEADLINE = (
    ("Copy", "kerg2020/table-5", "accuracy"),
    ("Copy, evaluated at T = 5,000", "kerg2020/table-1", "T = 5000"),
    ("Denoise", "kerg2020/table-2", "accuracy"),
)
WORDS = """# Tables and figures of the papers

`remanence reproduce ID` runs a table or figure of the papers by its name ([](../reproduce.md)). There is a page for
each paper, and one for our own comparisons.

```{toctree}
:maxdepth: 1

kerg2020
ke2017
miller2018
shen2019
beyond
```

Each section of a page starts with the paper's table: the numbers measured with the paper's settings and budget, the
printed number in brackets, and *not run* where nothing was run. Below it, folded, are those runs one by one, and the
runs with other settings or a smaller budget, with everything in which they differ from the paper. Numbers of several
seeds are separated by semicolons. Only runs with the paper's settings can say whether a printed number holds.
[](../papers.md) and `remanence verify` say what follows from all of them.

## What was run

*Places* are the numbers of a table, such as a model at a length. *Complete* are those that have a run with the paper's
settings and budget (our own settings in our own comparisons). *Other runs* have other settings or a smaller budget.
"""
PAPER = "the paper's settings"
FULL = "the full settings"


@dataclass(frozen=True)
class Source:
    """A paper, or our own comparisons, and what its page is called."""

    name: str
    title: str
    settings: str = PAPER

    def told(self, words):
        """The words of a table, which say "the paper's" of our own settings too."""
        if self.settings == PAPER:
            return words.replace("the paper's, less budget", "the paper's, smaller budget")
        return words.replace("the paper's, less budget", "full, smaller budget").replace("the paper's", "full")


SOURCES = (
    Source("kerg2020", "Tables of Kerg et al. 2020"),
    Source("ke2017", "Tables of Ke et al. 2017"),
    Source("miller2018", "Tables of Miller and Hardt 2018"),
    Source("shen2019", "Tables of Shen 2019"),
    Source("beyond", "Our own comparisons", FULL),
)


def section(experiment, cells, source):
    """Everything that is stored of one table or figure."""
    printed = [cell for cell in cells if cell.is_as_printed]
    others = [cell for cell in cells if not cell.is_as_printed]
    command = f"`remanence reproduce {experiment.id} --scale paper`"
    parts = [f"({anchor(experiment)})=\n## {experiment.title}", command, experiment.note]
    if printed:
        parts += as_printed(experiment, printed, source)
    else:
        parts.append(f"No run with {source.settings} and budget is stored.")
    if others:
        parts.append(other_runs(experiment, others, source, bool(printed)))
    if picture(experiment, cells):
        parts.append(f"![{experiment.title}]({picture_name(experiment)})")
    return "\n\n".join(filter(None, parts)) + "\n"


def anchor(experiment):
    """What links to its section name."""
    return experiment.id.replace("/", "-")


def as_printed(experiment, cells, source):
    """The table as the document has it, with the places where nothing was run, and the runs one by one."""
    laid = grid(experiment, entries(experiment, with_missing(experiment, cells)))
    runs = runs_tables(experiment, cells, source)
    if len(laid.head) > COLUMNS:
        filled, places = coverage(experiment, cells)
        words = f"{filled} of {places} places have a run with {source.settings}; the others were not run."
        return [words, runs]
    return [table(laid.head, laid.rows), folded(f"Runs with {source.settings}", runs)]


def other_runs(experiment, cells, source, fold):
    """Runs with other settings or a smaller budget; folded where others come first, or where they are many."""
    groups = {"": cells}
    if len(runs_by_settings(experiment, cells).rows) > LONG:
        first = next(iter(experiment.axes))
        groups = {str(cell.place[first]): [] for cell in cells}
        for cell in cells:
            groups[str(cell.place[first])].append(cell)
    words = "Runs with other settings or a smaller budget"
    parts = []
    for name, group in groups.items():
        runs = runs_tables(experiment, group, source)
        if name:
            parts.append(folded(f"{words}: {name}", runs))
        elif fold:
            parts.append(folded(words, runs))
        else:
            parts.append(f"{words}:\n\n{runs}")
    return "\n\n".join(parts)


def with_missing(experiment, cells):
    """The cells, and those of the paper's places that have none, in the order of the document."""
    planned = plan_cells(experiment, "paper", "runs", seeds=[0])
    filled = {place_of(cell) for cell in cells}
    missing = [cell for cell in planned if place_of(cell) not in filled]
    order = {place_of(cell): number for number, cell in enumerate(planned)}
    return sorted([*cells, *missing], key=lambda cell: (order.get(place_of(cell), len(order)), cell.place["seed"]))


def coverage(experiment, cells):
    """How many places have one of these cells, and how many there are."""
    filled = {place_of(cell) for cell in cells}
    everywhere = {place_of(cell) for cell in with_missing(experiment, cells)}
    return len(filled), len(everywhere)


def place_of(cell):
    """Where a cell stands, without its seed."""
    return tuple((name, str(value)) for name, value in cell.place.items() if name != "seed")


def runs_tables(experiment, cells, source):
    """A row for the seeds of each place and choice of settings; the settings have letters, told below the table.

    What is the same in all rows stands above them.
    """
    laid = runs_by_settings(experiment, cells)
    departures = {", ".join(cell.departures): cell.departures for cell in cells if cell.departures}
    letters = {words: letter(number) for number, words in enumerate(departures_in_order(laid.rows, departures))}
    rows = [(*row[:-1], letters.get(row[-1], source.told(row[-1]))) for row in laid.rows]
    told = [f"- **{name}**: {described(departures[words])}" for words, name in letters.items()]
    if len(letters) == 1 and len({row[-1] for row in rows}) == 1:
        told = []
        rows = [(*row[:-1], described(departures[next(iter(letters))])) for row in rows]
    head, rows, common = without_common(laid.head, rows)
    return "\n\n".join(filter(None, [common, table(head, rows), "\n".join(told)]))


def departures_in_order(rows, departures):
    """The settings of the rows that are not the paper's, each once."""
    return dict.fromkeys(row[-1] for row in rows if row[-1] in departures)


def letter(number):
    """A, B, ... Z, AA, AB, ..."""
    if number < 26:
        return chr(ord("A") + number)
    return letter(number // 26 - 1) + letter(number % 26)


def described(departures):
    """Settings and, in brackets, those of the paper."""
    return ", ".join(map(one_described, departures))


def one_described(words):
    """``"rate 0.001 for 0.0002"`` as ``"`rate` 0.001 (paper: 0.0002)"``; what is no setting as it is."""
    setting, found, paper = words.rpartition(" for ")
    name, has_value, value = setting.partition(" ")
    if not found or not has_value or name[0].isdigit():
        return words
    return f"`{name}` {value} (paper: {paper})"


def without_common(head, rows):
    """The table without the columns that are empty, and a sentence for settings and budget that all rows share."""
    kept = list(range(len(head)))
    told = []
    for column, words in ((-1, "Settings: {}."), (-2, "Trained: {}.")):
        values = {row[column] for row in rows}
        if len(values) == 1 and values != {""}:
            told.append(words.format(values.pop()))
            kept.remove(len(head) + column)
    kept = [place for place in kept if any(row[place] for row in rows)]
    rows = [tuple(row[place] for place in kept) for row in rows]
    return [head[place] for place in kept], rows, " ".join(told)


def table(head, rows):
    """A table; with rows and columns exchanged where it has a few long rows."""
    if len(head) > WIDE and len(rows) < 4:
        head, *rows = zip(head, *rows, strict=True)
    return markdown_table(head, rows)


def folded(words, text):
    """A part that a reader opens."""
    return f"<details><summary>{words}</summary>\n\n{text}\n\n</details>"


def picture(experiment, cells):
    """The curves of the cells nearest to the paper's settings, of the first seed of each; none where they are many."""
    drawn = figures_of(experiment, longest(cell for cell in nearest(cells) if cell.place["seed"] == 0))
    if not drawn or max(len(figure.parts) for figure in drawn) > CURVES:
        return ""
    return to_svg(*drawn)


def picture_name(experiment):
    """Of its file."""
    return f"{experiment.id.replace('/', '_')}.svg"


def longest(cells):
    """One cell for each place, the one that took most updates."""
    found = {}
    for cell in cells:
        other = found.get(place_of(cell))
        if other is None or (cell.state.update or 0) > (other.state.update or 0):
            found[place_of(cell)] = cell
    return list(found.values())


def page(source, experiments):
    """The page of a paper."""
    stored = [(experiment, stored_cells(experiment.id)) for experiment in experiments]
    parts = [section(experiment, cells, source) for experiment, cells in stored if cells]
    waiting = [(f"`{experiment.id}`", experiment.title) for experiment, cells in stored if not cells]
    if waiting:
        words = f"Declared with {source.settings}; no run is stored."
        parts.append(f"## Not run\n\n{words}\n\n{table(('id', 'contents'), waiting)}\n")
    return "\n".join([f"# {source.title}\n", *parts])


def index(by_source):
    """The first page: what was run of every table and figure, with links to it."""
    parts = [WORDS]
    for source, experiments in by_source.items():
        rows = [overview(experiment, stored_cells(experiment.id)) for experiment in experiments]
        head = ("id", "contents", "complete", "other runs")
        parts.append(f"### {source.title}\n\n{table(head, rows)}\n")
    return "\n".join(parts)


def overview(experiment, cells):
    """A row: what it is, how much of it has runs with the paper's settings, and how many other runs there are."""
    printed = [cell for cell in cells if cell.is_as_printed]
    filled, places = coverage(experiment, printed)
    name = f"`{experiment.id.partition('/')[2]}`"
    if cells:
        name = f"[{name}](#{anchor(experiment)})"
    return name, experiment.title, f"{filled} of {places}", str(len(cells) - len(printed))


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


def pages():
    """The texts of all pages by their names."""
    by_source = {
        source: [one for one in list_experiments() if one.id.partition("/")[0] == source.name] for source in SOURCES
    }
    texts = {source.name: page(source, experiments) for source, experiments in by_source.items()}
    return {"index": index(by_source), **texts}


def main():
    """Writes the pages, their pictures and the README's table."""
    write_headline()
    for experiment in list_experiments():
        drawn = picture(experiment, stored_cells(experiment.id))
        if drawn:
            (HERE / picture_name(experiment)).write_text(drawn, encoding="utf-8")
    for name, text in pages().items():
        (HERE / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
