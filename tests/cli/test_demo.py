import io

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from remanence.cli import demo
from remanence.cli._app import app
from remanence.nn import SequenceModel
from remanence.tasks import Copy


def quick(seed: int = 0, **options) -> tuple[list[demo.Result], str]:
    text = io.StringIO()
    results = demo.run_demo(quick=True, seed=seed, console=Console(file=text, width=120, **options))
    return results, text.getvalue()


def test_the_command_prints_progress_the_table_and_what_was_measured():
    result = CliRunner().invoke(app, ["demo", "--quick"])
    assert result.exit_code == 0, result.output
    for words in ("update 4/4", "RelLSTM", "gradient", "not a benchmark"):
        assert words in result.output


def test_a_seed_gives_the_same_results_again():
    def measured(seed: int) -> list[tuple]:
        return [(row.accuracy, row.far_accuracy, row.reach, row.state_bytes) for row in quick(seed)[0]]

    assert measured(3) == measured(3)


def test_the_demo_leaves_threads_and_random_numbers_alone():
    torch.set_num_threads(2)
    try:
        before = torch.get_rng_state()
        quick()
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_a_terminal_gets_bars_and_anything_else_gets_lines():
    _, plain = quick()
    assert plain.count("update ") == 2
    assert "\x1b" not in plain
    _, live = quick(force_terminal=True)
    assert "4/4" in live
    assert "update " not in live.replace("updates", "")


def test_pairs_differ_in_the_memory_alone():
    task = Copy(length=6, items=3)
    plain, memory = (demo.make_contender(name, task, demo.QUICK, seed=0).model for name in ("RNN", "RelRNN"))
    shared = plain.state_dict()
    assert set(memory.state_dict()) - set(shared) == {f"core.weight_{part}_l0" for part in ("query", "key", "score")}
    recurrent = memory.core.get_parameter("weight_hh_l0")
    torch.testing.assert_close(recurrent @ recurrent.T, torch.eye(8))
    assert {name: value.shape for name, value in shared.items()}.items() <= {
        name: value.shape for name, value in memory.state_dict().items()
    }.items()


def test_learning_lowers_the_loss():
    task = Copy(length=2, items=1, symbols=2)
    contender = demo.make_contender("LSTM", task, demo.QUICK, seed=0)
    batch = task.batch(0, 8)
    before = task.loss(contender.model(batch.inputs)[0], batch)
    for _ in range(20):
        contender.learn(task, batch)
    assert task.loss(contender.model(batch.inputs)[0], batch) < before
    assert contender.seconds > 0


@pytest.mark.parametrize(("factor", "reach"), [(0.0, 0), (0.15, 2), (1.0, 11)])
def test_gradient_reach_of_a_decay_that_is_known(factor, reach):
    """The gradient of a linear RNN falls by `factor` a step, and 0.15 ** 2 > 1 % > 0.15 ** 3."""
    task = Copy(length=9, items=2)
    model = SequenceModel.for_task(task, "RNN", hidden_size=4, nonlinearity="identity").double()
    with torch.no_grad():
        model.core.get_parameter("weight_hh_l0").copy_(factor * torch.eye(4))
    batch = task.batch(0, 3)
    batch = batch._replace(inputs=batch.inputs.double())
    assert demo.gradient_reach(model, task, batch) == reach


def test_judging_counts_the_real_state_and_the_parameters():
    task = Copy(length=6, items=3)
    contender = demo.make_contender("RelLSTM", task, demo.QUICK, seed=0)
    result = demo.judge(contender, task, demo.QUICK, seed=0)
    assert result.state_bytes == contender.model.core.initial_state(1).nbytes  # type: ignore[operator]
    assert result.parameters == sum(parameter.numel() for parameter in contender.model.parameters())
    assert 0 <= result.far_accuracy <= 1
