"""No link in a run's folder is followed: what it leads to is neither shown, nor taken for the run's, nor changed."""

from functools import partial
from pathlib import Path

import pytest

from remanence.report import write_report
from remanence.runs import CheckpointError, DamagedFileError, TensorBoard, list_checkpoints, load_best, read_file
from remanence.train import Run, config_from, resume, train

TINY = {
    "task": {"name": "copy", "options": {"length": 3, "items": 2}, "batch_size": 2},
    "model": {"options": {"hidden_size": 3}},
    "budget": {"updates": 4},
    "loop": {"log_every": 1, "save_every": 2},
    "evaluation": {"every": 2, "batches": 1, "batch_size": 2},
}
SECRET = "what lies outside is nobody's business"
WEIGHTS = ("best", "last")


@pytest.fixture
def folder(tmp_path) -> Path:
    train(config_from(TINY), tmp_path / "run")
    return tmp_path / "run"


def move_out(path: Path) -> Path:
    """Moves a file or folder elsewhere and leaves a link in its place."""
    outside = path.parents[1] / f"outside-{path.name}"
    path.rename(outside)
    path.symlink_to(outside)
    return outside


@pytest.mark.parametrize("name", ["config.toml", "status.json", "manifest.json", "metrics.jsonl"])
def test_a_file_that_is_a_link_is_not_read(folder, name):
    move_out(folder / name)
    with pytest.raises(DamagedFileError, match=f"{name} is a link"):
        read_file(folder / name)
    with pytest.raises(DamagedFileError, match="is a link"):
        resume(folder, config=config_from({"budget": {"updates": 6}}, config_from(TINY)))


def test_a_page_does_not_show_what_a_link_leads_to(folder, tmp_path):
    pytest.importorskip("plotly")
    (tmp_path / "secret").write_text(SECRET)
    (folder / "config.toml").unlink()
    (folder / "config.toml").symlink_to(tmp_path / "secret")
    page = write_report([folder], tmp_path / "page.html", measure=False).read_text(encoding="utf-8")
    assert SECRET not in page
    assert "config.toml" in page
    assert "is a link" in page


def test_checkpoints_elsewhere_are_neither_taken_nor_removed(folder):
    outside = move_out(folder / "checkpoint")
    (outside / ".writing-1-mine").write_text("dear")
    before = sorted(path.name for path in outside.iterdir())
    longer = config_from({"budget": {"updates": 20}}, Run(folder).config)
    for attempt in (lambda: resume(folder, config=longer), *(partial(Run(folder).weights, which) for which in WEIGHTS)):
        with pytest.raises(DamagedFileError, match="checkpoint is a link"):
            attempt()
    assert sorted(path.name for path in outside.iterdir()) == before


def test_one_checkpoint_elsewhere_counts_as_damaged(folder):
    first, last = list_checkpoints(folder / "checkpoint")
    last.rename(folder.parent / last.name)
    last.symlink_to(folder.parent / last.name)
    assert Run(folder).weights("last").update == int(first.name)


def test_best_weights_elsewhere_are_not_taken(folder):
    move_out(folder / "checkpoint" / "best.safetensors")
    with pytest.raises(CheckpointError, match="is a link"):
        load_best(folder / "checkpoint")


def test_events_are_not_written_elsewhere(tmp_path):
    pytest.importorskip("tensorboard")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tensorboard").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamagedFileError, match="tensorboard is a link"):
        TensorBoard(tmp_path / "tensorboard", 0, say=lambda text: None)
    assert list((tmp_path / "elsewhere").iterdir()) == []
