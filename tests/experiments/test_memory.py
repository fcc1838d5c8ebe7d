import pytest

from remanence.experiments import _memory as memory
from remanence.experiments import load_stored
from remanence.experiments.__main__ import EXPERIMENTS
from remanence.nn import LSTM

QUICK = ("LSTM (plain)", "MemRNN (plain)", "MemRNN (kernel)", "RelLSTM (kernel)")


def test_orders_of_growth_are_found_on_short_sequences_already():
    found = memory.measure(QUICK, (100, 200, 400))["results"]["models"]
    orders = [found[name]["growth"]["order"] for name in QUICK]
    assert orders == ["linear", "quadratic", "linear", "linear"]


def test_scoring_all_that_is_stored_has_a_quadratic_part_that_static_scores_have_not():
    names = ("SABLSTM (plain)", "SABLSTM (kernel)")
    found = memory.measure(names, (100, 200, 400))["results"]["models"]
    plain, kernel = (found[name]["growth"]["quadratic"] for name in names)
    assert plain > 0 == kernel


def test_bytes_are_the_same_every_time_and_weights_do_not_count():
    small, wide = LSTM(10, 4), LSTM(10, 4)
    assert memory.training_bytes(small, 30) == memory.training_bytes(wide, 30)
    assert memory.training_bytes(small, 60) > memory.training_bytes(small, 30)
    assert all(parameter.grad is None for parameter in small.parameters())


@pytest.mark.parametrize("name", ["LSTM (plain)", "RelRNN (plain)"])
def test_what_is_stored_is_what_is_measured(name):
    stored = load_stored("memory")["results"]
    assert set(stored["models"]) == set(memory.MODELS)
    length = stored["lengths"][0]
    assert (
        memory.measure([name], (length, 2 * length))["results"]["models"][name]["peak_bytes"][0]
        == (stored["models"][name]["peak_bytes"][0])
    )
    assert "memory" in EXPERIMENTS
