import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from remanence import experiments
from remanence.data import DataError
from remanence.experiments import (
    Measure,
    TableCell,
    TableNumber,
    Work,
    adopt,
    carry_out,
    entries,
    find_experiment,
    grid,
    load_record,
    make_engine,
    make_page,
    make_record,
    parse_seeds,
    plan_cells,
    row_of,
    run_cells,
    save_record,
)
from remanence.experiments._cell_state import read_kept
from remanence.experiments._experiment import Departure
from remanence.experiments.engines import _local as local
from remanence.runs import RunLockedError, Stopped, locked, sealed, unsealed
from remanence.train import Run, RunConfig, recipe, train, with_settings

TABLE = find_experiment("kerg2020/table-2")


@pytest.fixture
def cells(tmp_path):
    """Two tiny cells of Table 2."""
    return plan_cells(TABLE, "smoke", tmp_path / "cells", ["model=RelRNN,LSTM"])


def weights(cell):
    return Run.open(cell.folder / "run").load("last")[0].state_dict()


# ---- which cells -----------------------------------------------------------------------------------------------------


def test_the_grid_is_the_papers():
    cells = plan_cells(TABLE, "paper", "x")
    assert len(cells) == 8 * 5 * 3
    assert [cell.place["seed"] for cell in cells[:40]] == [0] * 40
    assert len({cell.folder for cell in cells}) == len(cells)


def test_a_changed_setting_is_another_cell_and_the_same_is_the_same():
    (first,) = plan_cells(TABLE, "paper", "x", ["model=LSTM", "length=100"], [0])
    (again,) = plan_cells(TABLE, "paper", "x", ["model=LSTM", "length=100"], [0])
    assert first.work.config.label == "LSTM"
    (laptop,) = plan_cells(TABLE, "laptop", "x", ["model=LSTM", "length=100"], [0])
    assert first.folder == again.folder != laptop.folder


def test_a_selection_may_name_what_the_scale_leaves_out():
    (cell,) = plan_cells(TABLE, "laptop", "x", ["model=LSTM", "length=500"])
    assert cell.work.config.task.options["length"] == 500
    assert cell.work.config.budget.updates == 50_000


@pytest.mark.parametrize(
    ("only", "words"),
    [
        (["modell=LSTM"], "Did you mean 'model'"),
        (["model=LSMT"], "Did you mean 'LSTM'"),
        (["model"], "axis=value"),
        (["model="], "axis=value"),
    ],
)
def test_a_bad_selection_is_refused(only, words):
    with pytest.raises(ValueError, match=words):
        plan_cells(TABLE, "paper", "x", only)


def test_choices_of_one_axis_add_up():
    chosen = plan_cells(TABLE, "paper", "x", ["model=LSTM", "length=100", "model=GORU,LSTM"], [0])
    assert [cell.place["model"] for cell in chosen] == ["LSTM", "GORU"]


def test_an_empty_selection_is_refused():
    with pytest.raises(ValueError, match="leave at least one cell"):
        plan_cells(TABLE, "paper", "x", seeds=[])


@pytest.mark.parametrize("text", ["", "x", "1,x", "-1", "0", ","])
def test_seeds_that_are_none_are_refused(text):
    with pytest.raises(ValueError, match="seeds"):
        parse_seeds(text)


@pytest.mark.parametrize("id", ["kerg2020/table-20", "kerg/table-2"])
def test_an_unknown_id_gets_the_nearest(id):
    with pytest.raises(ValueError, match="Did you mean 'kerg2020/table-2"):
        find_experiment(id)


def test_work_comes_back_from_json():
    for cell in plan_cells(TABLE, "paper", "x", ["length=100"], [1]):
        back = Work.from_dict(json.loads(json.dumps(cell.work.to_dict())))
        assert back.config == cell.work.config
        assert back.name == cell.work.name
        assert [measure.digest for measure in back.measures] == [measure.digest for measure in cell.work.measures]


# ---- what fills a cell -----------------------------------------------------------------------------------------------


def test_a_cell_is_filled_once(cells, monkeypatch):
    assert carry_out(cells[0].work, cells[0].folder) is None
    assert cells[0].state.is_done
    first = cells[0].result("answers")
    assert set(first["5"]) == {"accuracy", "answer_loss", "loss", "sequences"}
    monkeypatch.setattr("remanence.experiments._cell.train", None)
    monkeypatch.setattr("remanence.experiments._cell.measured", None)
    assert carry_out(cells[0].work, cells[0].folder) is None
    assert cells[0].result("answers") == first


def test_another_measurement_is_made_on_the_same_run(cells, monkeypatch):
    carry_out(cells[0].work, cells[0].folder)
    more = Work(cells[0].work.config, (Measure("answers", {"lengths": [7], "sequences": 5, "batch": 5}),))
    monkeypatch.setattr("remanence.experiments._cell.train", None)
    cell = TableCell(cells[0].place, more, cells[0].root)
    assert cell.folder == cells[0].folder
    assert cell.state.status == "trained"
    carry_out(cell.work, cell.folder)
    assert list(cell.result("answers")) == ["7"]
    assert list(cells[0].result("answers")) == ["5"]


def test_answers_are_what_evaluation_says(cells):
    carry_out(cells[0].work, cells[0].folder)
    model, task = Run.open(cells[0].folder / "run").load("last")
    batch = task.batch(0, 5, split="test")
    output = model(batch.inputs)[0]
    found = cells[0].result("answers")["5"]
    assert found["accuracy"] == pytest.approx(task.accuracy(output, batch).item(), abs=1e-6)
    assert found["loss"] == pytest.approx(task.loss(output, batch).item(), abs=1e-6)
    asked = torch.nn.functional.cross_entropy(output[batch.mask], batch.targets[batch.mask]).item()
    assert found["answer_loss"] == pytest.approx(asked, abs=1e-6)


def test_a_later_measurement_is_not_misread(cells):
    carry_out(cells[0].work, cells[0].folder)
    measure = cells[0].work.measures[0]
    path = cells[0].folder / "measures" / measure.file
    path.write_text(sealed(unsealed(json.loads(path.read_text())) | {"version": 99}))
    with pytest.raises(ValueError, match="upgrade remanence"):
        read_kept(cells[0].folder, measure)


def test_every_damage_to_a_measurement_is_seen(cells):
    carry_out(cells[0].work, cells[0].folder)
    measure = cells[0].work.measures[0]
    path = cells[0].folder / "measures" / measure.file
    whole = path.read_bytes()
    first = read_kept(cells[0].folder, measure)
    damaged = [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in range(len(whole))]
    for contents in [*damaged, *(whole[:length] for length in range(0, len(whole.rstrip()), 7))]:
        path.write_bytes(contents)
        try:
            found = read_kept(cells[0].folder, measure)
        except ValueError:
            continue
        assert found == first  # a blank between two entries


@pytest.mark.parametrize("kind", ["pipe", "directory", "link", "other values"])
def test_what_is_no_measurement_is_named(cells, kind, tmp_path):
    measure = cells[0].work.measures[0]
    path = cells[0].folder / "measures" / measure.file
    path.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(tmp_path)
    else:
        path.write_text(sealed({"kind": "cell-measurement", "version": 1, "measure": 3, "values": []}))
    with pytest.raises(ValueError, match=measure.file):
        read_kept(cells[0].folder, measure)


# ---- the local engine ------------------------------------------------------------------------------------------------


def test_the_local_engine_fills_cells_with_the_bits_of_this_process(cells, tmp_path):
    assert run_cells(cells, make_engine("local", 2), pause=0.05) == []
    assert all(cell.state.is_done for cell in cells)
    (alone, *_) = plan_cells(TABLE, "smoke", tmp_path / "alone", ["model=RelRNN"])
    carry_out(alone.work, alone.folder)
    torch.testing.assert_close(weights(cells[0]), weights(alone), rtol=0, atol=0)
    assert alone.result("answers") == cells[0].result("answers")


def test_a_crashed_cell_does_not_stop_the_others(cells):
    bad = Work(cells[0].work.config, (Measure("answers", {"lengths": [5], "sequences": 5, "batch": 0}),))
    crashing = TableCell(cells[0].place, bad, cells[0].root)
    (failure,) = run_cells([crashing, cells[1]], make_engine("local", 1), pause=0.05)
    assert cells[1].state.is_done
    assert crashing.state.status == "failed"
    assert "ZeroDivisionError" in failure.traceback
    assert "ZeroDivisionError" in failure.log.read_text()
    assert "failed at update 4" in entries(TABLE, [crashing])[0].words


def test_data_that_are_missing_are_told_without_a_traceback(cells, monkeypatch):
    told = "mnist/a.gz could not be fetched:\n  https://a: unknown\nPut it as mnist/a.gz into the directory"

    def no_data(*arguments):
        raise DataError(told)

    monkeypatch.setattr("remanence.experiments._cell.train", no_data)
    with pytest.raises(DataError):
        carry_out(cells[0].work, cells[0].folder)
    assert (cells[0].folder / "error.txt").read_text() == f"{told}\n"
    assert cells[0].state.reason == "mnist/a.gz could not be fetched:"


def _long(tmp_path, updates=400):
    (cell,) = plan_cells(TABLE, "smoke", tmp_path, ["model=LSTM"])
    config = with_settings(cell.work.config, [f"budget.updates={updates}", "loop.save_every=50"])
    return TableCell(cell.place, Work(config, cell.work.measures), Path(tmp_path))


@pytest.mark.slow
def test_killed_at_random_a_cell_ends_with_the_same_bits(tmp_path):
    whole, broken = _long(tmp_path / "whole"), _long(tmp_path / "broken")
    carry_out(whole.work, whole.folder)
    engine, chance = make_engine("local", 1), random.Random(3)
    engine.start([broken])
    killed = 0
    while engine.poll():
        time.sleep(chance.uniform(0.5, 3.0))
        for _, process in engine.working.values():
            if killed < 3 and process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                killed += 1
    assert killed == 3
    assert broken.state.is_done
    torch.testing.assert_close(weights(broken), weights(whole), rtol=0, atol=0)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_saves_everything_and_the_same_call_goes_on(tmp_path, number):
    cell = _long(tmp_path, 100_000)

    def stop(rows):
        if rows[0]["update"] > 0:
            os.kill(os.getpid(), number)

    with pytest.raises(Stopped) as stopped:
        run_cells([cell], make_engine("local", 1), stop, pause=0.05)
    assert stopped.value.number == number
    assert cell.state.status == "interrupted"
    assert Run.open(cell.folder / "run").status["update"] > 0
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_process_that_is_killed_again_and_again_is_given_up(cells, monkeypatch):
    command = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    started = []

    def start(cell):
        started.append(cell)
        return subprocess.Popen(command)

    monkeypatch.setattr("remanence.experiments.engines._local._start", start)
    (failure,) = run_cells(cells[:1], make_engine("local", 1), pause=0.01)
    assert len(started) == 4
    assert "as when it is killed" in failure.traceback


def test_a_cell_that_another_process_is_at_is_waited_for(cells, monkeypatch):
    """As after a driver was killed: its workers go on by themselves."""
    start, started = local._start, []

    def held_at_first(cell):
        started.append(cell)
        if len(started) < 3:
            return subprocess.Popen([sys.executable, "-c", f"raise SystemExit({RunLockedError.exit_code})"])
        return start(cell)

    monkeypatch.setattr(local, "_start", held_at_first)
    assert run_cells(cells[:1], make_engine("local", 1), pause=0.01) == []
    assert len(started) == 3


def test_no_process_is_started_for_a_cell_that_is_in_use(cells):
    engine = make_engine("local", 1)
    engine.start(cells[:2])
    held, other = engine.waiting
    held.folder.mkdir(parents=True)
    with locked(held.folder):
        engine.poll()
        assert list(engine.working) == [other.folder]
        assert engine.waiting == [held]
    engine.stop()


def test_a_signal_in_the_middle_of_a_start_leaves_no_process_behind(cells, monkeypatch):
    start, started = local._start, []

    def interrupted(cell):
        started.append(start(cell))
        os.kill(os.getpid(), signal.SIGTERM)
        return started[-1]

    monkeypatch.setattr(local, "_start", interrupted)
    with pytest.raises(Stopped):
        run_cells(cells[:1], make_engine("local", 1), pause=0.01)
    assert [process.poll() is None for process in started] == [False]


def test_only_what_fits_into_memory_runs_at_a_time(cells):
    engine = make_engine("local", 8)
    engine.memory = 1.0
    engine.start(cells)
    engine.poll()
    assert len(engine.working) == 1
    engine.stop()


def test_the_longest_come_first():
    engine = make_engine("local", 1)
    engine.start(plan_cells(TABLE, "paper", "x", ["model=LSTM"], [0]))
    assert [cell.place["length"] for cell in engine.waiting] == [2000, 1000, 500, 300, 100]


# ---- adopted runs ----------------------------------------------------------------------------------------------------

HALF = ["model.options.combine=half", "model.options.output=hidden"]
SIZES = ["model.options.recent=10", "model.options.relevant=10"]
FIFTEEN = ["model.options.recent=15", "model.options.relevant=15"]
ORTHOGONAL = ["model.options.nonlinearity=modrelu", "model.options.recurrent_init=henaff"]
ADAM, ADAM3 = (["optimiser.name=adam", f"optimiser.learning_rate={rate}"] for rate in ("2e-4", "1e-3"))
RMS, RMS3 = (["optimiser.name=rmsprop", f"optimiser.learning_rate={rate}"] for rate in ("2e-4", "1e-3"))
XAVIER, KAIMING = ([f"model.options.init={kind}", "model.options.bias=single"] for kind in ("xavier", "kaiming"))
SAB = ["top_k=10", "every=10", "truncate=10", "score=tanh", "normalise=true", "underfull=raw", "start=zero"]
COMMANDS = {
    ("copy", "RelRNN"): [*ADAM, *HALF, *SIZES, *XAVIER, "model.options.nonlinearity=tanh", ORTHOGONAL[1]],
    ("denoise", "RelRNN"): [*RMS, *HALF, *SIZES, *KAIMING, *ORTHOGONAL],
    ("copy", "RelLSTM"): [*ADAM, *HALF, *XAVIER, SIZES[0], "model.options.relevant=15"],
    ("denoise", "RelLSTM"): [*RMS3, *HALF, *XAVIER, "model.options.forget_bias=0", *FIFTEEN],
    ("copy", "LSTM"): [*ADAM, *XAVIER],
    ("denoise", "LSTM"): [*ADAM, *XAVIER],
    ("copy", "OrthRNN"): [*RMS, *XAVIER, *ORTHOGONAL],
    ("denoise", "ExpRNN"): [*RMS, *KAIMING, *ORTHOGONAL, "optimiser.orthogonal_learning_rate=2e-5"],
    ("copy", "MemRNN"): [*ADAM, *HALF, *XAVIER, "model.options.nonlinearity=tanh", ORTHOGONAL[1]],
    ("denoise", "MemRNN"): [*RMS, *HALF, *KAIMING, *ORTHOGONAL],
    ("copy", "SABLSTM"): [*ADAM3, *(f"model.options.{option}" for option in SAB), "model.options.output=summary"],
    ("denoise", "GORU"): [*RMS3, "optimiser.smoothing=0.9"],
}
COMMON = [
    "budget.updates=200000",
    "budget.accuracy=0.99",
    "budget.hold=20",
    "evaluation.every=500",
    "evaluation.batches=1",
    "evaluation.batch_size=100",
    "loop.log_every=500",
    "loop.save_every=2000",
    "task.batch_size=10",
    "loop.clip_norm=1.0",
    "task.options.length=100",
    "model.options.hidden_size=128",
]


@pytest.mark.parametrize(("task", "model"), list(COMMANDS))
def test_what_the_train_command_runs_is_the_cell_at_paper_scale(task, model):
    table = {"copy": "kerg2020/table-5", "denoise": "kerg2020/table-2"}[task]
    (cell,) = plan_cells(find_experiment(table), "paper", "x", [f"model={model}", "length=100"], [2])
    config = with_settings(recipe(task, model), [*COMMON, *COMMANDS[task, model], "seed=2"])
    assert cell.work.config == config
    assert cell.work.name == Work(config, ()).name


def test_an_adopted_run_is_the_cell_of_its_settings(cells, tmp_path):
    run = train(cells[0].work.config, tmp_path / "elsewhere").run
    before = {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")}
    folder = adopt(run.folder, cells[0].root)
    assert folder == cells[0].folder
    assert cells[0].state.status == "trained"
    carry_out(cells[0].work, cells[0].folder)
    assert cells[0].state.is_done
    assert {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")} == before
    assert adopt(run.folder, cells[0].root) == folder


def test_only_a_run_that_is_done_is_adopted_and_none_is_overwritten(cells, tmp_path):
    Run.create(tmp_path / "new", RunConfig())
    with pytest.raises(ValueError, match="Resume it first"):
        adopt(tmp_path / "new", tmp_path)
    carry_out(cells[0].work, cells[0].folder)
    other = train(cells[0].work.config, tmp_path / "other").run
    with pytest.raises(ValueError, match="has no run yet"):
        adopt(other.folder, cells[0].root)


# ---- what is shown ---------------------------------------------------------------------------------------------------


def test_a_table_shows_what_is_done_and_what_is_not(cells):
    carry_out(cells[0].work, cells[0].folder)
    done, waiting = entries(TABLE, cells)
    assert done.values[0] == pytest.approx(100 * cells[0].result("answers")["5"]["accuracy"])
    assert waiting.words == "not run"
    assert grid(TABLE, [done, waiting]).rows[1][1] == "not run"
    page = make_page(TABLE, "smoke", cells)
    assert "1 of 2 cells are done" in page
    assert "budget.updates = 4, " in page
    assert "| optimiser.learning_rate | 0.0002 | Table 7 |" in page


def test_a_column_of_a_single_number_has_its_name():
    table = find_experiment("miller2018/stable")
    number = TableNumber({"model": "RNN"}, "test perplexity", "", None, False, {0: 200.0}, {})
    assert grid(table, [number]).head == ("model", "test perplexity")


def test_a_scale_that_leaves_a_number_out_says_so(tmp_path):
    table = find_experiment("kerg2020/table-1")
    (cell,) = plan_cells(table, "smoke", tmp_path, ["model=LSTM"])
    carry_out(cell.work, cell.folder)
    _, at_100, at_200, *_ = grid(table, entries(table, [cell])).rows[0]
    assert at_100.endswith(" [99]")
    assert at_200.startswith("no number [")


def test_an_unfinished_run_is_shown_as_such(cells):
    run = train(cells[0].work.config, cells[0].folder / "run").run
    run.set_status("interrupted", update=2, budget=4, reason="signal 15")
    (entry,) = entries(TABLE, cells[:1])
    assert entry.values == {}
    assert entry.words.endswith("at 4 of 4 updates (interrupted)")
    assert float(entry.words.split()[0]) == pytest.approx(100 * run.metrics.read()[-1]["accuracy"], abs=0.1)


def test_a_run_that_was_saved_before_its_first_measurement_shows_how_far_it_is(cells):
    cell, _ = cells
    folder = cell.folder / "run"
    run = Run.create(folder, with_settings(cell.work.config, ["loop.log_every=100", "evaluation.every=100"]))
    run.set_status("interrupted", update=3, seconds=6.0, budget=4)
    assert (cell.state.update, row_of(cell)["seconds_left"]) == (3, 2.0)
    run.set_status("running", update=3)
    assert (cell.state.update, row_of(cell)["seconds_left"]) == (3, None)


def test_a_run_that_goes_on_no_longer_says_why_it_stopped(cells):
    cell, _ = cells
    run = Run.create(cell.folder / "run", cell.work.config)
    run.set_status("interrupted", update=2, budget=4, reason="signal 15")
    with locked(cell.folder):
        assert (cell.state.status, cell.state.reason) == ("running", "")
    assert (cell.state.status, cell.state.reason) == ("interrupted", "signal 15")


def test_printed_stands_beside_measured():
    found = entries(TABLE, plan_cells(TABLE, "paper", "nowhere", ["length=100,2000"], [0]))
    rows = {(entry.place["model"], entry.place["length"]): entry.printed_words for entry in found}
    assert rows["LSTM", 100] == "82"
    assert rows["MemRNN", 2000] == "OOM"


def test_seeds_are_summed_up(tmp_path):
    cells = plan_cells(TABLE, "smoke", tmp_path, ["model=LSTM"], [0, 1])
    for cell in cells:
        carry_out(cell.work, cell.folder)
    (entry,) = entries(TABLE, cells)
    assert sorted(entry.values) == [0, 1]
    assert "2 seeds" in entry.words


@pytest.mark.parametrize(
    ("values", "words"), [((100.0, 99.0), "99.5 (99 to 100, 2 seeds)"), ((100.0, 100.0), "100 (2 seeds)")]
)
def test_the_range_over_seeds_is_told_where_there_is_one(values, words):
    number = TableNumber({}, "accuracy", "%", None, False, dict(enumerate(values)), {})
    assert number.words == words


def test_a_record_is_a_reduction_of_cells_and_says_where_it_was_made(cells, tmp_path):
    carry_out(cells[0].work, cells[0].folder)
    path = save_record(make_record(TABLE, "smoke", cells), tmp_path / "stored")
    assert path.name == "kerg2020_table-2_smoke.json"
    record = load_record(path)
    assert record.labels == []
    assert record.facts["kernel"] == experiments._facts.kernel_digest()
    (done,) = record.results["cells"]  # of the cell that was never begun nothing is kept
    assert done["work"]["config"]["optimiser"]["learning_rate"] == 2e-4
    assert done["curve"]["updates"] == [2, 4]
    back = [TableNumber.from_dict(one, TABLE.axes) for one in record.results["table"]]
    assert grid(TABLE, back) == grid(TABLE, entries(TABLE, cells[:1]))
    first = path.read_bytes()
    assert save_record(make_record(TABLE, "smoke", cells), path).read_bytes() == first
    values = record.to_dict()
    values["facts"] |= {"remanence": "0.0.1", "machine": "arm64"}
    path.write_text(json.dumps(values))
    assert len(load_record(path).labels) == 2
    path.write_text(json.dumps({**values, "version": 99}))
    with pytest.raises(ValueError, match="upgrade remanence"):
        load_record(path)
    path.write_text(json.dumps({"kind": "something"}))
    with pytest.raises(ValueError, match="kind"):
        load_record(path)


def test_departures_are_named():
    for experiment in experiments.list_experiments():
        assert experiment.scale("paper").departures == ()
        for departure in experiment.scale("laptop").departures:
            assert isinstance(departure, Departure)
            assert departure.paper
