"""How often the jobs of an engine are looked at, and what else a process runs that is started for one."""

import os
import sys

import pytest

from remanence.runs import _processes, run_jobs


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Busy:
    """An engine that is done after so many polls."""

    def __init__(self, polls):
        self.left = polls

    def start(self, jobs):
        pass

    def poll(self):
        self.left -= 1
        return self.left >= 0

    def stop(self):
        pass


@pytest.mark.parametrize(("look_seconds", "looks"), [(0.0, 200), (1.0, 3)])
def test_looks_that_take_long_are_rare(monkeypatch, look_seconds, looks):
    clock = Clock()
    monkeypatch.setattr(_processes, "time", clock)
    seen = []

    def look():
        seen.append(clock.now)
        clock.now += look_seconds

    run_jobs(Busy(200), [], look, pause=0.5)
    assert len(seen) == looks


@pytest.mark.parametrize("at_home", [False, True])
def test_a_process_imports_from_the_current_folder_only_if_this_one_does(tmp_path, monkeypatch, at_home):
    here = tmp_path / "here"  # a run's folder, say, in which the user stands
    here.mkdir()
    (here / "argparse.py").write_text("print('planted')")
    monkeypatch.chdir(here)
    elsewhere = [place for place in sys.path if os.path.abspath(place) != str(here)]
    monkeypatch.setattr(sys, "path", [str(here) if at_home else str(tmp_path), *elsewhere])
    process = _processes.start_process("json.tool", ["--help"], tmp_path / "output.txt", threads=1)
    process.wait(60)
    assert ("planted" in (tmp_path / "output.txt").read_text()) == at_home
