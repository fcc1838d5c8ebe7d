import contextlib
import os
import signal
import subprocess
import sys
import threading

import pytest

from remanence.runs import RunLockedError, locked
from remanence.runs._processes import stop_processes
from remanence.train import (
    RunConfig,
    _grid,
    best_run,
    carry_out,
    config_from,
    list_runs,
    plan_grid,
    recipe,
    run_name,
    summarise,
)


def small(**changes) -> RunConfig:
    table = {
        "task": {"options": {"items": 2, "symbols": 2, "length": 3}, "batch_size": 4},
        "model": {"options": {"hidden_size": 4}},
        "budget": {"updates": 6},
        "loop": {"log_every": 2, "save_every": 2},
        "evaluation": {"every": 3, "batches": 1, "batch_size": 4},
    }
    return config_from(changes, config_from(table))


def test_a_run_carries_its_label_which_decides_nothing(tmp_path):
    (labelled,) = plan_grid({"LSTM, first trial": small()}, tmp_path, lengths=[3])
    assert labelled.run.config.label == "LSTM, first trial"
    (again,) = plan_grid({"LSTM, second trial": small()}, tmp_path, lengths=[3])
    assert again.run.folder == labelled.run.folder
    assert again.run.config.digest == small(label="any", task={"options": {"length": 3}}).digest


def test_a_grid_runs_to_its_end_and_then_has_nothing_left_to_do(tmp_path, monkeypatch):
    cells = plan_grid({"LSTM": small(), "GRU": small(model={"name": "GRU"})}, tmp_path, lengths=[3])
    seen = []
    rows = carry_out(cells, jobs=2, tick=seen.append, pause=0.05)
    assert [(row["model"], row["status"], row["update"]) for row in rows] == [("LSTM", "done", 6), ("GRU", "done", 6)]
    assert seen
    assert best_run([cell.run for cell in cells]) in [cell.run for cell in cells]
    again = plan_grid({"LSTM": small(), "GRU": small(model={"name": "GRU"})}, tmp_path, lengths=[3])
    monkeypatch.setattr(_grid, "_start", lambda run: pytest.fail("nothing is left to start"))
    assert carry_out(again, jobs=2) == rows
    assert len(list_runs(tmp_path)) == 2


def test_an_interrupted_grid_leaves_runs_that_go_on(tmp_path):
    config = small(budget={"updates": 100_000}, loop={"save_every": 100_000, "log_every": 1})
    cells = plan_grid({"LSTM": config}, tmp_path)

    def interrupt(rows):
        if rows[0]["update"] and not interrupted:
            interrupted.append(True)
            threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGTERM)).start()

    interrupted = []
    with pytest.raises(KeyboardInterrupt):
        carry_out(cells, jobs=1, tick=interrupt, pause=0.05)
    (row,) = summarise(cells)
    assert row["status"] == "interrupted"
    assert cells[0].run.status["update"] > 0


def test_names_say_what_a_run_is_about_and_differ_with_any_setting():
    assert run_name(small()) == run_name(small())
    assert run_name(small()) != run_name(small(loop={"clip_norm": 2.0}))
    assert run_name(small(seed=4)).startswith("copy-LSTM-s4-")


def test_recipes_know_tasks_and_models_and_start_from_general_settings():
    assert recipe("denoise", "RelRNN").model.options["relevant"] == 15
    assert recipe("wikitext2-word", "LSTM").optimiser.learning_rate == 20.0
    assert recipe("somebody's own", "LSTM").task.name == "somebody's own"
    with pytest.raises(ValueError, match="Did you mean 'RelLSTM'"):
        recipe("copy", "RelLSTN")


def test_a_run_that_an_orphan_works_at_is_waited_for(tmp_path, monkeypatch):
    (cell,) = plan_grid({"LSTM": RunConfig()}, tmp_path)
    monkeypatch.setattr(_grid, "_start", lambda run: pytest.fail("it was started a second time"))
    seen = []

    def tick(rows):
        seen.append(rows[0]["status"])
        if len(seen) == 2:
            cell.run.set_status("done", update=3)
            orphan.close()

    orphan = contextlib.ExitStack()
    orphan.enter_context(locked(cell.run.folder))
    rows = carry_out([cell], jobs=1, tick=tick, pause=0.01)
    assert rows[0]["status"] == "done"
    assert seen[:2] == ["new", "new"]


def test_a_stopped_worker_can_be_ended():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    process.send_signal(signal.SIGSTOP)
    stop_processes([process])
    assert process.returncode == -signal.SIGTERM


def test_a_signal_in_the_middle_of_a_start_leaves_no_process_behind(tmp_path, monkeypatch):
    start, started = _grid._start, []

    def interrupted(run):
        started.append(start(run))
        os.kill(os.getpid(), signal.SIGTERM)
        return started[-1]

    monkeypatch.setattr(_grid, "_start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        carry_out(plan_grid({"LSTM": small()}, tmp_path), jobs=1, pause=0.01)
    assert [process.poll() is None for process in started] == [False]


def test_a_run_that_another_process_was_quicker_to_take_is_waited_for(tmp_path, monkeypatch):
    start, started = _grid._start, []

    def held_at_first(run):
        started.append(run)
        if len(started) < 2:
            return subprocess.Popen([sys.executable, "-c", f"raise SystemExit({RunLockedError.exit_code})"])
        return start(run)

    monkeypatch.setattr(_grid, "_start", held_at_first)
    (row,) = carry_out(plan_grid({"LSTM": small()}, tmp_path), jobs=1, pause=0.01)
    assert row["status"] == "done"
    assert len(started) == 2
