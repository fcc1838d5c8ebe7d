"""A build that fails leaves a working package behind, which says why and what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("setup.py", "pyproject.toml", "README.md", "LICENSE")

WORKS = """
import json, torch
from remanence import nn, ops
from remanence.cli._doctor import collect_report
output, _ = nn.RelLSTM(3, 4, recent=2, relevant=1)(torch.randn(5, 2, 3))
try:
    nn.RelLSTM(3, 4, recent=2, relevant=1, backend="fused")(torch.randn(5, 2, 3))
except RuntimeError as error:
    print(json.dumps({"shape": list(output.shape), "error": str(error), "backend": collect_report()["backend"]}))
"""


@pytest.fixture
def checkout(tmp_path) -> Path:
    """The sources that a build needs, without anything built."""
    for name in NEEDED:
        shutil.copy(ROOT / name, tmp_path / name)
    ignored = shutil.ignore_patterns("*.so", "_build.json", "__pycache__", "stored")
    shutil.copytree(ROOT / "src" / "remanence", tmp_path / "src" / "remanence", ignore=ignored)
    return tmp_path


def run(checkout: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "REMANENCE_REQUIRE"}
    environment = {**kept, "PYTHONPATH": str(checkout / "src"), **variables}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)


def build(checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(checkout, "setup.py", "build_ext", "--inplace", **variables)


def break_sources(checkout: Path) -> None:
    """Every file fails at once, so that the test need not wait for those that would compile."""
    header = checkout / "src" / "remanence" / "csrc" / "kernel" / "scan.h"
    header.write_text("#error broken on purpose\n" + header.read_text(encoding="utf-8"), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiler", "broken", "reason"),
    [
        ("/bin/false", False, "false failed"),
        ("no-such-compiler", False, "'no-such-compiler' was not found; install g++ or clang++, or set CXX"),
        ("c++", True, "broken on purpose"),
    ],
    ids=["failing compiler", "no compiler", "compile error"],
)
def test_a_failed_build_leaves_a_working_package_that_says_why(checkout, compiler, broken, reason, require_or_skip):
    if broken:
        break_sources(checkout)
        if shutil.which(compiler) is None:
            require_or_skip("kernel", "there is no C++ compiler")
    built = build(checkout, CXX=compiler)
    assert built.returncode == 0, built.stderr
    assert reason in built.stderr
    assert reason in json.loads((checkout / "src/remanence/_build.json").read_text(encoding="utf-8"))["error"]
    assert not list(checkout.glob("src/remanence/*.so"))

    works = run(checkout, "-c", WORKS)
    assert works.returncode == 0, works.stderr
    found = json.loads(works.stdout)
    assert found["shape"] == [5, 2, 4]
    assert reason in found["error"]
    assert found["backend"]["active"] == "reference"
    assert reason in found["backend"]["reason"]
    assert "pip install --no-build-isolation ." in found["backend"]["how_to_fix"]


def without_torch(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``setup.py`` in an environment like pip's isolated one."""
    hide = f"import sys, runpy; sys.modules['torch'] = None; sys.argv = {['setup.py', *arguments]}; "
    return run(checkout, "-c", hide + "runpy.run_path('setup.py', run_name='__main__')")


@pytest.mark.slow
def test_without_torch_no_metadata_is_made_so_that_pip_stops_before_its_downloads(checkout):
    refused = without_torch(checkout, "dist_info")
    assert refused.returncode != 0
    assert "pip install --no-build-isolation ." in refused.stderr
    assert not list(checkout.glob("*.dist-info"))


@pytest.mark.slow
def test_without_torch_nothing_is_installed_and_the_command_is_named(checkout):
    built = without_torch(checkout, "build_ext", "--inplace")
    assert built.returncode != 0
    assert "pip install --no-build-isolation ." in built.stderr
    assert not (checkout / "src/remanence/_build.json").exists()


def test_the_documentation_does_not_build_the_package_again():
    planned = subprocess.run(["make", "-n", "-B", "docs"], cwd=ROOT, capture_output=True, text=True)
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.count("--no-build-isolation") == 1  # the package itself, once


@pytest.mark.slow
def test_the_wheel_is_for_every_python_from_the_oldest_on(checkout):
    built = run(
        checkout, "setup.py", "-q", "bdist_wheel", CXX="/bin/false"
    )  # the tag knows nothing of what was compiled
    assert built.returncode == 0, built.stderr
    (wheel,) = (checkout / "dist").glob("*.whl")
    assert "-cp311-abi3-" in wheel.name


@pytest.mark.slow
def test_a_failed_build_is_fatal_where_the_kernel_is_required(checkout):
    built = build(checkout, CXX="/bin/false", REMANENCE_REQUIRE="data,kernel")
    assert built.returncode != 0
    assert "REMANENCE_REQUIRE names the kernel, but: false failed" in built.stderr
    works = run(checkout, "-c", WORKS, REMANENCE_REQUIRE="kernel")
    assert works.returncode != 0
    assert "the fused kernel is not available" in works.stderr
