"""A few seconds of the campaign, so that it does not rot: killed runs, damaged files, no room, several starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.torture.pages import Shown

ROOT = Path(__file__).parents[2]
CODE = """
import json, os, random, pathlib, sys
from tests.torture import __main__ as torture
scratch, draws, table = pathlib.Path(sys.argv[1]), random.Random(4), torture.FaultTable(4)
os.environ["REMANENCE_TRUST"] = str(scratch / "trusted")
train = torture.COMMANDS["train"]
torture.prepare([[*train, scratch / "warm"], ["evaluate", scratch / "warm"]])
references = torture.References(scratch)
kills = torture.Kills(references, table, draws, most=3)
kills.at_random("train")
kills.at_changes("train")
torture.Sharing(references, table, draws).attempt("train")
storage = torture.Storage(references, table, draws)
for fault in storage.faults:
    storage.take(fault, "train")
damage = torture.Damage(references, table, draws, ["train"])
for fault in ("one bit flipped", "a pipe instead"):
    damage.ask("train", fault, pathlib.Path("checkpoint/best.safetensors"), "evaluate")
print(json.dumps(table.to_dict()))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> dict:
    """In a process of its own, which forks: pytest's own process has threads, and those do not like forks."""
    command = [sys.executable, "-c", CODE, str(tmp_path_factory.mktemp("torture"))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_nothing_is_lost_and_nothing_wrong(told):
    assert told["kind"] == "fault-table"
    assert told["findings"] == []
    assert sum(row["survived"] for row in told["rows"]) > 6


def test_a_flipped_bit_and_a_pipe_are_refused(told):
    refused = {row["fault"]: row["refused"] for row in told["rows"] if row["command"] == "evaluate"}
    assert (refused["one bit flipped"], refused["a pipe instead"]) == (1, 1)


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ('<html data-drawn="3"><script>let a = "<x-hit>"</script><p>&lt;x-hit&gt;', ""),
        ('<html data-drawn="3"><p><x-hit></x-hit>', "strings of files became elements: x-hit"),
        ('<html data-drawn="3"><img src="x" onerror="a()">', "strings of files became elements: img"),
        ('<html data-drawn="3"><a href="javascript:a()">', "strings of files became elements: a"),
        ('<html data-drawn="3" data-hit="1">', "a string of a file was executed"),
        ("<html>", "the pictures were not drawn: {}"),
    ],
)
def test_what_came_alive_in_a_page_is_seen(page, complaint):
    shown = Shown()
    shown.feed(page)
    assert ", ".join(shown.complaints()) == complaint
