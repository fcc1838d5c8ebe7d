"""The house rules of the C++ sources: where torch may appear, and that every file compiles without a warning."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

SOURCES = Path(__file__).resolve().parents[2] / "src" / "remanence" / "csrc"
FILES = sorted(SOURCES.rglob("*.cpp"))
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"]


def test_the_arithmetic_includes_no_torch_header():
    for file in SOURCES.rglob("*"):
        if file.is_dir() or file.parent.name == "torch":
            continue
        assert not re.search(r'#include\s*[<"].*torch', file.read_text(encoding="utf-8")), file


def test_a_header_is_guarded_and_a_fragment_is_not():
    for file in SOURCES.rglob("*.h"):
        assert "#pragma once" in file.read_text(encoding="utf-8"), file
    for file in SOURCES.rglob("*.inc"):
        assert "#pragma once" not in file.read_text(encoding="utf-8"), file


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_compiles_without_a_warning(file, require_or_skip):
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        require_or_skip("kernel", "there is no C++ compiler")
    # Torch's own headers are not ours to mend: as system headers they do not warn.
    torch_headers = [
        "-isystem",
        str(Path(torch.__file__).parent / "include"),
        "-DTORCH_TARGET_VERSION=0x020b000000000000",
    ]
    command = [compiler, "-std=c++20", "-fsyntax-only", *WARNINGS, *torch_headers, str(file)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
