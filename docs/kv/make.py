"""Writes the table and the picture of docs/kv.md from loss.jsonl, which ``python -m benchmarks.kv loss`` fills.

``python docs/kv/make.py``; it measures nothing.
"""

import json
from pathlib import Path

from remanence.figures import to_svg
from remanence.kv import CacheComparison, CacheScore

HERE = Path(__file__).parent
TEXTS = {
    "wikitext-2/test.txt": "WikiText-2",
    "sequences/war_and_peace.txt": "War and Peace",
    "sequences/tinyshakespeare.txt": "Shakespeare",
}
NAMES = {"full": "full cache", "window": "`window` (StreamingLLM)", "tova": "`tova`", "h2o": "`h2o`"}
NAMES |= {name: f"`{name}`" for name in ("attention", "value", "mean")}


def comparison(text: str, lines: list[dict]) -> CacheComparison | None:
    """What was measured on one text, None before the full cache and one screen are done."""
    mine = [line for line in lines if line["text"] == text]
    scores = [CacheScore(*(line[name] for name in ("policy", "budget", "loss", "nbytes"))) for line in mine]
    full = [score for score in scores if score.policy == "full"]
    screened = tuple(score for score in scores if score.policy != "full")
    if not full or not screened:
        return None
    facts = mine[0]
    return CacheComparison("SmolLM2-135M-Instruct", TEXTS[text], facts["tokens"], facts["first"], full[0], screened)


def table(found: list[CacheComparison]) -> str:
    """Losses: a row for each policy, a column for each text and budget."""
    columns = [(one, budget) for one in found for budget in sorted({score.budget for score in one.screened})]
    head = ["screen", *(f"{one.text}, {budget:,}" for one, budget in columns)]
    rows = [[words, *(loss(one, policy, budget) for one, budget in columns)] for policy, words in NAMES.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])


def loss(found: CacheComparison, policy: str, budget: int) -> str:
    """One number, nothing if it was not measured."""
    if policy == "full":
        return f"{found.full.loss:.3f}"
    return next((f"{s.loss:.3f}" for s in found.screened if (s.policy, s.budget) == (policy, budget)), "")


def main() -> None:
    """Writes both."""
    lines = [json.loads(line) for line in (HERE / "loss.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [one for text in TEXTS if (one := comparison(text, lines))]
    if not found:
        raise SystemExit("loss.jsonl has no text yet with the full cache and a screen")
    (HERE.parent / "_generated" / "kv_loss.md").write_text(table(found) + "\n", encoding="utf-8")
    figures = [figure for one in found for figure in one.figures()]
    (HERE / "loss.svg").write_text(to_svg(*figures), encoding="utf-8")


if __name__ == "__main__":
    main()
