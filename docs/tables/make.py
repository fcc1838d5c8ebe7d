"""Writes this folder's page from the stored results: what was measured beside what the papers print.

``python docs/tables/make.py``; it trains nothing.
"""

import math
import sys
from pathlib import Path
from statistics import median

from remanence.experiments import Entry, Record, find_experiment, grid, load_stored, printed_accuracy, stored_names
from remanence.experiments.__main__ import SUCCESSORS

HERE = Path(__file__).parent
LEAST = -35.0  # of the logarithms drawn
sys.path.insert(0, str(HERE.parent / "information"))

from picture import draw  # noqa: E402

MODELS = {
    "OrthRNN-fixed": "RNN (modReLU)",
    "RNN": "RNN (tanh)",
    "LSTM-fixed": "LSTM, one length",
    "LSTM": "LSTM, short ones first",
    "MemRNN": "MemRNN",
    "SABLSTM": "SABLSTM",
    "RelLSTM-recent15-relevant15": "RelLSTM",
}


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def change(run, length):
    """Mean ln |dL/dh| over the farthest tenth less that over the nearest, as the claims take it."""
    norms = run["reach"][length]["log_norm"]
    tenth = len(norms) // 10
    near, far = ([value for value in part if value is not None] for part in (norms[:tenth], norms[-tenth:]))
    return sum(far) / len(far) - sum(near) / len(near) if far else -math.inf


def by_arm(results):
    """The runs of every arm."""
    return {arm: [run for run in results["runs"] if run["arm"] == arm] for arm in results["arms"]}


def listed(values, form="{:.3g}"):
    """Numbers of several seeds."""
    return "; ".join(form.format(value) for value in values)


def gradients():
    """Figures 2 and 3: gradients of trained models, and what they cost."""
    record = load_stored("gradients")
    arms = by_arm(record["results"])
    rows, curves, points_of = [], {}, {}
    for key, name in MODELS.items():
        runs = arms[f"denoise-{key}"]
        first = runs[0]["reach"]["1000"]
        points = [
            (d + 1, n) for d, n in zip(first["distance"], first["log_norm"], strict=True) if n is not None and n > LEAST
        ]
        curves[name] = ([d for d, _ in points], [math.exp(n) for _, n in points])
        traded = [median(run["tradeoff"][t]["peak_bytes"] for run in runs) / 1e6 for t in ("400", "600", "800")]
        means = [median(run["tradeoff"][t]["mean_log_norm"] for run in runs) for t in ("400", "600", "800")]
        points_of[name] = (traded, means)
        accuracies = listed([100 * run["accuracy"] for run in runs])
        changes = [listed([change(run, t) for run in runs]) for t in ("200", "1000")]
        rows.append([name, accuracies, *changes, listed(traded), listed(means)])
    draw(HERE / "figure_2_left.svg", curves, "distance from the end + 1", "|dL/dh|", log_x=False)
    draw(HERE / "figure_2_right.svg", points_of, "peak MB at T = 400, 600, 800", "mean ln |dL/dh|", log_y=False)
    screened = []
    for key in ("recent15-relevant3", "recent15-relevant8", "recent15-relevant18", "recent15-relevant25"):
        screened.append(["left", key, *_changes(arms[f"denoise-RelLSTM-{key}"])])
    for key in ("recent3-relevant15", "recent8-relevant15", "recent15-relevant15"):
        screened.append(["right", key, *_changes(arms[f"denoise-RelLSTM-{key}"])])
    head = [
        "model",
        "accuracy, %",
        "change at T = 200",
        "at T = 1000",
        "MB at T = 400, 600, 800",
        "mean ln gradient there",
    ]
    return f"""## Gradients after training (figures 2 and 3)

Denoise; *change* is that of ln |dL/dh| from the nearest tenth of the steps to the farthest, one number a seed. Stable
is less than ln 1000 = 6.9. Megabytes are those of one sequence in plain torch; SAB scores all that it stores at every
step.

{table(head, rows)}

![Gradients after training](figure_2_left.svg)

![Gradient against memory](figure_2_right.svg)

{table(["figure 3", "RelLSTM", "change at T = 200", "at T = 1000"], screened)}

{again(record)}. Scaled down: {record["scaled_down"]}.
"""


def _changes(runs):
    return [listed([change(run, t) for run in runs]) for t in ("200", "1000")]


def memory():
    """Figure 2 centre."""
    record = load_stored("memory")
    lengths, models = record["results"]["lengths"], record["results"]["models"]
    rows = [
        [name, found["what"], *(f"{size / 1e6:.3g}" for size in found["peak_bytes"]), found["growth"]["order"]]
        for name, found in models.items()
    ]
    curves = {name: (lengths, [size / 1e6 for size in found["peak_bytes"]]) for name, found in models.items()}
    draw(HERE / "figure_2_centre.svg", curves, "T", "peak MB")
    return f"""## Memory of training (figure 2, centre)

Megabytes at each T, and the order of `a + b T + c T^2`.

{table(["model", "", *(f"T = {length}" for length in lengths), "order"], rows)}

![Memory of training](figure_2_centre.svg)

{again(record)}. Scaled down: {record["scaled_down"]}.
"""


def recall():
    """Tables 1, 2 and 5 at T = 100, of all models."""
    rows = []
    for name in ("recall", "others"):
        results = load_stored(name)["results"]
        for arm, runs in by_arm(results).items():
            facts = results["arms"][arm]
            printed = printed_accuracy(facts["task"], facts["model"], 100)
            best = [100 * run["best_accuracy"] for run in runs]
            if best:
                said = "" if printed is None or printed.accuracy is None else f"{100 * printed.accuracy:.0f}"
                way = "short ones first" if facts["curriculum"] else "one length"
                solved = listed([run["updates_to_99"] for run in runs if run["updates_to_99"]], "{:,}")
                rows.append([facts["task"].title(), facts["model"], way, listed(best), solved or "none", said])
    rows.sort(key=lambda row: (row[0], row[1]))
    head = ["task", "model", "trained", "best accuracy by seed, %", "updates to 99 %", "printed, %"]
    return f"""## Copy and Denoise at T = 100 (Tables 1, 2 and 5)

{table(head, rows)}

{transfer()}

A guess gets 12.5 %; in brackets what is printed. {again(load_stored("recall"))}. Scaled down:
{load_stored("others")["scaled_down"]}.
"""


def transfer():
    """Table 1: weights learnt at T = 100 at other lengths."""
    rows = []
    for name in ("recall", "others"):
        results = load_stored(name)["results"]
        for arm, runs in by_arm(results).items():
            facts = results["arms"][arm]
            if facts["task"] == "copy" and median([run["best_accuracy"] for run in runs] or [0]) >= 0.99:
                way = "short ones first" if facts["curriculum"] else "one length"
                rows.append([facts["model"], way, *(_beside(facts["model"], runs, t) for t in ("200", "400", "2000"))])
    return table(["Copy, learnt at T = 100", "trained", "T = 200", "T = 400", "T = 2000"], sorted(rows))


def _beside(model, runs, length):
    """Median over seeds, and what is printed."""
    found = [run["elsewhere"][length] for run in runs]
    share = median(one["accuracy"] if isinstance(one, dict) else one for one in found)
    printed = printed_accuracy("copy", model, 100, int(length))
    return f"{100 * share:.0f} %" + (f" ({100 * printed.accuracy:.0f})" if printed and printed.accuracy else "")


def dense():
    """Table 3 and figure 8."""
    record = load_stored("dense")
    results = record["results"]
    rows, curves = [], {}
    for arm, runs in by_arm(results).items():
        facts = results["arms"][arm]
        if not runs:
            continue
        tested = [run["accuracy"] for run in runs if run["accuracy"] is not None]
        bits = listed([run["bits"] for run in runs if run.get("bits")], "{:.2f}")
        printed = facts["document"]
        said = [f"{printed['bits']} bits"] if printed["bits"] else []
        said += [] if printed["accuracy"] is None else [f"{100 * printed['accuracy']:.4g} %"]
        rows.append(
            [
                facts["task"],
                facts["model"],
                facts["hidden_size"],
                bits,
                listed([100 * v for v in tested]),
                ", ".join(said),
            ]
        )
        if facts["task"] == "pixel-mnist":
            curves[facts["model"]] = (runs[0]["curve"]["updates"], runs[0]["curve"]["accuracy"])
    draw(HERE / "figure_8.svg", curves, "updates", "validation accuracy", log_x=False, log_y=False)
    return f"""## Letters and pixels (Table 3, figure 8)

{table(["task", "model", "width", "bits a letter", "test accuracy, %", "printed"], rows)}

![Validation curves of permuted MNIST](figure_8.svg)

{again(record)}. Scaled down: {record["scaled_down"]}.
"""


def policies():
    """Table 4."""
    record = load_stored("minigrid")
    results, rows, curves = record["results"], [], {}
    for run in sorted(results["runs"], key=lambda run: run["family"]):
        facts = results["arms"][run["arm"]]
        cells = [f"{run[part]['mean']:.2f} ± {run[part]['error']:.2f}" for part in ("train", "test")]
        printed = [f"{facts['document'][part]:.2f}" for part in ("train", "test")]
        rows.append([run["family"], run["model"], run["seed"], cells[0], printed[0], cells[1], printed[1]])
        if run["family"] == "Memory":
            curves[f"{run['model']}, seed {run['seed']}"] = (run["curve"]["frames"], run["curve"]["mean_return"])
    draw(HERE / "table_4.svg", curves, "frames in MemoryS7", "mean return", log_x=False, log_y=False)
    sizes = sorted({(facts["small"], facts["large"]) for facts in results["arms"].values()})
    listed_sizes = ", ".join(f"{small[9:-3]} and {large[9:-3]}" for small, large in sizes)
    head = ["environment", "model", "seed", "small: return", "printed", "large: return", "printed"]
    return f"""## Policies in MiniGrid (Table 4)

Mean return of 100 fresh episodes, actions drawn, ± its standard error: in the small environment where a policy has
learnt, and in a large one that it has never seen
({listed_sizes}). Nobody reads the mission: who
guesses gets about a half in Memory and Fetch and a quarter in GoToDoor.

{table(head, rows)}

![Learning curves in MemoryS7](table_4.svg)

{again(record)}. Scaled down: {record["scaled_down"]}.
"""


def reproduced():
    """Tables that `remanence reproduce` has stored, printed numbers in brackets."""
    parts = []
    for name in stored_names():
        values = load_stored(name)
        if "experiment" in values:
            parts.append(section(Record.from_dict(values)))
    return parts


def section(record):
    """One stored table."""
    experiment = find_experiment(record.experiment)
    laid = grid(experiment, [Entry.from_dict(one, experiment.axes) for one in record.results["table"]])
    scaled = (
        f" Scaled down: {record.scaled_down}."
        if record.scaled_down
        else " Settings: the paper's tables, the authors' code where they are silent or differ."
    )
    return f"""## {record.what} ({record.experiment}, {record.scale})

Measured, printed in brackets. {experiment.note}

{table(laid.head, laid.rows)}

Again: `{record.command}`.{scaled}
"""


def again(record):
    """What runs the same tables today."""
    script = record["command"].split()[3]
    return f"Made by a script of an earlier version; now `remanence reproduce` has {SUCCESSORS[script]}"


def main():
    """Writes the page."""
    words = """# Tables and figures of the papers

`remanence reproduce ID` runs a table or figure of the papers by its name ([](../reproduce.md)). The first part of this
page holds the cells that were run with the papers' settings and budgets, one seed; what was not run is named. The
second part holds smaller runs of earlier versions: other settings, and a thirtieth of the updates or less. They do not
settle whether a printed number holds. [](../papers.md) and `remanence verify` say what follows from all of them.
"""
    scaled_down = [gradients(), memory(), recall(), *([dense()] if "dense" in stored_names() else []), policies()]
    parts = [words, "# Run with the papers' own settings\n", *reproduced(), "# Scaled down\n", *scaled_down]
    (HERE / "index.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
