"""Files of a run that are no regular files are named as problems; none is waited for."""

import os
from pathlib import Path

import pytest

from remanence.report import _run_record as records


@pytest.mark.parametrize("kind", ["pipe", "directory"])
def test_what_is_no_regular_file_is_named(tmp_path, kind):
    path = tmp_path / "metrics.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    for read, nothing in ((records.read_lines, []), (records.read_table, {}), (records.read_settings, ("", {}))):
        problems: list[records.Problem] = []
        assert read(path, problems) == nothing
        assert [problem.text for problem in problems] == ["cannot be read: it is no regular file"]


def test_deep_json_is_named(tmp_path):
    path: Path = tmp_path / "metrics.jsonl"
    path.write_text("[" * 100_000 + "\n")
    problems: list[records.Problem] = []
    assert records.read_lines(path, problems) == []
    assert records.read_table(path, problems) == {}
    assert len(problems) == 2
