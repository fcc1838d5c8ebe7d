"""When a run may stop before its budget is used up."""

import pytest

from remanence.train import config_from, train

SETTINGS = {"task": {"options": {"length": 2}}, "evaluation": {"every": 1, "batches": 1, "batch_size": 2}}


@pytest.mark.parametrize(("hold", "expected"), [(1, 1), (3, 3)])
def test_accuracy_must_hold_for_evaluations_in_a_row(tmp_path, hold, expected):
    """Every accuracy reaches 0, so the run stops at its `hold`-th evaluation."""
    config = config_from({**SETTINGS, "budget": {"updates": 6, "accuracy": 0.0, "hold": hold}})
    outcome = train(config, tmp_path / "run")
    assert (outcome.reason, outcome.update) == ("accuracy reached", expected)


def test_an_evaluation_below_the_accuracy_begins_the_count_anew():
    from remanence.train._progress import Progress, stop_reason

    config = config_from({"budget": {"updates": 6, "accuracy": 0.9, "hold": 2}})
    progress = Progress()
    reasons = []
    for accuracy in (0.95, 0.5, 0.95, 0.95):
        progress.judge({"loss": 1.0, "accuracy": accuracy}, config)
        reasons.append(stop_reason(progress, config))
    assert reasons == [None, None, None, "accuracy reached"]


def test_loss_must_hold_for_evaluations_in_a_row(tmp_path):
    """Every loss is below 100, so the run stops at its second evaluation."""
    config = config_from({**SETTINGS, "budget": {"updates": 6, "loss": 100.0, "hold": 2}})
    outcome = train(config, tmp_path / "run")
    assert (outcome.reason, outcome.update) == ("loss reached", 2)


@pytest.mark.parametrize(
    ("loss", "accuracy", "expected"),
    [(0.1, 0.95, "accuracy reached"), (0.3, 0.95, None), (0.1, 0.5, None), (float("nan"), 0.95, None)],
)
def test_with_accuracy_and_loss_both_must_be_reached(loss, accuracy, expected):
    from remanence.train._progress import Progress, stop_reason

    config = config_from({"budget": {"updates": 6, "accuracy": 0.9, "loss": 0.2}})
    progress = Progress()
    progress.judge({"loss": loss, "accuracy": accuracy}, config)
    assert stop_reason(progress, config) == expected


def test_a_loss_to_stop_at_is_a_finite_number():
    with pytest.raises(ValueError, match=r"budget\.loss"):
        config_from({"budget": {"updates": 6, "loss": float("nan")}})
