"""The portable kernel on another processor: compiled for 64-bit ARM, run by an emulator in user mode."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "src" / "remanence" / "csrc" / "kernel"
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"


@pytest.mark.slow
@pytest.mark.parametrize("program", ["check_kernel", "check_stack", "check_pairs"])
def test_the_portable_kernel_is_right_on_arm(program, tmp_path, require_or_skip):
    for tool, package in ((COMPILER, "g++-aarch64-linux-gnu"), (EMULATOR, "qemu-user")):
        if shutil.which(tool) is None:
            require_or_skip("arm", f"there is no {tool}; on Debian it is in the package {package}")
    built = tmp_path / program
    flags = ["-std=c++20", "-O2", "-static", "-DREMANENCE_POISON", "-DREMANENCE_PORTABLE_ONLY", f"-I{SOURCES}"]
    files = [str(HERE / f"{program}.cpp"), str(SOURCES / "portable.cpp"), "-o", str(built)]
    subprocess.run([COMPILER, *flags, *files], check=True)
    result = subprocess.run([EMULATOR, str(built)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
