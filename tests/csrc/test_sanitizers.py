"""The kernel under the address and undefined-behaviour sanitizers, with scratch memory full of NaN.

First its arithmetic alone, in programs without Python; then the package itself, given what it should refuse.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "src" / "remanence"
SOURCES = PACKAGE / "csrc" / "kernel"
BINDINGS = PACKAGE / "csrc" / "torch"
TORCH = Path(torch.__file__).parent
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]
KERNEL = ["-DREMANENCE_POISON", "-DREMANENCE_PORTABLE_ONLY"]
SHARED = ["-fPIC", "-fvisibility=hidden"]
BINDING = ["-DTORCH_TARGET_VERSION=0x020b000000000000", '-DREMANENCE_SOURCE_HASH="sanitized"']


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
    return compile_with_sanitizers("kernel.o", *KERNEL, *SHARED, "-c", str(SOURCES / "portable.cpp"))


def check(program: str) -> None:
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    result = subprocess.run([program], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def package(compile_with_sanitizers, kernel, tmp_path_factory) -> Path:
    """A folder with a copy of the package whose kernel, checks at the boundary and all, has the sanitizers."""
    folder = tmp_path_factory.mktemp("sanitized")
    left_out = shutil.ignore_patterns("*.so", "csrc", "_build.json", "__pycache__")
    shutil.copytree(PACKAGE, folder / "remanence", ignore=left_out)
    headers = ["-isystem", str(TORCH / "include"), *BINDING, *KERNEL, *SHARED]
    objects = [
        compile_with_sanitizers(f"{file.stem}.o", *headers, "-c", str(file)) for file in sorted(BINDINGS.glob("*.cpp"))
    ]
    libraries = [f"-L{TORCH / 'lib'}", "-ltorch_cpu", "-ltorch", "-lc10"]
    made = compile_with_sanitizers("_kernel.abi3.so", "-shared", *objects, kernel, *libraries)
    shutil.copy(made, folder / "remanence")
    return folder


def runtimes() -> str:
    """What must be loaded before Python: the sanitizer's own library, and the one whose exceptions it watches."""
    compiler = os.environ.get("CXX", "c++")
    asked = [[compiler, f"-print-file-name={name}"] for name in ("libasan.so", "libstdc++.so")]
    return " ".join(subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip() for words in asked)


@pytest.mark.slow
def test_malformed_calls_are_refused_or_answered_within_bounds(package, require_or_skip):
    preload = runtimes()
    if not preload.startswith("/"):
        require_or_skip("kernel", "this compiler has no shared address sanitizer")
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "LD_PRELOAD": preload}
    environment |= {"PYTHONPATH": os.pathsep.join([str(package), str(ROOT)]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.csrc.malformed", "--cases", "120"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert result.returncode == 0, result.stderr[-5000:]
    answered, refused = (int(word) for word in result.stdout.split() if word.isdigit())
    assert answered > 100
    assert refused > 600


@pytest.mark.slow
def test_no_sanitizer_complains_and_gradients_are_differences(compile_with_sanitizers, kernel):
    check(compile_with_sanitizers("check_kernel", *KERNEL, str(HERE / "check_kernel.cpp"), kernel))


@pytest.mark.slow
def test_generation_and_single_steps_have_the_bits_of_the_scan(compile_with_sanitizers, kernel):
    check(compile_with_sanitizers("check_stack", *KERNEL, str(HERE / "check_stack.cpp"), kernel))


@pytest.mark.slow
def test_pairs_are_counted_right_under_the_sanitizers(compile_with_sanitizers):
    check(compile_with_sanitizers("check_pairs", str(HERE / "check_pairs.cpp")))
