"""Policies side by side: who learned to use a memory is said only where every seed shows it."""

from __future__ import annotations

import pytest

from remanence.rl import PolicyComparison
from remanence.runs import result_from


def compared(**returns: list[float]) -> PolicyComparison:
    return PolicyComparison("Maze", 20_000, 100, returns)


def test_who_beats_the_best_seed_without_memory_has_learnt():
    found = compared(RelLSTM=[0.9, 0.89], LSTM=[0.7, 0.95], GRU=[0.9, 0.55], none=[0.55, 0.56])
    assert found.needs_memory
    assert found.learnt == ["RelLSTM", "LSTM"]
    assert found.sentences[1:] == [
        "RelLSTM and LSTM learned to use their memory in Maze: every seed gets more than the best one without memory.",
        "GRU did not, within 20,000 frames.",
        "Without memory the same network gets 0.56 (0.55 to 0.56).",
    ]


def test_what_may_be_luck_of_few_seeds_is_not_called_learned():
    found = compared(RelLSTM=[0.9, 0.8], none=[0.5, 0.6])
    assert found.learnt == ["RelLSTM"]
    assert not found.needs_memory
    assert found.sentences[1] == (
        "Every seed of RelLSTM gets more than the best one without memory. "
        "So few seeds do not rule out luck; take more (--seeds 5)."
    )


def test_a_seed_that_only_ties_does_not_count():
    found = compared(LSTM=[0.6, 0.9], none=[0.5, 0.6])
    assert found.learnt == []
    assert "the task needs no memory, or 20,000 frames are too few" in found.sentences[1]


@pytest.mark.parametrize("without", [{}, {"none": []}])
def test_nothing_is_said_without_the_baseline(without):
    found = compared(LSTM=[0.9], **without)
    assert found.learnt == []
    assert found.sentences == ["Without the model 'none' nothing shows whether Maze needs memory."]


def test_what_has_no_result_yet_has_no_row():
    assert [row["model"] for row in compared(LSTM=[], GRU=[0.5]).rows] == ["GRU"]


def test_it_comes_back_from_its_file():
    found = compared(LSTM=[0.9, 0.8], none=[0.5])
    assert result_from(found.to_dict()) == found
