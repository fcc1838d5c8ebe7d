"""What a table or a figure is: rows and columns, printed numbers, settings with their sources, and three scales."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from remanence._validate import message, one_of
from remanence._wording import bracketed
from remanence.experiments._work import Measure, Work, make_config
from remanence.runs import Settings
from remanence.train import RunConfig

Kind = Literal["training", "policy", "measurement"]
Place = Settings
"""Where a cell stands, such as ``{"model": "RelRNN", "length": 100, "seed": 0}``."""
Axes = Mapping[str, tuple[Any, ...]]
"""Values of the axes by their names, such as ``{"model": ("LSTM", "RelRNN")}``."""
Key = tuple[Any, ...]
"""Values of the axes in their order, which name a cell or, with the name of a reading, one of its numbers."""

OUT_OF_MEMORY = "OOM"


@dataclass(frozen=True)
class Setting:
    """One setting and where it stands.

    Args:
        key: as in a configuration, such as ``"optimiser.learning_rate"``.
        value: what it is.
        source: table of the document, the authors' code, or "ours" where both are silent.

    Example:
        >>> Setting("optimiser.name", "adam", "Table 6").source
        'Table 6'
    """

    key: str
    value: Any
    source: str


@dataclass(frozen=True)
class Departure:
    """What a smaller scale has in place of the document's setting.

    Args:
        key: of the configuration, or ``"measure:NAME.KEY"`` of a measurement.
        value: at this scale.
        paper: what the document has, in words.
        where: only at these places, such as ``{"model": "GORU"}``; everywhere if empty.

    Example:
        >>> Departure("budget.updates", 6000, "200,000 updates").words
        'budget.updates = 6000 (the document: 200,000 updates)'
    """

    key: str
    value: Any
    paper: str
    where: Place = field(default_factory=dict)

    @property
    def words(self) -> str:
        """For a list of departures."""
        places = "".join(f", {name} {value}" for name, value in self.where.items())
        return f"{self.key} = {self.value}{places} (the document: {self.paper})"


@dataclass(frozen=True)
class Scale:
    """How much of an experiment is run.

    Args:
        departures: from the document, each named.
        axes: values that are run, where they are not all of the document's.
        seeds: default number of runs per cell.

    Example:
        >>> Scale(axes={"length": (100,)}).seeds
        1
    """

    departures: tuple[Departure, ...] = ()
    axes: Axes = field(default_factory=dict)
    seeds: int = 1


@dataclass(frozen=True)
class Recipe:
    """What fills one cell, as printed.

    Args:
        kind: a training run, a run of a policy, or a measurement without either.
        settings: of the run, with their sources.
        measures: what is measured once it is done.

    Example:
        >>> Recipe("measurement", (), (Measure("estimator", {"exponent": 0.4}),)).kind
        'measurement'
    """

    kind: Kind
    settings: tuple[Setting, ...] = ()
    measures: tuple[Measure, ...] = ()


Fills = Callable[[Place], Recipe | None]
"""What fills the cell at a place; None where the document has none."""


@dataclass(frozen=True)
class Reading:
    """A number that a table shows of a cell.

    Args:
        name: of its column, or of what it is.
        measure: which of the cell's measurements has it; ``"a|b"`` takes the one that the cell has.
        path: keys that lead to it there.
        unit: ``"%"`` multiplies by a hundred.
        validation: key of a validation that stands for it while a cell is unfinished.
        where: only of these cells.

    Example:
        >>> Reading("accuracy", "answers", ("100", "accuracy"), "%").path
        ('100', 'accuracy')
    """

    name: str
    measure: str
    path: tuple[str, ...]
    unit: str = ""
    validation: str | None = None
    where: Place = field(default_factory=dict)

    def path_at(self, place: Place) -> tuple[str, ...]:
        """The path with the values of a place in it: ``"{length}"`` stands for the place's length."""
        return tuple(part.format(**place) for part in self.path)


@dataclass(frozen=True)
class Curve:
    """A line that a figure draws of a cell.

    Args:
        name: what it is.
        source: ``"validation"`` or ``"train"``, lines of the run, or the name of a measurement.
        x: key, or keys separated by dots, of the abscissa.
        y: of the ordinate.
        scale: of the ordinate, ``"linear"`` or ``"log"``.

    Example:
        >>> Curve("validation accuracy", "validation", "update", "accuracy").y
        'accuracy'
    """

    name: str
    source: str
    x: str
    y: str
    scale: Literal["linear", "log"] = "linear"


@dataclass(frozen=True)
class PrintedNumber:
    """One number of a document.

    Args:
        value: as printed, without the unit; None where it says that the model did not fit into memory.
        place: table or figure.

    Example:
        >>> PrintedNumber(41.0, "Table 2").value
        41.0
    """

    value: float | None
    place: str

    @classmethod
    def of(cls, number: float | str, place: str) -> PrintedNumber:
        """A number of a table, or its word for a model that did not fit into memory."""
        if isinstance(number, str):
            return cls(None, place)
        return cls(number, place)


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a document.

    Args:
        id: such as ``"kerg2020/table-2"``.
        title: what it shows.
        axes: names and values of what spans it, as the document has them; the first one gives the rows.
        recipe: what fills the cell at a place; None where the document has none.
        smoke: seconds of everything, to see that it runs.
        laptop: hours on two cores.
        paper: as printed; only it may say that a printed number fails.
        readings: numbers shown of a cell.
        curves: lines shown of a cell.
        printed: numbers of the document, by the values of the axes and the name of the reading.
        needs: data sets and packages that a machine must have.
        note: what a reader must know.
        shows_cells_of: tables whose stored cells it shows, by id, with what their places lack to be places of its own.
        document_recipe: what the document does where ``recipe`` changes it on purpose; None where both are one.

    Example:
        >>> from remanence.experiments import find_experiment
        >>> find_experiment("kerg2020/table-2").axes["length"]
        (100, 300, 500, 1000, 2000)
    """

    id: str
    title: str
    axes: Axes
    recipe: Fills
    smoke: Scale
    laptop: Scale = Scale()
    paper: Scale = Scale()
    readings: tuple[Reading, ...] = ()
    curves: tuple[Curve, ...] = ()
    printed: Mapping[Key, PrintedNumber] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    note: str = ""
    shows_cells_of: Mapping[str, Place] = field(default_factory=dict)
    document_recipe: Fills | None = None

    def scale(self, name: str) -> Scale:
        """``smoke``, ``laptop`` or ``paper``."""
        scales = {"smoke": self.smoke, "laptop": self.laptop, "paper": self.paper}
        return scales[one_of("scale", name, scales)]

    def axes_at(self, scale: str) -> Axes:
        """Values that are run at a scale."""
        return {**self.axes, **self.scale(scale).axes}

    def places(self, scale: str, seeds: Sequence[int] | None = None, axes: Axes | None = None) -> Iterator[Place]:
        """All places at a scale, the first seed of everything first.

        Args:
            scale: one of the scales.
            seeds: to run; None takes as many as the scale has, from 0.
            axes: values to run; None takes those of the scale.
        """
        axes = axes or self.axes_at(scale)
        if seeds is None:
            seeds = range(self.scale(scale).seeds)
        for seed in seeds:
            for values in itertools.product(*axes.values()):
                place = dict(zip(axes, values, strict=True))
                if self.recipe(place) is not None:
                    yield {**place, "seed": seed}

    def has_place(self, place: Place) -> bool:
        """Whether the document has a cell there."""
        return all(place[axis] in values for axis, values in self.axes.items())

    def recipe_at(self, scale: str, place: Place) -> Recipe:
        """What fills a cell at a scale: the document's recipe with the departures of the scale."""
        recipe = self.recipe(place)
        if recipe is None:
            raise ValueError(message("place", "be a cell of the document", dict(place)))
        for departure in self.scale(scale).departures:
            if _matches(departure.where, place):
                recipe = _departed(recipe, departure)
        return recipe

    def work(self, scale: str, place: Place) -> Work:
        """What must be done for a cell: settings alone, so that cells of several tables may be one."""
        recipe = self.recipe_at(scale, place)
        seed = place.get("seed", 0)
        settings = {setting.key: setting.value for setting in recipe.settings}
        config = make_config(recipe.kind, settings, seed)
        if isinstance(config, RunConfig):
            config = replace(config, label=_label(config.model.name, place))
        return Work(config, tuple(measure.seeded(seed) for measure in recipe.measures))

    def readings_at(self, place: Place) -> list[Reading]:
        """The numbers that a table shows of a cell."""
        return [reading for reading in self.readings if _matches(reading.where, place)]

    def printed_at(self, place: Place, reading: str) -> PrintedNumber | None:
        """What the document prints for a number of a cell, None if nothing."""
        return self.printed.get((*(place[name] for name in self.axes), reading))


def _label(model: str, place: Place) -> str:
    """What a run is called: its model, and where it stands in the table, but for length and seed."""
    parts = [f"{name} {value}" for name, value in place.items() if name not in ("model", "task", "length", "seed")]
    return bracketed(str(place.get("model", model)), ", ".join(parts))


def without_seed(place: Place) -> Place:
    """What the runs of all seeds at a place have in common.

    Example:
        >>> without_seed({"model": "LSTM", "seed": 0})
        {'model': 'LSTM'}
    """
    return {name: value for name, value in place.items() if name != "seed"}


def _matches(where: Place, place: Place) -> bool:
    return all(place.get(name) == value for name, value in where.items())


def _departed(recipe: Recipe, departure: Departure) -> Recipe:
    if departure.key.startswith("measure:"):
        name, _, key = departure.key.removeprefix("measure:").partition(".")
        measures = list(recipe.measures)
        for index, measure in enumerate(measures):
            if measure.name == name:
                measures[index] = measure.with_setting(key, departure.value)
        return replace(recipe, measures=tuple(measures))
    kept = tuple(setting for setting in recipe.settings if setting.key != departure.key)
    return replace(recipe, settings=(*kept, Setting(departure.key, departure.value, "this scale")))
