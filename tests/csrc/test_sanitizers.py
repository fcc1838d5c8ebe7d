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
KERNEL = ["-DREMANENCE_POISON", "-DREMANENCE_PORTABLE_ONLY"]


@pytest.fixture
def check(tmp_path, require_or_skip):
    """Builds one of the programs beside this file with the sanitizers, runs it, and fails with what it says."""
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        require_or_skip("kernel", "there is no C++ compiler")

    def run(program: str, *arguments: str) -> None:
        built = tmp_path / program
        files = [str(HERE / f"{program}.cpp"), "-o", str(built)]
        subprocess.run([compiler, "-std=c++20", f"-I{SOURCES}", *SANITIZE, *arguments, *files], check=True)
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
        result = subprocess.run([str(built)], capture_output=True, text=True, env=environment)
        assert result.returncode == 0, result.stdout + result.stderr

    return run


@pytest.mark.slow
def test_no_sanitizer_complains_and_gradients_are_differences(check):
    check("check_kernel", *KERNEL, str(SOURCES / "kernel_portable.cpp"))


@pytest.mark.slow
def test_generation_and_single_steps_have_the_bits_of_the_scan(check):
    check("check_stack", *KERNEL, str(SOURCES / "kernel_portable.cpp"))


@pytest.mark.slow
def test_pairs_are_counted_right_under_the_sanitizers(check):
    check("check_pairs")
