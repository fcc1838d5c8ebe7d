"""Writes the tables and the pictures of docs/kv.md from the records that ``python -m benchmarks.kv`` makes.

``python docs/kv/make.py``; it measures nothing. The page has the tables between its marks ``<!-- loss -->`` and
``<!-- end of loss -->``, and so on.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from remanence.figures import Axis, Curve, Figure, length_axis, looks, to_svg
from remanence.kv import SCREENS, CacheComparison, CacheScore

HERE = Path(__file__).parent
PAGE = HERE.parent / "kv.md"
MODEL = "SmolLM2-135M-Instruct"
TEXTS = {
    "wikitext-2/test.txt": "WikiText-2",
    "sequences/war_and_peace.txt": "War and Peace",
    "sequences/tinyshakespeare.txt": "Shakespeare",
}
NAMES = {"full": "full cache", "window": "`window` (StreamingLLM)", "tova": "`tova`", "h2o": "`h2o`"}
NAMES |= {name: f"`{name}`" for name in ("attention", "value", "mean")}
PRESSES = ("TOVAPress", "KnormPress", "KeyDiffPress")
SINKS = {"attention": 0, "value": 0, "h2o": 0, "tova": 0, "mean": 4}
"""Sinks that a screen has by default; `benchmarks.kv sinks` measures the other number, at one budget."""
SINKS_AT = 256

Line = dict[str, Any]


def records(name: str) -> list[Line]:
    path = HERE / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def markdown(rows: list[list[str]]) -> str:
    head, *body = rows
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *body])


def comparison(text: str, lines: list[Line]) -> CacheComparison | None:
    """What was measured on one text, None before the full cache and one screen are done."""
    mine = [line for line in lines if line["text"] == text]
    scores = [CacheScore(*(line[name] for name in ("policy", "budget", "loss", "nbytes"))) for line in mine]
    full = [score for score in scores if score.policy == "full"]
    screened = tuple(score for score in scores if score.policy != "full")
    if not full or not screened:
        return None
    return CacheComparison(MODEL, TEXTS[text], mine[0]["tokens"], mine[0]["first"], full[0], screened)


def loss_table(found: list[CacheComparison]) -> str:
    """A row for each text and budget, a column for each cache."""
    policies = [policy for policy in NAMES if policy == "full" or policy in SCREENS]
    rows = [["text", "keys", *(NAMES[policy].split(" (")[0] for policy in policies)]]
    for one in found:
        for budget in sorted({score.budget for score in one.screened if score.policy in SCREENS}):
            rows.append([one.text, f"{budget:,}", *(loss(one, policy, budget) for policy in policies)])
    return markdown(rows)


def sinks_table(found: list[CacheComparison]) -> str:
    """A row for each screen, for each text that was read with both a column without sinks and one with four."""
    found = [one for one in found if any(score.policy == "mean, 0 sinks" for score in one.screened)]
    head = ["screen"]
    for one in found:
        head += [f"{one.text}, 0 sinks", f"{one.text}, 4 sinks"]
    rows = [head]
    for screen, by_default in SINKS.items():
        names = {0: f"{screen}, 0 sinks", 4: f"{screen}, 4 sinks", by_default: screen}
        numbers = [loss(one, names[sinks], SINKS_AT) for one in found for sinks in (0, 4)]
        rows.append([NAMES[screen], *numbers])
    return markdown(rows)


def press_table(found: list[CacheComparison]) -> str:
    """A row for each press and number of keys; the screens that come next to it stand in the table of losses."""
    rows = [["press", "text", "keys", "loss"]]
    for press in PRESSES:
        for one in found:
            mine = sorted((score.budget, score.loss) for score in one.screened if score.policy == press)
            rows += [[f"`{press}`", one.text, f"{budget:,}", f"{loss:.3f}"] for budget, loss in mine]
    return markdown(rows)


def loss(found: CacheComparison, policy: str, budget: int) -> str:
    """One number, nothing if it was not measured."""
    if policy == "full":
        return f"{found.full.loss:.3f}"
    return next((f"{s.loss:.3f}" for s in found.screened if (s.policy, s.budget) == (policy, budget)), "")


def speed_table(lines: list[Line]) -> str:
    """A row for each length: times of every cache, and the sizes."""
    policies = list(dict.fromkeys(line["policy"] for line in lines))
    by_place = {(line["policy"], line["length"]): line for line in lines}
    head = ["tokens seen", *(f"{NAMES[policy].split(' (')[0]}, ms" for policy in policies), "full, MB", "bounded, MB"]
    rows = []
    for length in sorted({line["length"] for line in lines}):
        times = [f"{by_place[policy, length]['ms']:.0f}" for policy in policies]
        sizes = [f"{by_place[policy, length]['nbytes'] / 1e6:.0f}" for policy in (policies[0], policies[-1])]
        rows.append([f"{length:,}", *times, *sizes])
    return markdown([head, *rows])


def speed_figures(lines: list[Line]) -> list[Figure]:
    lengths = sorted({line["length"] for line in lines})
    axis = length_axis("tokens seen", lengths)
    policies = list(dict.fromkeys(line["policy"] for line in lines))
    styles = looks(policies)

    def curves(field: str, unit: float, drawn: list[str]) -> tuple[Curve, ...]:
        heights = {policy: [line[field] / unit for line in lines if line["policy"] == policy] for policy in drawn}
        return tuple(Curve(policy, lengths, heights[policy], "both", styles[policy]) for policy in drawn)

    times = curves("ms", 1, policies)
    sizes = curves("nbytes", 1e6, [policies[0], policies[-1]])
    return [
        Figure("Milliseconds a token", "Processor time of one more token.", times, axis, from_zero("ms", times)),
        Figure("Size of the cache", "Bytes allocated.", sizes, axis, from_zero("MB", sizes)),
    ]


def from_zero(title: str, curves: tuple[Curve, ...]) -> Axis:
    return Axis(title, bounds=(0.0, 1.05 * max(max(curve.y) for curve in curves)))


def passkey_table(lines: list[Line]) -> str:
    """A row for each policy, a column for each budget."""
    screened = [line for line in lines if line["policy"] != "full"]
    columns = sorted({(line["share"], line["budget"]) for line in screened})
    right = {(line["policy"], line["share"]): f"{line['right']} of {line['of']}" for line in lines}
    head = ["cache", *(f"{budget} keys ({100 * share:.0f} %)" for share, budget in columns)]
    measured = {line["policy"] for line in screened}
    rows = [[NAMES["full"], *(right["full", 1.0] for _ in columns)]]
    for policy in (policy for policy in NAMES if policy in measured):
        rows.append([NAMES[policy], *(right.get((policy, share), "") for share, _ in columns)])
    return markdown([head, *rows])


def by_default(found: CacheComparison) -> CacheComparison:
    """What the picture shows: the screens as they come."""
    return replace(found, screened=tuple(score for score in found.screened if score.policy in SCREENS))


def put(page: str, name: str, table: str) -> str:
    """The page with a table between its marks."""
    found = re.compile(f"(<!-- {name} -->\n).*(<!-- end of {name} -->)", re.DOTALL)
    if not found.search(page):
        raise SystemExit(f"{PAGE.name} has no place for the table {name!r}")
    return found.sub(lambda marks: f"{marks[1]}\n{table}\n\n{marks[2]}", page)


def main() -> None:
    """Writes what there are records for."""
    page = PAGE.read_text(encoding="utf-8")
    losses, speed, passkey = map(records, ("loss", "speed", "passkey"))
    found = [one for text in TEXTS if (one := comparison(text, losses))]
    if found:
        page = put(page, "loss", loss_table(found))
        page = put(page, "sinks", sinks_table(found))
        page = put(page, "presses", press_table(found))
        drawn = [one for one in map(by_default, found) if len({score.budget for score in one.screened}) > 1]
        draw("loss", [figure for one in drawn for figure in one.figures()])
    if speed:
        page = put(page, "speed", speed_table(speed))
        draw("speed", speed_figures(speed))
    if passkey:
        page = put(page, "passkey", passkey_table(passkey))
    PAGE.write_text(page, encoding="utf-8")


def draw(name: str, figures: list[Figure]) -> None:
    (HERE / f"{name}.svg").write_text(to_svg(*figures), encoding="utf-8")


if __name__ == "__main__":
    main()
