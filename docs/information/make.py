"""Writes the pages about stored experiments and their pictures: ``python docs/information/make.py``, in a second.

``real_data.py`` beside it measures the real data anew.
"""

import math
from pathlib import Path
from statistics import mean

from picture import draw
from remanence.experiments.__main__ import SUCCESSORS
from words import BINARY, ESTIMATOR, FAR, HELD_OUT, LANGUAGE_MODEL, WIKITEXT, WIKITEXT_WORDS

from remanence.experiments import load_stored, stored_names

HERE = Path(__file__).parent
EQUAL = ("RNN 66", "LSTM 32", "SABLSTM 32", "RelLSTM 26", "MemLSTM 26", "Transformer 16")
HEAD = "{what} Made on {machine} by a script of an earlier version; now `remanence reproduce` has {today}."


def said(record):
    """What was run, how, and what is smaller than in the document."""
    scaled_down = (record["scaled_down"] or "").replace("the document", "the paper")
    smaller = f"\n\n*Scaled down.* {scaled_down}" if scaled_down else ""
    return HEAD.format(**record, today=SUCCESSORS[record["command"].split()[3]]) + smaller + "\n"


def points(curve):
    """Lags and estimates above the floor."""
    rows = zip(curve["lags"], curve["values"], curve["floor"], strict=True)
    kept = [(lag, value) for lag, value, floor in rows if value > floor]
    return [lag for lag, _ in kept], [value for _, value in kept]


def spread(values, digits):
    """One number, or the mean of several with their range."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    shown = f"{mean(values):.{digits}f}"
    return shown if len(values) == 1 else f"{shown} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def near(curve, lag):
    """The estimate at the lag nearest to one."""
    return min(zip(curve["lags"], curve["values"], strict=True), key=lambda pair: abs(pair[0] - lag))[1]


def runs_of(models, label):
    return [model for model in models if model["label"] == label]


def row(label, runs):
    """A line of the table of models."""
    curves = [run["curve"] for run in runs]
    laws = "/".join(sorted({curve["best"] for curve in curves}))
    xi = spread([curve["fits"]["exponential"]["xi"] for curve in curves], 0)
    gamma = spread([curve["fits"]["power"]["gamma"] for curve in curves], 3)
    size = f"{runs[0]['parameters']:,}" if "parameters" in runs[0] else "-"
    loss = spread([run.get("validation") for run in runs], 4)
    far = [f"{mean(near(curve, lag) for curve in curves):.4f}" for lag in (10, 100, 200)]
    return f"| {label} | {size} | {len(runs)} | {loss} | {laws} | {xi} | {gamma} | {' | '.join(far)} |"


TABLE = """| model | parameters | runs | validation loss | best law | xi | gamma | I(10) | I(100) | I(200) |
|---|---|---|---|---|---|---|---|---|---|
"""


def binary():
    record = load_stored("information_binary")
    results = record["results"]
    models = results["models"]
    labels = list(dict.fromkeys(model["label"] for model in models))
    data = results["data"]["training set"]
    rows = [row("*data*", [data]), *(row(label, runs_of(models, label)) for label in labels)]
    first = {label: runs_of(models, label)[0]["curve"] for label in labels}
    law = [0.1 * lag**-0.4 for lag in data["curve"]["lags"]]
    exact = {"0.1 lag^-0.4": (data["curve"]["lags"], law)}
    equal = {label: points(first[label]) for label in EQUAL if label in first}
    draw(HERE / "binary.svg", exact | equal, "lag", "nats", dashed=("0.1 lag^-0.4",))
    widths = {label: points(first[label]) for label in labels if label.split()[0] in ("RNN", "LSTM")}
    draw(HERE / "binary_widths.svg", exact | widths, "lag", "nats", log_x=False, dashed=("0.1 lag^-0.4",))
    attention = {label: points(first[label]) for label in labels if label.startswith("Transformer")}
    draw(HERE / "binary_transformers.svg", exact | attention, "lag", "nats", dashed=("0.1 lag^-0.4",))
    xi = {label: mean(run["curve"]["fits"]["exponential"]["xi"] for run in runs_of(models, label)) for label in labels}
    left = {label: mean(near(run["curve"], 200) for run in runs_of(models, label)) for label in labels}
    left = {label: value / near(data["curve"], 200) for label, value in left.items()}
    text = BINARY.format(said=said(record), table=TABLE + "\n".join(rows), far=far(left), xi=xi)
    (HERE / "binary.md").write_text(text, encoding="utf-8")


def far(left):
    if "information_binary-far" not in stored_names():
        return ""
    record = load_stored("information_binary-far")
    models = record["results"]["models"]
    curves = {"data": models["data"], **models}
    shown = {name: points(curve) for name, curve in curves.items()}
    draw(HERE / "binary_far.svg", shown, "lag", "nats", dashed=("data",))
    lines = []
    for name, curve in curves.items():
        fits = curve["fits"]
        values = " | ".join(f"{near(curve, lag):.2g}" for lag in (50, 100, 200, 300, 500, 900))
        lines.append(
            f"| {name} | {curve['best']} | {fits['exponential']['xi']:.0f} | {fits['power']['gamma']:.2f} | {values} |"
        )
    return FAR.format(said=said(record), rows="\n".join(lines), left=left)


def estimator():
    record = load_stored("information_estimator")
    found = record["results"]["exponents"].values()
    exponents = [entry["exponent"] for entry in found]
    gammas = [entry["curve"]["fits"]["power"]["gamma"] for entry in found]
    curves = {
        f"gamma {entry['exponent']:g}": points(entry["curve"]) for entry in found if entry["exponent"] * 10 % 3 == 1
    }
    draw(HERE / "estimator.svg", curves, "lag", "nats")
    fitted = {"fitted": (exponents, gammas), "true": (exponents, exponents)}
    draw(HERE / "estimator_fits.svg", fitted, "true gamma", "fitted", log_x=False, log_y=False, dashed=("true",))
    worst = max(abs(gamma - exponent) for gamma, exponent in zip(gammas, exponents, strict=True))
    rows = "\n".join(f"| {a:g} | {b:.4f} | {b - a:+.4f} |" for a, b in zip(exponents, gammas, strict=True))
    text = ESTIMATOR.format(said=said(record), rows=rows, worst=worst)
    (HERE / "estimator.md").write_text(text, encoding="utf-8")


def held_out():
    record = load_stored("information_held-out")
    lags, texts = record["results"]["lags"], record["results"]["texts"]
    rows = []
    for name, part in sorted(texts.items()):
        ratios = [
            part["values"][at] / part["mean"][at] for at in (0, nearest(lags, 10), nearest(lags, 100), len(lags) - 1)
        ]
        shown = " | ".join(f"{ratio:.2f}" for ratio in ratios)
        counts = f"{part['stretches']} | {part['symbols']:,} | {part['outside']} | {part['outside by chance']:.1f}"
        rows.append(f"| {name} | {counts} | {shown} |")
    part = texts["WikiText-2, validation"]
    curves = {"validation": (lags, part["values"]), "training, mean": (lags, part["mean"])}
    curves |= {"training, least": (lags, part["least"]), "training, greatest": (lags, part["greatest"])}
    draw(HERE / "held_out.svg", curves, "lag", "nats", dashed=("training, least", "training, greatest"))
    text = HELD_OUT.format(said=said(record), rows="\n".join(rows), lags=len(lags))
    (HERE / "held_out.md").write_text(text, encoding="utf-8")


def nearest(lags, lag):
    return min(range(len(lags)), key=lambda at: abs(lags[at] - lag))


def wikitext2():
    text_page("wikitext2", "wikitext2", WIKITEXT, lambda loss: f"{loss / math.log(2):.2f}")


def wikitext2_words():
    parts = text_page("wikitext2-words", "wikitext2_words", WIKITEXT_WORDS, lambda loss: f"{math.exp(loss):.0f}")
    curves = {name: excess(part["words"]) for name, part in parts.items()}
    draw(HERE / "wikitext2_words_words.svg", curves, "lag in words", "nats", dashed=("training", "validation"))


def text_page(name, stem, words, shown):
    """A page about models of a text; ``shown`` words their validation loss."""
    record = load_stored(f"information_{name}")
    results = record["results"]
    parts = {"training": results["data"]["train"], "validation": results["data"]["validation"]}
    parts |= {model["label"]: model for model in results["models"]}
    curves = {name: excess(part["curve"]) for name, part in parts.items()}
    draw(HERE / f"{stem}.svg", curves, "lag", "nats", dashed=("training", "validation"))
    rows = "\n".join(text_row(name, part, shown) for name, part in parts.items())
    samples = "\n".join(f"*{m['label']}*\n\n```text\n{m['sample'].strip()}\n```\n" for m in results["models"])
    text = words.format(said=said(record), rows=rows, samples=samples)
    (HERE / f"{stem}.md").write_text(text, encoding="utf-8")
    return parts


def excess(curve):
    """Lags and estimates less their bias, above the floor."""
    rows = zip(curve["lags"], curve["values"], curve["bias"], curve["floor"], strict=True)
    kept = [(lag, value - bias) for lag, value, bias, floor in rows if value > floor]
    return [lag for lag, _ in kept], [value for _, value in kept]


def text_row(name, part, shown):
    curve, quality = part["curve"], part["quality"]
    size = f"{part['parameters']:,}" if "parameters" in part else "-"
    loss = shown(part["validation"]) if "validation" in part else "-"
    short = part["short"]["exponential"]
    titles = "-" if quality["balanced_titles"] is None else f"{quality['balanced_titles']:.0%} of {quality['titles']}"
    topic = " | ".join(
        "-" if value is None else f"{value:.3f}" for value in (quality["topic"][0], quality["topic"][-1])
    )
    words = f"{quality['valid_words']:.0%}"
    cells = [name, size, loss, less_bias(curve), f"{short['xi']:.2f}", words, titles, topic]
    return f"| {' | '.join(cells)} |"


def less_bias(curve):
    """Estimates less their bias at five lags, as cells."""
    return " | ".join(f"{near(curve, lag) - bias_near(curve, lag):.2g}" for lag in (1, 10, 20, 100, 1000))


def language_model():
    record = load_stored("information_language-model")
    sources = record["results"]["sources"]
    curves = {name: excess(source["curve"]) for name, source in sources.items()}
    draw(HERE / "language_model.svg", curves, "lag", "nats", dashed=[name for name in curves if "shuffled" in name])
    rows = "\n".join(language_row(name, source) for name, source in sources.items())
    sample = record["results"]["sample"].strip()
    text = LANGUAGE_MODEL.format(said=said(record), rows=rows, sample=sample)
    (HERE / "language_model.md").write_text(text, encoding="utf-8")


def language_row(name, source):
    curve = source["curve"]
    fit = curve["fits"]["power"]
    gamma = "-" if fit is None else f"{fit['gamma']:.2f} ({fit['interval'][0]:.2f} to {fit['interval'][1]:.2f})"
    cells = [name, str(source["texts"]), f"{source['characters']:,}", less_bias(curve), gamma, curve["best"] or "-"]
    return f"| {' | '.join(cells)} |"


def bias_near(curve, lag):
    return min(zip(curve["lags"], curve["bias"], strict=True), key=lambda pair: abs(pair[0] - lag))[1]


def main():
    pages = {"binary": binary, "estimator": estimator, "held-out": held_out, "wikitext2": wikitext2}
    pages |= {"wikitext2-words": wikitext2_words, "language-model": language_model}
    for name, write in pages.items():
        if f"information_{name}" in stored_names():
            write()


if __name__ == "__main__":
    main()
