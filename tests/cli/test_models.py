import json

from typer.testing import CliRunner

from remanence import nn
from remanence.cli._app import app
from remanence.cli._listing import COLUMNS

runner = CliRunner()


def test_every_model_has_a_row_with_every_column_filled():
    result = runner.invoke(app, ["models", "--json"])
    assert result.exit_code == 0
    rows = json.loads(result.output)
    assert [row["name"] for row in rows] == [model.name for model in nn.list_models()]
    for row in rows:
        assert (row.pop("kind"), row.pop("version")) == ("model", 1)
        assert tuple(row) == COLUMNS
        assert all(isinstance(value, str) and value for value in row.values()), row


def test_every_listed_model_is_a_public_name():
    assert {model.name for model in nn.list_models()} <= set(nn.__all__)


def test_the_table_names_every_model(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    result = runner.invoke(app, ["models"])
    assert result.exit_code == 0
    assert all(model.name in result.output for model in nn.list_models())


def test_marks_of_the_documentation_are_not_shown(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    marked = nn.ModelInfo("Some", "Uses ``h`` and **grows** [a; b].", "000", "rnn", "none")
    monkeypatch.setattr(nn, "list_models", lambda: [marked])
    assert "Uses h and grows [a; b]." in runner.invoke(app, ["models"]).output
