"""When stored runs settle a statement: on made-up curves and runs."""

from __future__ import annotations

import numpy as np
import pytest

from remanence.claims._rule import Budget, TrainedRun, judge, still_improving

NEEDS = Budget(1000, "updates")
FLAT = (0.2, 0.4, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
RISING = tuple(np.linspace(0.1, 0.6, 10))


def run(**changed):
    """A run that has all that the paper's had, and stopped below what is printed."""
    return TrainedRun(**({"model": "LSTM", "budget": 1000, "falls_short": True, "curve": FLAT} | changed))


# ---- curves --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("curve", "improving"),
    [
        (RISING, True),
        (FLAT, False),
        (FLAT[::-1], False),
        ([0.5] * 20, False),
        (1 - np.exp(-np.arange(200.0)), False),
        (1 - np.exp(-np.arange(20.0) / 20), True),
        ([0.1, 0.5], True),
        ([0.1, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3], False),
        ([], True),
    ],
)
def test_a_curve_is_still_improving_or_not(curve, improving):
    assert still_improving(curve) is improving


def test_noise_on_a_plateau_is_rarely_taken_for_a_rise_and_a_rise_in_noise_is_seen():
    generator = np.random.default_rng(0)
    plateaus = [still_improving(0.5 + 0.02 * generator.standard_normal(40)) for _ in range(400)]
    rises = [still_improving(np.linspace(0.3, 0.5, 40) + 0.02 * generator.standard_normal(40)) for _ in range(400)]
    assert np.mean(plateaus) < 0.06
    assert np.mean(rises) > 0.95


def test_only_the_second_half_of_a_curve_counts():
    assert not still_improving([*RISING, *([0.6] * 10)])
    assert still_improving([*([0.1] * 10), *RISING])


# ---- verdicts ------------------------------------------------------------------------------------------------------


def test_runs_with_all_that_the_paper_had_may_contradict_it():
    assert judge(False, [run()] * 3, NEEDS).verdict == "fails as printed"


@pytest.mark.parametrize(
    "runs",
    [
        [run()],
        [run(), run()],
        [run(place="T = 100"), run(place="T = 200"), run(place="T = 300")],
        [*[run(falls_short=False)] * 3, run(falls_short=False, model="GRU")],
    ],
)
def test_one_bad_seed_contradicts_nothing(runs):
    found = judge(False, runs, NEEDS)
    assert found.verdict == "not settled at this budget"
    assert found.reason == f"{runs[-1].model}: fewer than 3 runs"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"budget": 600}, "LSTM: 600 of 1,000 updates"),
        ({"curve": RISING}, "LSTM: still improving at the cut (3 of 3 runs)"),
        ({"departures": ("width 64",)}, "LSTM: other settings than the paper's (width 64)"),
    ],
)
def test_less_than_the_paper_had_contradicts_nothing(changed, reason):
    found = judge(False, [run(**changed)] * 3, NEEDS)
    assert (found.verdict, found.reason) == ("not settled at this budget", reason)


def test_all_reasons_are_named_once_for_models_that_share_them():
    short = {"budget": 600, "departures": ("width 64", "T = 200")}
    runs = [run(**short), run(**short, model="RNN"), run(**short, model="GRU", curve=RISING)]
    found = judge(False, runs * 3, NEEDS)
    same = "600 of 1,000 updates, other settings than the paper's (width 64, T = 200)"
    assert found.reason.split("; ") == [
        f"LSTM, RNN: {same}",
        "GRU: 600 of 1,000 updates, still improving at the cut (3 of 3 runs), "
        "other settings than the paper's (width 64, T = 200)",
    ]


def test_a_small_run_may_bear_a_statement_out_and_says_its_scale():
    found = judge(True, [run(falls_short=False, budget=600, departures=("width 64",))], NEEDS)
    assert found.verdict == "holds on stored runs"
    assert found.reason == "600 of 1,000 updates, other settings than the paper's (width 64)"


def test_a_comparison_that_rests_on_a_small_run_is_not_settled():
    winner = run(model="RelRNN", falls_short=False)
    assert judge(True, [winner, run()], NEEDS).verdict == "holds on stored runs"
    assert judge(True, [winner, run(budget=600)], NEEDS).verdict == "not settled at this budget"


@pytest.mark.parametrize("printed", [True, False])
def test_seeds_that_do_not_agree_settle_nothing(printed):
    found = judge(printed, [run(), run(), run(), run(falls_short=False)], NEEDS)
    assert found.verdict == "not settled at this budget"
    assert found.reason == "LSTM: 3 of 4 runs fall short and the others do not"


def test_what_was_not_run_leaves_open_whether_the_rest_is_right():
    found = judge(True, [run(falls_short=False)], NEEDS, missing="7 of 8 numbers were not measured")
    assert found.verdict == "not settled at this budget"
    assert found.reason == "7 of 8 numbers were not measured"
    assert judge(False, [run(falls_short=True)] * 3, NEEDS, missing="7 of 8").verdict == "fails as printed"


def test_sides_that_were_not_tuned_alike_do_not_settle_who_is_better():
    found = judge(True, [run(falls_short=False)], NEEDS, favour="the rate of RelRNN was searched")
    assert found.verdict == "not settled at this budget"
    assert found.reason == "the two sides were not tuned alike: the rate of RelRNN was searched"
    # The side that was not tuned leads all the same.
    leads = [run(falls_short=False)] * 3
    assert judge(False, leads, NEEDS, favour="the rate of RelRNN").verdict == "fails as printed"


@pytest.mark.parametrize(("printed", "verdict"), [(True, "holds on stored runs"), (False, "fails as printed")])
def test_what_was_measured_without_training_is_settled(printed, verdict):
    assert judge(printed).verdict == verdict
    assert judge(printed).reason == ""


def test_curves_that_were_not_kept_raise_no_doubt():
    assert judge(False, [run(curve=())] * 3, NEEDS).verdict == "fails as printed"


def test_the_budgets_of_all_runs_that_fall_short_are_shown():
    found = judge(False, [run(budget=100), run(budget=600), run(budget=1000, falls_short=False)], NEEDS)
    assert found.reason.startswith("LSTM: 100 to 600 of 1,000 updates, ")
