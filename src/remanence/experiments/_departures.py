"""How a cell departs from the paper: its settings one by one, and its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from remanence.experiments._experiment import Departure, Experiment, Place
from remanence.experiments._work import Work
from remanence.rl import PolicyConfig
from remanence.runs import Settings, Values, flat_table, plain
from remanence.train import ACCURACY_REACHED, LOSS_REACHED, RunConfig

WATCHED = ("seed", "imports", "label", "budget", "evaluation", "frames", "threads", "save_every")
"""Settings, or tables of them, on which nothing depends that a run learns; the budget is compared by itself."""
WATCHED_IN_LOOP = ("threads", "device", "log_every", "save_every")
DEFAULT = "default"


@dataclass(frozen=True)
class PaperWork:
    """What the paper does in a cell: its work, or None where the paper has no such cell."""

    work: Work | None

    @property
    def config(self) -> RunConfig | PolicyConfig | None:
        """Of its run; None where nothing is trained."""
        return self.work and self.work.config

    @property
    def unit(self) -> str:
        """Of its budget: frames, passes over the data, or updates; empty where nothing is trained."""
        if self.config is None:
            return ""
        if isinstance(self.config, PolicyConfig):
            return "frames"
        if self.config.budget.epochs is None:
            return "updates"
        return "passes"

    @property
    def budget(self) -> float:
        """How much it trains, in its unit."""
        if self.config is None:
            return 0.0
        return _budget(asdict(self.config), self.unit) or 0.0

    def spent(self, cell: Settings) -> float | None:
        """How much of it a stored cell had; None where the two are counted in different units."""
        config = cell["work"]["config"]
        if self.config is None or config is None:
            return None
        if self.has_budget(config) and cell["reason"] not in (ACCURACY_REACHED, LOSS_REACHED):
            return self.budget
        if self.unit == "updates":
            return cell["updates"]
        own = _budget(config, self.unit)
        if own is None:
            return None
        return own * cell["updates"] / (cell["budget"] or cell["updates"])

    def has_budget(self, config: Settings | None) -> bool:
        """Whether a configuration ends as the paper's does; what is only measured always does."""
        if config is None or self.config is None:
            return True
        printed = plain(asdict(self.config))
        if config.get("frames") != printed.get("frames"):
            return False
        own = config.get("budget") or {}
        paper = printed.get("budget") or {}
        # A record may be older than a setting of today's budget, and then has no word for it.
        return all(own[name] == paper[name] for name in own.keys() & paper.keys())


def _budget(config: Settings, unit: str) -> float | None:
    if unit == "frames":
        return config["frames"]
    keys = {"passes": "epochs", "updates": "updates"}
    return config["budget"][keys[unit]]


def paper_at(experiment: Experiment, place: Place) -> PaperWork:
    """What the paper does at a place, also at one that its table does not have, as far as the declaration goes."""
    document = replace(experiment, recipe=experiment.document_recipe or experiment.recipe)
    try:
        return PaperWork(document.work("paper", place))
    except (KeyError, ValueError):  # no such cell, or a value for which the recipe has no settings
        return PaperWork(None)


def departures_of(work: Settings, paper: PaperWork) -> tuple[str, ...]:
    """Settings that are not the paper's, in words.

    Example:
        >>> departures_of({"kind": "measurement", "config": None, "measures": []}, PaperWork(None))
        ('not in the paper',)
    """
    if paper.work is None:
        return ("not in the paper",)
    own = flat_settings(work)
    printed = flat_settings(paper.work.to_dict())
    keys = [key for key in (*own, *(key for key in printed if key not in own)) if _counts(key, own, printed)]
    found = [_words(key, own.get(key, DEFAULT), printed.get(key, DEFAULT)) for key in keys]
    if paper.unit == "passes" and own["budget.epochs"] is None:
        found.append(f"{own['budget.updates']:,} updates for {paper.budget:g} passes")
    return tuple(words for words in found if words)


def flat_settings(work: Settings) -> Values:
    """Settings by dotted names; where nothing is trained, those of what is measured.

    Example:
        >>> flat_settings({"config": {"loop": {"clip_norm": 1.0}}, "measures": []})
        {'loop.clip_norm': 1.0}
    """
    tables = work["config"] or {measure["name"]: measure["settings"] for measure in work["measures"]}
    return flat_table(plain(tables))


def _counts(key: str, own: Settings, printed: Settings) -> bool:
    table, _, name = key.partition(".")
    if table in WATCHED or (table == "loop" and name in WATCHED_IN_LOOP):
        return False
    if key not in own or key not in printed:
        return ".options." in key  # elsewhere a setting that one of them has no word for yet
    return table != "curriculum" or name == "start"  # whether there is one, and not how it goes


def _words(key: str, own: object, printed: object) -> str:
    if own == printed:
        return ""
    if key == "curriculum.start" and printed is None:
        return "short sequences first"
    return f"{_name(key)} {_shown(own)} for {_shown(printed)}"


def _name(key: str) -> str:
    """Of a setting, as short as it is clear: an option of an option keeps both words, such as ``cuts.truncate``."""
    name = key.removesuffix(".name")
    if ".options." in name:
        return name.rpartition(".options.")[2]
    return name.rpartition(".")[2]


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if value is None:
        return "none"
    return str(value)


def departure_lines(departures: Sequence[Departure]) -> list[str]:
    """The departures of a scale in words; several with one reason on one line.

    Example:
        >>> departure_lines([Departure("budget.updates", 4, "it is a trial"), Departure("seed", 1, "it is a trial")])
        ['budget.updates = 4, seed = 1: it is a trial']
    """
    lines = []
    for reason in dict.fromkeys(one.paper for one in departures):
        group = [one for one in departures if one.paper == reason]
        line = group[0].words
        if len(group) > 1:
            line = f"{', '.join(f'{one.key} = {one.value}' for one in group)}: {reason}"
        lines.append(line)
    return lines
