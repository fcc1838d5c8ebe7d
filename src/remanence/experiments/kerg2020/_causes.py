"""Transfer Copy and Denoise once more, with one setting changed where the printed settings miss the printed number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from remanence.experiments._declaring import but, options, told
from remanence.experiments._experiment import Experiment, Key, Place, PrintedNumber, Recipe, Scale, Setting
from remanence.experiments.kerg2020._recall import SHORT_TRANSFER, SMOKE, TABLE_1, TABLE_2

# RelRNN and orth-RNN reach their printed rows, so nothing is changed for them.
MISSED = ("ExpRNN", "MemRNN", "LSTM", "SABLSTM", "RelLSTM")


class _Change(NamedTuple):
    settings: tuple[Setting, ...]
    models: tuple[str, ...] = MISSED
    """Those that it may explain."""


SAB_CHANGES = {
    # SAB's code cuts before the very step whose state is stored: if both are every ten steps, learning reaches no
    # further back than that one step. Cut one step later, it reaches the ten steps since the last stored state.
    "gradient cut after a stored state": _Change(
        options("figure 2 of Ke et al. 2017", truncate="none", cuts={"truncate": 10}), ("SABLSTM",)
    ),
    "states stored every 2 steps": _Change(options("default of SAB's code", every=2), ("SABLSTM",)),
}
TRANSFER_CHANGES = {
    "learning rate 0.001": _Change(told("default of the authors' code", optimiser__learning_rate=1e-3)),
    "RMSprop, learning rate 0.001": _Change(
        told("defaults of the authors' code", optimiser__name="rmsprop", optimiser__learning_rate=1e-3),
        ("MemRNN", "LSTM", "RelLSTM"),
    ),
    "T drawn from 1 to 100": _Change(told("--vari of the authors' code", task__options__shortest=1)),
    "a symbol is one number": _Change(
        told("code of SAB, h-detach and nnRNN, where baselines may come from", task__options__encoding="scalar"),
        ("ExpRNN", "LSTM", "SABLSTM"),
    ),
    **SAB_CHANGES,
}


def _changed(table: Experiment, changes: Mapping[str, _Change], place: Place) -> Recipe | None:
    change, models = changes[place["change"]]
    printed = table.recipe(place)
    if printed is None or place["model"] not in models:
        return None
    as_printed = {setting.key: setting.value for setting in printed.settings}
    if all(as_printed.get(setting.key) == setting.value for setting in change):
        return None
    return replace(printed, settings=but(printed.settings, *change))


def _printed(table: Experiment, changes: Mapping[str, _Change]) -> dict[Key, PrintedNumber]:
    """The table's own numbers beside every change."""
    return {
        (model, change, *rest): number
        for (model, *rest), number in table.printed.items()
        for change, (_, models) in changes.items()
        if model in models
    }


TABLE_1_CAUSES = replace(
    TABLE_1,
    id="kerg2020/table-1-causes",
    title="Transfer Copy with one setting changed: which one explains the printed numbers?",
    axes={"model": MISSED, "change": tuple(TRANSFER_CHANGES)},
    recipe=partial(_changed, TABLE_1, TRANSFER_CHANGES),
    document_recipe=TABLE_1.recipe,
    smoke=Scale(SHORT_TRANSFER, {"model": ("ExpRNN",), "change": ("T drawn from 1 to 100",)}),
    paper=Scale(),
    printed=_printed(TABLE_1, TRANSFER_CHANGES),
    note=f"{TABLE_1.note} Everything but the named setting is as in Table 1; the printed numbers are those of Table 1.",
)

TABLE_2_CAUSES = replace(
    TABLE_2,
    id="kerg2020/table-2-causes",
    title="Denoise with one setting changed: which one explains the printed numbers?",
    axes={"model": ("SABLSTM",), "change": tuple(SAB_CHANGES), "length": TABLE_2.axes["length"]},
    recipe=partial(_changed, TABLE_2, SAB_CHANGES),
    document_recipe=TABLE_2.recipe,
    smoke=Scale(SMOKE, {"change": (next(iter(SAB_CHANGES)),), "length": (5,)}),
    paper=Scale(axes={"length": (100,)}),
    printed=_printed(TABLE_2, SAB_CHANGES),
    note=f"{TABLE_2.note} Everything but the named setting is as in Table 2; the printed numbers are those of Table 2.",
)
