"""The kernel's arithmetic under the address and undefined-behaviour sanitizers, with scratch memory full of NaN."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "src" / "remanence" / "csrc" / "kernel"
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]
KERNEL = ["-DREMANENCE_POISON", "-DREMANENCE_PORTABLE_ONLY"]


@pytest.fixture(scope="module")
def compile_with_sanitizers(tmp_path_factory, require_or_skip):
    """Gives ``compile(name, *arguments)``, which calls the compiler and returns what it made."""
    compiler, folder = os.environ.get("CXX", "c++"), tmp_path_factory.mktemp("csrc")
    if shutil.which(compiler) is None:
        require_or_skip("kernel", "there is no C++ compiler")

    def run(name: str, *arguments: str) -> str:
        made = str(folder / name)
        subprocess.run([compiler, "-std=c++20", f"-I{SOURCES}", *SANITIZE, *arguments, "-o", made], check=True)
        return made

    return run


@pytest.fixture(scope="module")
def kernel(compile_with_sanitizers) -> str:
    """The portable kernel, which takes far longer to compile than the programs that check it."""
    return compile_with_sanitizers("kernel.o", *KERNEL, "-c", str(SOURCES / "portable.cpp"))


def check(program: str) -> None:
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    result = subprocess.run([program], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_no_sanitizer_complains_and_gradients_are_differences(compile_with_sanitizers, kernel):
    check(compile_with_sanitizers("check_kernel", *KERNEL, str(HERE / "check_kernel.cpp"), kernel))


@pytest.mark.slow
def test_generation_and_single_steps_have_the_bits_of_the_scan(compile_with_sanitizers, kernel):
    check(compile_with_sanitizers("check_stack", *KERNEL, str(HERE / "check_stack.cpp"), kernel))


@pytest.mark.slow
def test_pairs_are_counted_right_under_the_sanitizers(compile_with_sanitizers):
    check(compile_with_sanitizers("check_pairs", str(HERE / "check_pairs.cpp")))
