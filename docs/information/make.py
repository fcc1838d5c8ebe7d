"""Writes the pages about stored experiments and their pictures: ``python docs/information/make.py``, in a second.

``real_data.py`` beside it measures the real data anew.
"""

import math
from pathlib import Path
from statistics import mean

from picture import draw
from words import BINARY, ESTIMATOR, FAR, HELD_OUT, LANGUAGE_MODEL, WIKITEXT, WIKITEXT_WORDS

from remanence.experiments import stored_cells

HERE = Path(__file__).parent
EQUAL = ("RNN 66", "LSTM 32", "SABLSTM 32", "RelLSTM 26", "MemLSTM 26", "Transformer 16")
HEAD = "{what}. Measured on {machine}, with an earlier version. `{command}` runs it with the paper's settings."
WHAT = {
    "binary": "Information in samples of models of several sizes that learnt bits with I(lag) = 0.1 lag^-0.4",
    "far": "Samples of 2,048 bits from models that were trained on sequences of 256",
    "estimator": "Exponent fitted to sequences of bits with I(lag) = 0.1 lag^-gamma, for gamma from 0.1 to 1",
    "held-out": "Information in validation and test sets, compared with equally long stretches of the training set",
    "characters": "Information in a million characters sampled from models that learnt WikiText-2 by characters",
    "words": "Information in 200,000 words sampled from models that learnt WikiText-2 by words",
    "language-model": "Information in texts sampled from the pretrained SmolLM2-135M, and in WikiText-2",
}
BOTH = ("characters", "words")
PLAINER = ("until nothing is gained", "until the loss stops improving")
LONG = {"RNN": "RNN 66", "LSTM": "LSTM 32", "SABLSTM": "SABLSTM 32", "RelLSTM": "RelLSTM 26"}
TEXTS = {"ptb": "Penn Treebank", "wikitext-2": "WikiText-2", "text8": "text8"}


def said(id, what):
    """What was run, how, and what is smaller than in the document."""
    record = stored_cells(id)[0].record
    scaled_down = record.scaled_down.replace("the document", "the paper").replace(*PLAINER)
    if what in BOTH:  # one record tells of both pages, the second part with a capital letter
        first, _, second = scaled_down.partition("; The ")
        scaled_down = {"characters": first, "words": f"The {second}"}[what]
    smaller = f"\n\n*Scaled down.* {scaled_down}." if scaled_down else ""
    return HEAD.format(what=WHAT[what], machine=record.machine, command=record.command) + smaller + "\n"


def label(cell):
    """How tables name a model: kind, width, depth, and what is special about it."""
    place = cell.place
    kind = (cell.values["work"]["config"] or {"model": {"name": "data"}})["model"]["name"]
    depth = "" if place.get("depth", 1) == 1 else f"x{place['depth']}"
    special = "".join(f" {name} {place[name]}" for name in ("context", "memory") if name in place)
    return f"{kind} {place['width']}{depth}{special}"


def found(cell, fits):
    """What was measured of a cell: its curve with the laws of one range, and the facts beside it."""
    values = cell.result("sampled_information") or cell.result("data_information")
    score = cell.result("fresh_score") or cell.state.validation
    loss = {"validation": score["loss"]} if "loss" in score else {}
    laws = values["fits"]
    curve = {**values["curve"], "fits": laws[fits], "best": laws[fits].get("best")}
    return {**values, **laws, **loss, "curve": curve}


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
    cells = [*stored_cells("shen2019/figure-1"), *stored_cells("shen2019/figure-9")]
    trained = [cell for cell in cells if cell.values["work"]["config"] is not None]
    models = [{**found(cell, "all"), "label": label(cell)} for cell in trained]
    labels = list(dict.fromkeys(model["label"] for model in models))
    (data,) = [found(cell, "all") for cell in cells if "rows" in cell.place]
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
    text = BINARY.format(said=said("shen2019/figure-1", "binary"), table=TABLE + "\n".join(rows), far=far(left), xi=xi)
    (HERE / "binary.md").write_text(text, encoding="utf-8")


def far(left):
    cells = stored_cells("beyond/long-bits")
    curves = {LONG.get(cell.place["model"], "data"): found(cell, "all")["curve"] for cell in cells}
    curves = {"data": curves["data"], **curves}
    shown = {name: points(curve) for name, curve in curves.items()}
    draw(HERE / "binary_far.svg", shown, "lag", "nats", dashed=("data",))
    lines = []
    for name, curve in curves.items():
        fits = curve["fits"]
        values = " | ".join(f"{near(curve, lag):.2g}" for lag in (50, 100, 200, 300, 500, 900))
        lines.append(
            f"| {name} | {curve['best']} | {fits['exponential']['xi']:.0f} | {fits['power']['gamma']:.2f} | {values} |"
        )
    return FAR.format(said=said("beyond/long-bits", "far"), rows="\n".join(lines), left=left)


def estimator():
    fitted = [cell.result("estimator") for cell in stored_cells("shen2019/figure-5")]
    exponents = [entry["exponent"] for entry in fitted]
    gammas = [entry["fitted"] for entry in fitted]
    curves = {
        f"gamma {entry['exponent']:g}": points(entry["curve"]) for entry in fitted if entry["exponent"] * 10 % 3 == 1
    }
    draw(HERE / "estimator.svg", curves, "lag", "nats")
    both = {"fitted": (exponents, gammas), "true": (exponents, exponents)}
    draw(HERE / "estimator_fits.svg", both, "true gamma", "fitted", log_x=False, log_y=False, dashed=("true",))
    worst = max(abs(gamma - exponent) for gamma, exponent in zip(gammas, exponents, strict=True))
    rows = "\n".join(f"| {a:g} | {b:.4f} | {b - a:+.4f} |" for a, b in zip(exponents, gammas, strict=True))
    text = ESTIMATOR.format(said=said("shen2019/figure-5", "estimator"), rows=rows, worst=worst)
    (HERE / "estimator.md").write_text(text, encoding="utf-8")


def held_out():
    cells = stored_cells("shen2019/figure-6")
    texts = {f"{TEXTS[c.place['text']]}, {c.place['part']}": c.result("held_out_information") for c in cells}
    lags = next(iter(texts.values()))["lags"]
    rows = []
    for name, part in sorted(texts.items()):
        ratios = [
            part["values"][at] / part["mean"][at] for at in (0, nearest(lags, 10), nearest(lags, 100), len(lags) - 1)
        ]
        shown = " | ".join(f"{ratio:.2f}" for ratio in ratios)
        counts = f"{part['stretches']} | {part['symbols']:,} | {part['outside']} | {part['outside_by_chance']:.1f}"
        rows.append(f"| {name} | {counts} | {shown} |")
    part = texts["WikiText-2, validation"]
    curves = {"validation": (lags, part["values"]), "training, mean": (lags, part["mean"])}
    curves |= {"training, least": (lags, part["least"]), "training, greatest": (lags, part["greatest"])}
    draw(HERE / "held_out.svg", curves, "lag", "nats", dashed=("training, least", "training, greatest"))
    text = HELD_OUT.format(said=said("shen2019/figure-6", "held-out"), rows="\n".join(rows), lags=len(lags))
    (HERE / "held_out.md").write_text(text, encoding="utf-8")


def nearest(lags, lag):
    return min(range(len(lags)), key=lambda at: abs(lags[at] - lag))


def wikitext2():
    text_page("characters", "wikitext2", WIKITEXT, lambda loss: f"{loss / math.log(2):.2f}")


def wikitext2_words():
    parts = text_page("words", "wikitext2_words", WIKITEXT_WORDS, lambda loss: f"{math.exp(loss):.0f}")
    curves = {name: excess(part["words"]) for name, part in parts.items()}
    draw(HERE / "wikitext2_words_words.svg", curves, "lag in words", "nats", dashed=("training", "validation"))


def text_page(kind, stem, words, shown):
    """A page about models of a text; ``shown`` words their validation loss."""
    cells = [*stored_cells("shen2019/figure-2"), *stored_cells("shen2019/figure-3")]
    parts = {}
    for cell in [cell for cell in cells if cell.place["data"] == kind]:
        is_data = cell.place["width"] == "data"
        parts[cell.place.get("split", "training") if is_data else label(cell)] = found(cell, "far")
    models = {name: part for name, part in parts.items() if "sample" in part}
    curves = {name: excess(part["curve"]) for name, part in parts.items()}
    draw(HERE / f"{stem}.svg", curves, "lag", "nats", dashed=("training", "validation"))
    rows = "\n".join(text_row(name, part, shown) for name, part in parts.items())
    samples = "\n".join(f"*{name}*\n\n```text\n{one['sample'].strip()}\n```\n" for name, one in models.items())
    text = words.format(said=said("shen2019/figure-2", kind), rows=rows, samples=samples)
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
    (cell,) = stored_cells("shen2019/figure-3d")
    values = dict(cell.result("language_model"))
    sample = values.pop("sample").strip()
    names = {"model": cell.place["model"], "data": "WikiText-2, training"}
    sources = {name.replace(name.split(",")[0], names[name.split(",")[0]]): one for name, one in values.items()}
    curves = {name: excess(source["curve"]) for name, source in sources.items()}
    draw(HERE / "language_model.svg", curves, "lag", "nats", dashed=[name for name in curves if "shuffled" in name])
    rows = "\n".join(language_row(name, source) for name, source in sources.items())
    text = LANGUAGE_MODEL.format(said=said("shen2019/figure-3d", "language-model"), rows=rows, sample=sample)
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
    for write in (binary, estimator, held_out, wikitext2, wikitext2_words, language_model):
        write()


if __name__ == "__main__":
    main()
