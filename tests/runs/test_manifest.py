"""What a manifest asks of the machine."""

import os
import shutil
import subprocess

import pytest

from remanence.runs import _manifest


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_asking_git_does_not_touch_the_checkout(tmp_path):
    """Else a run that is killed while it asks leaves ``index.lock`` behind."""
    who = ["-c", "user.name=a", "-c", "user.email=a"]
    (tmp_path / "a.txt").write_text("a")
    for words in (["init", "-q"], ["add", "a.txt"], [*who, "commit", "-qm", "a"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    os.utime(tmp_path / "a.txt", (1, 1))  # git wants to note the new time
    before = (tmp_path / ".git" / "index").read_bytes()
    assert _manifest._git(tmp_path, "status", "--porcelain") == ""
    assert (tmp_path / ".git" / "index").read_bytes() == before
