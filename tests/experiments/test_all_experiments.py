"""Every table and figure, at the scale that takes seconds."""

import pytest

from remanence.data import DataError
from remanence.experiments import carry_out, entries, list_experiments, make_page, make_record, plan_cells
from remanence.experiments._calibration import TRIALS
from remanence.experiments._plan import parse_choices

QUICK = ("kerg2020/table-1", "kerg2020/table-4", "kerg2020/figure-2-centre", "miller2018/figure-1", "beyond/million")
"""One of each kind in the quick set: a run, a policy, measurements alone, a stream."""
EXPERIMENTS = {experiment.id: experiment for experiment in list_experiments()}
CASES = [pytest.param(id, marks=() if id in QUICK else pytest.mark.slow) for id in EXPERIMENTS]


@pytest.mark.parametrize("id", CASES)
def test_it_runs_through(id, tmp_path, require_or_skip):
    experiment = EXPERIMENTS[id]
    cells = plan_cells(experiment, "smoke", tmp_path)
    for cell in cells:
        try:
            assert carry_out(cell.work, cell.folder) is None
        except DataError as error:
            require_or_skip("data", str(error))
        except ImportError as error:
            require_or_skip("transformers", str(error))
    assert all(cell.state.is_done for cell in cells)
    assert all(cell.result(measure.name) for cell in cells for measure in cell.work.measures)
    assert len(entries(experiment, cells)) == sum(len(experiment.readings_at(cell.place)) for cell in cells)
    assert f"{len(cells)} of {len(cells)} cells are done" in make_page(experiment, "smoke", cells)
    assert make_record(experiment, "smoke", cells).results["cells"]


@pytest.mark.parametrize("id", EXPERIMENTS)
def test_the_papers_grid_can_be_laid_out(id):
    experiment = EXPERIMENTS[id]
    for scale in ("smoke", "laptop", "paper"):
        cells = plan_cells(experiment, scale, "x", seeds=[0])
        assert cells
        assert len({cell.folder for cell in cells}) == len(cells)
        names = {measure.name for cell in cells for measure in cell.work.measures}
        wanted = {name for reading in experiment.readings for name in reading.measure.split("|")}
        assert names & wanted or not experiment.readings
    for key in experiment.printed:
        *place, reading = key
        assert reading in [one.name for one in experiment.readings]
        assert all(value in experiment.axes[axis] for axis, value in zip(experiment.axes, place, strict=True))


@pytest.mark.parametrize("id", EXPERIMENTS)
def test_every_row_and_column_can_be_chosen_by_its_name(id):
    experiment = EXPERIMENTS[id]
    for axis, values in experiment.axes.items():
        assert parse_choices(experiment, "paper", [f"{axis}={','.join(map(str, values))}"]) == {axis: values}
        for value in values:
            assert parse_choices(experiment, "paper", [f"{axis}={value}"]) == {axis: (value,)}


@pytest.mark.parametrize("id", EXPERIMENTS)
def test_every_setting_has_a_source(id):
    experiment = EXPERIMENTS[id]
    for place in experiment.places("paper", [0]):
        recipe = experiment.recipe(place)
        assert recipe is not None
        keys = [setting.key for setting in recipe.settings]
        assert len(set(keys)) == len(keys), sorted(key for key in keys if keys.count(key) > 1)
        assert all(setting.source for setting in recipe.settings)


def test_every_measurement_without_a_run_can_be_tried_at_a_smaller_size():
    works = [
        experiment.work("paper", place) for experiment in list_experiments() for place in experiment.places("paper")
    ]
    names = {measure.name for work in works if work.config is None for measure in work.measures}
    assert names == set(TRIALS)
