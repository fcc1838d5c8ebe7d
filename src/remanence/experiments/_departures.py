"""How a cell departs from the paper: its settings one by one, and its budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from remanence.experiments._experiment import Experiment
from remanence.experiments._work import Work
from remanence.rl import PolicyConfig
from remanence.runs import flat_table, plain
from remanence.train import ACCURACY_REACHED

WATCHED = ("seed", "imports", "label", "budget", "evaluation", "frames", "threads", "save_every")
"""Settings, or tables of them, on which nothing depends that a run learns; the budget is compared by itself."""
WATCHED_IN_LOOP = ("threads", "device", "log_every", "save_every")
DEFAULT = "default"


@dataclass(frozen=True)
class Paper:
    """What the paper does in a cell.

    Args:
        work: with the paper's settings; None where the paper has no such cell.

    Example:
        >>> Paper(None).unit
        ''
    """

    work: Work | None

    @property
    def settings(self) -> dict[str, Any]:
        """All settings of the work by their dotted names."""
        return {} if self.work is None else flat_settings(self.work.to_dict())

    @property
    def unit(self) -> str:
        """Of its budget: frames, passes over the data, or updates; empty where nothing is trained."""
        config = None if self.work is None else self.work.config
        if config is None:
            return ""
        if isinstance(config, PolicyConfig):
            return "frames"
        return "updates" if config.budget.epochs is None else "passes"

    @property
    def budget(self) -> float:
        """How much it trains, in its unit."""
        if self.work is None or self.work.config is None:
            return 0.0
        return _budget(asdict(self.work.config), self.unit) or 0.0

    def spent(self, cell: Mapping[str, Any]) -> float | None:
        """How much of it a stored cell had; None where the two are counted in different units.

        Args:
            cell: as a record keeps it.
        """
        config = cell["work"]["config"]
        if not self.unit or config is None or self.work is None:
            return None
        if self.has_budget(config) and cell["reason"] != ACCURACY_REACHED:
            return self.budget
        if self.unit == "updates":
            return cell["updates"]
        own = _budget(config, self.unit)
        return None if own is None else own * cell["updates"] / (cell["budget"] or cell["updates"])

    def has_budget(self, config: Mapping[str, Any] | None) -> bool:
        """Whether a configuration ends as the paper's does; what is only measured always does.

        Args:
            config: plain values, as a record keeps them.
        """
        if config is None or self.work is None or self.work.config is None:
            return True
        printed = plain(asdict(self.work.config))
        return all(config.get(name) == printed.get(name) for name in ("budget", "frames"))


def _budget(config: Mapping[str, Any], unit: str) -> float | None:
    if unit == "frames":
        return config["frames"]
    return config["budget"]["epochs" if unit == "passes" else "updates"]


def paper_at(experiment: Experiment, place: Mapping[str, Any]) -> Paper:
    """What the paper does at a place, also at one that its table does not have, as far as the declaration goes.

    Args:
        experiment: the table or figure.
        place: of a cell.
    """
    try:
        return Paper(experiment.work("paper", place))
    except (KeyError, ValueError):
        return Paper(None)


def departures_of(work: Mapping[str, Any], paper: Paper) -> tuple[str, ...]:
    """Settings that are not the paper's, in words.

    Args:
        work: of a stored cell.
        paper: what the paper does there.

    Example:
        >>> departures_of({"kind": "measurement", "config": None, "measures": []}, Paper(None))
        ('not in the paper',)
    """
    if paper.work is None:
        return ("not in the paper",)
    own = flat_settings(work)
    printed = paper.settings
    keys = [key for key in (*own, *(key for key in printed if key not in own)) if _counts(key, own, printed)]
    found = [_words(key, own.get(key, DEFAULT), printed.get(key, DEFAULT)) for key in keys]
    if paper.unit == "passes" and own["budget.epochs"] is None:
        found.append(f"{own['budget.updates']:,} updates for {paper.budget:g} passes")
    return tuple(words for words in found if words)


def flat_settings(work: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted names; where nothing is trained, those of what is measured.

    Args:
        work: plain values, as :meth:`Work.to_dict` gives them.

    Example:
        >>> flat_settings({"config": {"loop": {"clip_norm": 1.0}}, "measures": []})
        {'loop.clip_norm': 1.0}
    """
    tables = work["config"] or {measure["name"]: measure["settings"] for measure in work["measures"]}
    return flat_table(plain(tables))


def _counts(key: str, own: Mapping[str, Any], printed: Mapping[str, Any]) -> bool:
    table, _, name = key.partition(".")
    if table in WATCHED or (table == "loop" and name in WATCHED_IN_LOOP):
        return False
    if key not in own or key not in printed:
        return ".options." in key  # elsewhere a setting that one of them has no word for yet
    return table != "curriculum" or name == "start"


def _words(key: str, own: Any, printed: Any) -> str:
    if own == printed:
        return ""
    if key == "curriculum.start" and printed is None:
        return "short sequences first"
    return f"{key.removesuffix('.name').rpartition('.')[2]} {_shown(own)} for {_shown(printed)}"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value)
