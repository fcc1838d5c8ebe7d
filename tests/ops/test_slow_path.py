"""Never slow in silence: one warning for each reason, with the remedy, and none where the kernel could not have run."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch._subclasses import FakeTensorMode

from remanence.experiments import find_experiment, make_engine, plan_cells
from remanence.nn import RelLSTM
from remanence.ops import ScanSpec, Screened, SlowPathWarning, Strided, _backend, _pairs, _slow_path, count_pairs
from remanence.ops._library import Library
from remanence.ops._screens import SCREENS
from remanence.train import RunConfig, _grid, carry_out, plan_grid

MISSING = Library(None, "there is no compiled kernel (on purpose)", "Run `make it`.", {})


@pytest.fixture
def untold(monkeypatch):
    """As if nothing had been said yet."""
    monkeypatch.setattr(_slow_path, "_told", set())
    monkeypatch.delenv("REMANENCE_REQUIRE", raising=False)


@pytest.fixture
def no_kernel(monkeypatch, untold):
    for module in (_backend, _slow_path, _pairs):
        monkeypatch.setattr(module, "library", lambda: MISSING)


def test_a_missing_kernel_is_said_once_with_the_remedy(no_kernel):
    layer, x = RelLSTM(3, 4, recent=2, relevant=1), torch.randn(5, 2, 3)
    said = "no compiled kernel .on purpose.*Run `make it`.*backend='reference'"
    with pytest.warns(SlowPathWarning, match=said):
        layer(x)
    layer(x)  # a second warning would be an error
    RelLSTM(3, 4, recent=2, relevant=1)(x)


def test_the_warning_names_the_line_that_called_the_layer(no_kernel):
    with pytest.warns(SlowPathWarning) as caught:
        RelLSTM(3, 4)(torch.randn(5, 2, 3))
    assert caught[0].filename == __file__


def test_asking_for_the_reference_is_no_surprise(no_kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RelLSTM(3, 4, recent=2, relevant=1, backend="reference")(torch.randn(5, 2, 3))


def test_counting_pairs_says_so_too(no_kernel):
    symbols = torch.tensor([0, 1, 0], dtype=torch.uint8)
    with pytest.warns(SlowPathWarning, match="no compiled kernel"):
        count_pairs(symbols, [1], 2)
    count_pairs(symbols, [1], 2, backend="reference")


def test_cells_in_processes_of_their_own_say_so_in_the_driver(no_kernel, tmp_path):
    engine = make_engine("local", 1)
    engine.start([])  # nothing to run, nothing to say
    cells = plan_cells(find_experiment("beyond/agents"), "smoke", tmp_path, ["model=MinGRU"], None)
    with pytest.warns(SlowPathWarning, match="no compiled kernel .on purpose.*Run `make it`"):
        engine.start(cells)


def test_a_comparison_says_so_before_its_runs_start(no_kernel, tmp_path, monkeypatch):
    def interrupted(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(_grid, "_start", interrupted)
    [cell] = plan_grid({"LSTM": RunConfig()}, tmp_path, lengths=[3])
    with pytest.warns(SlowPathWarning, match="no compiled kernel"), pytest.raises(KeyboardInterrupt):
        carry_out([cell], jobs=1)


@pytest.mark.parametrize(
    ("dtype", "device", "reason"),
    [(torch.float32, "cuda", "not on 'cuda'"), (torch.complex64, "cpu", "does not take torch.complex64")],
)
def test_other_devices_and_dtypes_are_said_once(untold, dtype, device, reason):
    with pytest.warns(SlowPathWarning, match=reason):
        _slow_path.warn_of_device_and_dtype(dtype, torch.device(device))
    _slow_path.warn_of_device_and_dtype(dtype, torch.device(device))


def test_a_scan_on_another_device_says_so_once(untold):
    spec = ScanSpec("lstm", Screened(2, 2))
    with FakeTensorMode():  # a tensor that says that it is on a GPU, on a machine without one
        x = torch.empty(5, 2, 3, device="cuda")
    assert _backend.choose_backend("reference", spec, x) == "reference"
    with pytest.warns(SlowPathWarning, match=r"not on 'cuda'. Keep layer and input on the CPU.*backend='reference'"):
        assert _backend.choose_backend("auto", spec, x) == "reference"
    assert _backend.choose_backend("auto", spec, x) == "reference"  # a second warning would be an error


def test_nothing_is_said_where_the_kernel_could_not_have_run(untold):
    x = torch.zeros(3, 2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for spec in (ScanSpec("rnn", Screened(2, 2), combine="concat"), ScanSpec("rnn", Strided(2, 1, score="mlp"))):
            assert _backend.choose_backend("auto", spec, x) == "reference"
        assert _backend.choose_backend("auto", ScanSpec("rnn"), x.to("meta")) == "reference"
        torch.func.vmap(lambda row: torch.tensor(_backend.choose_backend("auto", ScanSpec("rnn"), row) == "fused"))(x)


@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_that_has_a_name_is_in_the_kernel(screen):
    if _backend.library().problem is not None:
        pytest.skip("there is no kernel")
    spec = ScanSpec("lstm", Screened(2, 1, screen=screen))
    assert _backend.choose_backend("auto", spec, torch.zeros(5, 2, 3)) == "fused"
