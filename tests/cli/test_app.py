import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import remanence
from remanence.cli._app import app

runner = CliRunner()


def test_version_is_that_of_the_package():
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"remanence {remanence.__version__}\n"


@pytest.mark.parametrize("command", ["models", "doctor", "demo"])
def test_help_names_every_command(command):
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert command in result.output


def _every_command():
    """Words that call each command, and the two groups."""
    yield []
    for name, command in typer.main.get_command(app).commands.items():
        yield [name]
        for below in getattr(command, "commands", {}):
            yield [name, below]


@pytest.mark.parametrize("words", list(_every_command()), ids=" ".join)
def test_help_reads_as_a_manual(words):
    shown = runner.invoke(app, [*words, "--help"], env={"COLUMNS": "80"}).output
    usage = next(line for line in shown.splitlines() if "Usage" in line)
    assert "…" not in shown  # nothing is cut
    assert "<bool>" not in shown  # a flag takes no value
    assert "list[" not in shown  # no type of Python
    assert not set("{}") & set(usage)
    assert "[[" not in usage


def test_help_does_not_load_torch():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom remanence.cli._app import app\n"
        "CliRunner().invoke(app, ['--help'])\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_an_unknown_command_fails_and_says_so():
    result = runner.invoke(app, ["modles"])
    assert result.exit_code == 2
    assert "modles" in result.output


def test_no_command_shows_the_help():
    assert "Usage" in runner.invoke(app, []).output


def test_the_demo_is_loaded_only_when_it_runs(monkeypatch):
    import remanence.cli._demo as demo

    called = []
    monkeypatch.setattr(demo, "run_demo", lambda **options: called.append(options))
    assert runner.invoke(app, ["demo", "--seed", "3", "--folder", "here"]).exit_code == 0
    assert called == [{"quick": False, "seed": 3, "folder": Path("here")}]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--version"], ["--help"], ["models"], ["tasks"]])
def test_an_output_that_is_full_is_one_line(words, unbuffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "remanence", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: [Errno 28] No space left on device\n"


def test_python_dash_m_remanence_works():
    done = subprocess.run([sys.executable, "-m", "remanence", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[0]) == (0, "remanence")
