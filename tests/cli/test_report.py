import json
import re

import pytest
from typer.testing import CliRunner

from remanence.claims import verify
from remanence.cli._app import app

pytest.importorskip("plotly")
runner = CliRunner()


@pytest.fixture
def claims(tmp_path):
    path = tmp_path / "verify.json"
    path.write_text(json.dumps([result.to_dict() for result in verify(only="notes/4.1", quick=True)]))
    return path


def test_the_page_is_written_and_its_path_printed(claims, tmp_path):
    out = tmp_path / "deep" / "page.html"
    result = runner.invoke(app, ["report", str(claims), "-o", str(out)])
    assert result.exit_code == 0
    assert result.stdout.strip() == str(out)
    assert "1 claim was measured: 1 holds." in out.read_text(encoding="utf-8")


def test_a_missing_path_is_one_line(tmp_path):
    result = runner.invoke(app, ["report", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert "existing file or folder" in result.output


def test_a_comparison_leaves_what_the_report_reads(tmp_path):
    tiny = ["task.options.items=2", "model.options.hidden_size=4", "budget.updates=2", "evaluation.batches=1"]
    settings = [word for setting in tiny for word in ("--set", setting)]
    folder = tmp_path / "runs"
    command = ["compare", "copy", "--models", "LSTM", "--lengths", "3", "--transfer", "5", "--folder", str(folder)]
    assert runner.invoke(app, [*command, *settings]).exit_code == 0
    kept = json.loads((folder / "comparison.json").read_text())
    assert [row["measured_at"] for row in kept["transfer"]] == [5]
    page = tmp_path / "page.html"
    assert runner.invoke(app, ["report", str(folder), "-o", str(page), "--no-probes"]).exit_code == 0
    assert "Accuracy without more training" in page.read_text(encoding="utf-8")
    assert "comparison.json is missing" not in words_of(page)
    (folder / "comparison.json").unlink()
    assert runner.invoke(app, ["report", str(folder), "-o", str(page), "--no-probes"]).exit_code == 0
    assert "comparison.json is missing" in words_of(page)


def words_of(page):
    """The text of a page without its tags."""
    return " ".join(re.sub("<[^>]*>", " ", page.read_text(encoding="utf-8")).split())
