"""A few seconds of the campaign, so that it does not rot: one killed run, one damaged file, several starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = """
import json, random, pathlib, sys
from tests.torture import __main__ as torture
torture.prepare()
scratch, draws, table = pathlib.Path(sys.argv[1]), random.Random(4), torture.FaultTable(4, 0.0)
kills = torture.Kills(scratch, table, draws, most=3)
kills.attempt("train")
torture.share(kills, scratch, table, draws)
damage = torture.Damage(scratch, table, draws, ["train"])
for fault in ("one bit flipped", "a pipe instead"):
    damage._ask(damage.models[0], fault, pathlib.Path("checkpoint/best.safetensors"), "evaluate")
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
    assert sum(row["survived"] for row in told["rows"]) > 2


def test_a_flipped_bit_and_a_pipe_are_refused(told):
    refused = {row["fault"]: row["refused"] for row in told["rows"]}
    assert (refused["one bit flipped"], refused["a pipe instead"]) == (1, 1)
