"""The Ray engine on a real cluster of two nodes on this machine."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
import torch

from remanence.experiments import TableCell, Work, carry_out, find_experiment, make_engine, plan_cells, run_cells
from remanence.experiments.engines import _ray as engine
from remanence.train import Run, RunConfig, with_settings

TABLE = find_experiment("kerg2020/table-2")
LONGER = ["budget.updates=1500", "loop.save_every=50", "loop.log_every=50", "evaluation.every=1500"]
DRIVER = """
import sys
sys.path[:0] = sys.argv[4:]
from test_ray import longer
from remanence.experiments import make_engine, run_cells
cells = longer(sys.argv[1], sys.argv[3])
sys.exit(len(run_cells(cells, make_engine("ray", 2, sys.argv[2], sys.argv[3] or sys.argv[1]))))
"""


def longer(folder, url=""):
    """One cell a node, of several seconds, which saves often; a storage mirrors its folder if there is a URL."""
    cells = []
    for cell in plan_cells(TABLE, "smoke", folder, ["model=LSTM"], [0, 1]):
        assert isinstance(cell.work.config, RunConfig)
        work = Work(with_settings(cell.work.config, LONGER), cell.work.measures)
        cells.append(TableCell(cell.place, work, cell.root, url))
    return cells


def node_of(cell, nodes):
    """The node whose worker has taken it up last."""
    command = Run.open(cell.folder / "run").manifest["command"]
    (node,) = [node for node in nodes if f"--node-id={node.node_id}" in command]
    return node


def lose(cluster, cell):
    """As when a machine loses its power: Ray alone would let workers go on until they notice, perhaps to the end."""
    import psutil  # which Ray brings along

    node = node_of(cell, cluster.nodes)
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    workers = raylet.children(recursive=True)
    for process in (raylet, *workers):
        process.kill()
    assert not cell.is_done, "it was killed too late"
    cluster.remove_node(node, allow_graceful=False)
    return node


def weights(cell):
    return Run.open(cell.folder / "run").load("last")[0].state_dict()


def completions(cell):
    """How often its run was carried to the end."""
    return (cell.folder / "output.txt").read_text().count("done at update")


def wait_for(condition, seconds=600.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def started():
    """A cluster with a head without cores; starting one takes most of the time here, so the tests share it."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        # Ray gives its workers a niceness of 15, with which they would starve beside other work on this machine.
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_raylet_start_wait_time_s", "600")  # half a minute is short on a busy machine
        made = Cluster()
        try:
            made.add_node(num_cpus=0)
            yield made
        finally:
            made.shutdown()


@pytest.fixture
def has_ray(require_or_skip):
    """Skips, or fails where it is required, if Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        require_or_skip("ray", "Ray is not installed")


@pytest.fixture
def cluster(has_ray, request):
    """Two nodes of one core each, beside the head; what a test has killed is replaced."""
    import ray

    made = request.getfixturevalue("started")
    while len(made.list_all_nodes()) < 3:
        made.add_node(num_cpus=1)
    made.nodes = [node for node in made.list_all_nodes() if node is not made.head_node]
    yield made
    ray.shutdown()


@pytest.mark.slow
def test_ray_fills_cells_with_the_bits_of_the_local_engine(cluster, tmp_path):
    cells = plan_cells(TABLE, "smoke", tmp_path / "ray", ["model=RelRNN,LSTM"])
    assert run_cells(cells, make_engine("ray", None, cluster.address, tmp_path / "ray"), pause=0.2) == []
    here = plan_cells(TABLE, "smoke", tmp_path / "local", ["model=RelRNN,LSTM"])
    assert run_cells(here, make_engine("local", 1), pause=0.2) == []
    for one, other in zip(cells, here, strict=True):
        torch.testing.assert_close(weights(one), weights(other), rtol=0, atol=0)
        assert one.result("answers") == other.result("answers")


@pytest.mark.slow
def test_a_node_is_lost(cluster, tmp_path):
    cells = longer(tmp_path / "ray")
    lost = []

    def look(rows):
        begun = [cell for cell, row in zip(cells, rows, strict=True) if 0 < row["update"] < row["budget"]]
        if begun and not lost:
            lost.extend([begun[0], lose(cluster, begun[0])])

    assert run_cells(cells, make_engine("ray", None, cluster.address, tmp_path / "ray"), look, pause=0.1) == []
    cell, node = lost
    assert node_of(cell, cluster.nodes) is not node
    assert all(cell.state.is_done for cell in cells)
    assert [completions(cell) for cell in cells] == [1] * len(cells)
    (alone,) = [other for other in longer(tmp_path / "alone") if other.work == cell.work]
    carry_out(alone.work, alone.folder)
    torch.testing.assert_close(weights(cell), weights(alone), rtol=0, atol=0)


@pytest.fixture
def mirrored_often(monkeypatch):
    """Driver and workers look at the storage several times a second; both import their own copy of the pause."""

    def fill(*arguments):  # within a function, so that Ray sends its code and not its name
        from remanence.experiments import _storage
        from remanence.experiments.engines import _ray

        _storage.PAUSE = 0.2
        return _ray.fill(*arguments)

    monkeypatch.setattr("remanence.experiments.engines._ray.fill", fill)
    monkeypatch.setattr("remanence.experiments._driver.PAUSE", 0.2)


@pytest.mark.slow
@pytest.mark.usefixtures("mirrored_often")
def test_a_node_is_lost_and_its_cells_go_on_from_a_storage(cluster, tmp_path):
    url = f"file://{tmp_path}/storage"
    cells = longer(tmp_path / "driver", url)
    lost = []

    def look(rows):
        begun = [cell for cell, row in zip(cells, rows, strict=True) if 300 <= row["update"] < row["budget"]]
        if begun and not lost:
            lines = begun[0].history.training
            lost.extend([begun[0], lose(cluster, begun[0]), lines])

    assert run_cells(cells, make_engine("ray", None, cluster.address, url), look, pause=0.1) == []
    assert all(cell.state.is_done for cell in cells)
    cell, node, lines = lost
    assert node_of(cell, cluster.nodes) is not node
    assert cell.history.training[:2] == lines[:2], "with their seconds: it did not begin anew"
    (alone,) = [other for other in longer(tmp_path / "alone", "") if other.work == cell.work]
    carry_out(alone.work, alone.folder)
    torch.testing.assert_close(weights(cell), weights(alone), rtol=0, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("mirrored", [False, True], ids=["folder", "storage"])
def test_the_driver_is_lost_and_started_again(cluster, tmp_path, mirrored):
    url = f"file://{tmp_path}/storage" if mirrored else ""
    folder = tmp_path / "driver"
    cells = longer(folder, url)
    command = [sys.executable, "-c", DRIVER, str(folder), cluster.address, url, os.path.dirname(__file__)]
    first = subprocess.Popen(command)
    wait_for(lambda: any(cell.state.update > 0 for cell in cells))
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert not all(cell.state.is_done for cell in cells), "it was killed too late"
    assert subprocess.run(command, timeout=900, check=False).returncode == 0
    assert all(cell.state.is_done for cell in cells)
    assert [completions(cell) for cell in cells] == [1] * len(cells)


def test_storage_that_a_node_does_not_see_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_asked", lambda ray, path: {"10.0.0.1": True, "10.0.0.2": False})
    with pytest.raises(ValueError, match=r"which 10\.0\.0\.2 cannot read.*--storage"):
        engine._check_storage(None, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_storage_of_which_every_process_has_its_own_is_refused(cluster):
    with pytest.raises(ValueError, match=r"cannot read.*--storage"):
        make_engine("ray", None, cluster.address, "memory://cells")


def test_a_task_begins_in_an_empty_folder_of_its_own_and_leaves_none(tmp_path, monkeypatch):
    """Else what another task has left on the node would count as done."""
    begun = []

    def carry_out(work, folder, **named):
        begun.append((folder, [path for path in folder.rglob("*") if path.name != engine.LOG]))
        (folder / "run").mkdir()

    monkeypatch.setattr(engine, "carry_out", carry_out)
    (cell, *_) = longer(tmp_path, "memory://cells")
    for _ in range(2):
        engine.fill(cell.work.to_dict(), str(cell.folder), cell.storage)
    (first, found), (second, found_again) = begun
    assert (found, found_again) == ([], [])
    assert first.name == second.name == cell.folder.name
    assert first != second
    assert not first.exists()
    assert not second.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("has_ray")
def test_a_cluster_that_does_not_answer_is_named():
    with pytest.raises(ValueError, match="ray start --head"):
        make_engine("ray", None, "127.0.0.1:1")


@pytest.mark.parametrize("how", ["variable", "file"])
def test_a_cluster_that_is_gone_is_named_though_auto_still_finds_its_address(monkeypatch, tmp_path, how):
    class Ray:
        is_initialized = staticmethod(lambda: False)

        def init(self, **options):
            raise AssertionError("Ray would try for minutes")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    if how == "variable":
        monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    else:
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray" / "ray_current_cluster").write_text("127.0.0.1:1\n")
    with pytest.raises(ValueError, match=r"got 'auto', which is 127\.0\.0\.1:1\. Start one with `ray start --head`"):
        engine._connect(Ray(), "auto")


@pytest.fixture
def listening(monkeypatch):
    """Makes a program that listens and answers in its own words, and gives its address."""
    monkeypatch.setattr(engine, "KNOCKING", 5.0)
    servers = []

    def listen(answer):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def serve():
            caller, _ = server.accept()
            with caller:
                caller.recv(1000)
                caller.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{server.getsockname()[1]}"

    yield listen
    for server in servers:
        server.close()


class Ray:
    """Stands in for the package: it tells whether it was asked to connect."""

    def __init__(self):
        self.asked = False

    def is_initialized(self):
        return False

    def init(self, **options):
        self.asked = True


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""], ids=["words", "nothing"])
def test_an_address_that_another_program_has_taken_is_named(listening, answer):
    ray = Ray()
    with pytest.raises(ValueError, match=r"be that of a Ray cluster that answers.*another program listens there"):
        engine._connect(ray, listening(answer))
    assert not ray.asked


def test_an_address_that_says_nothing_is_named_in_time(monkeypatch):
    monkeypatch.setattr(engine, "KNOCKING", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ValueError, match=r"ray start --head.*timed out"):
            engine._connect(Ray(), address)


def test_an_address_that_speaks_as_ray_does_is_tried(listening):
    ray = Ray()
    engine._connect(ray, listening(bytes((0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100))))
    assert ray.asked


def test_without_ray_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"remanence\[cluster\]"):
        make_engine("ray")
