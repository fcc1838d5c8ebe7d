"""The kernel's arithmetic under the address and undefined-behaviour sanitizers, with scratch memory full of NaN."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "src" / "remanence" / "csrc"
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]


@pytest.fixture(scope="module")
def program(tmp_path_factory, require_or_skip) -> Path:
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        require_or_skip("kernel", "there is no C++ compiler")
    built = tmp_path_factory.mktemp("csrc") / "check_kernel"
    flags = ["-std=c++20", "-DREMANENCE_POISON", "-DREMANENCE_PORTABLE_ONLY", f"-I{SOURCES}", *SANITIZE]
    files = [str(HERE / "check_kernel.cpp"), str(SOURCES / "kernel_portable.cpp")]
    subprocess.run([compiler, *flags, *files, "-o", str(built)], check=True)
    return built


@pytest.mark.slow
def test_no_sanitizer_complains_and_gradients_are_differences(program):
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    result = subprocess.run([str(program)], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_pairs_are_counted_right_under_the_sanitizers(tmp_path, require_or_skip):
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        require_or_skip("kernel", "there is no C++ compiler")
    built = tmp_path / "check_pairs"
    files = [str(HERE / "check_pairs.cpp"), "-o", str(built)]
    subprocess.run([compiler, "-std=c++20", f"-I{SOURCES}", *SANITIZE, *files], check=True)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    result = subprocess.run([str(built)], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
