"""A cell of one's own in the kernel: one file and its name in the list, and every check of the kernel takes it too."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "src" / "remanence" / "csrc"


@pytest.mark.slow
def test_a_cell_is_one_file_and_a_name_in_the_list(tmp_path, require_or_skip):
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        require_or_skip("kernel", "there is no C++ compiler")
    shutil.copytree(SOURCES, tmp_path / "csrc")
    shutil.copy(HERE / "mgu.inc", tmp_path / "csrc" / "cells")
    names = tmp_path / "csrc" / "cells" / "list.inc"
    text = names.read_text(encoding="utf-8")
    text = text.replace('#include "rnn.inc"', '#include "mgu.inc"\n#include "rnn.inc"').replace("GORU>;", "GORU, MGU>;")
    names.write_text(text, encoding="utf-8")
    kernel = tmp_path / "csrc" / "kernel"
    program = tmp_path / "check"
    flags = ["-std=c++20", "-O1", "-DREMANENCE_POISON", "-DREMANENCE_PORTABLE_ONLY", f"-I{kernel}"]
    files = [str(HERE / "check_kernel.cpp"), str(kernel / "portable.cpp")]
    subprocess.run([compiler, *flags, *files, "-o", str(program)], check=True)
    result = subprocess.run([str(program)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
    assert "5 cells" in result.stdout
