"""A run folder is data: code that it names runs only if the user has named that very code, or says to trust it."""

import importlib.util
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from remanence.rl import PolicyConfig, load_policy, resume_policy
from remanence.runs import UntrustedCodeError, import_all, is_trusted, remember_code, require_trust, to_toml, trusting
from remanence.runs import _imports as imports
from remanence.runs import _trust as trust
from remanence.train import Run, config_from, resume, train

TINY = {
    "task": {"name": "copy", "options": {"length": 3, "items": 2}, "batch_size": 2},
    "model": {"options": {"hidden_size": 3}},
    "budget": {"updates": 1},
    "evaluation": {"batches": 1, "batch_size": 2},
}


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(trust, "_REMEMBERED", set())


def code(path: Path, mark: Path) -> Path:
    path.write_text(f"# {path.name}\nwith open({str(mark)!r}, 'a') as file:\n    file.write('x')\n")
    return path


def stranger(tmp_path: Path) -> tuple[Path, Path]:
    """A finished run whose settings a stranger has made to name code; the file that the code would write."""
    train(config_from(TINY), tmp_path / "run")
    mark = tmp_path / "ran"
    named = code(tmp_path / "evil.py", mark)
    settings = tmp_path / "run" / "config.toml"
    settings.write_text(settings.read_text().replace("imports = []", f'imports = ["{named}"]'))
    return tmp_path / "run", mark


def test_code_that_a_folder_names_does_not_run(tmp_path):
    folder, mark = stranger(tmp_path)
    longer = config_from({"budget": {"updates": 2}}, Run(folder).config)
    for attempt in (lambda: Run.open(folder).load(), lambda: resume(folder, config=longer)):
        with pytest.raises(UntrustedCodeError, match=r"evil\.py.*--trust"):
            attempt()
    assert not mark.exists()
    assert Run(folder).status["status"] == "done"
    assert Run(folder).history.update == 1


def test_it_runs_when_the_user_trusts_it(tmp_path):
    folder, mark = stranger(tmp_path)
    with trusting():
        Run.open(folder).load()
    assert mark.read_text() == "x"


def test_code_that_the_users_own_command_named_runs_again_until_it_changes(tmp_path):
    mark = tmp_path / "ran"
    named = code(tmp_path / "mine.py", mark)
    train(config_from({**TINY, "imports": [str(named)]}), tmp_path / "run")
    Run.open(tmp_path / "run").load()
    assert mark.read_text() == "x"  # one process runs the same code once
    imports._HAS_RUN.clear()
    Run.open(tmp_path / "run").load()
    assert mark.read_text() == "xx"
    named.write_text("raise RuntimeError('another file of the same name')")
    with pytest.raises(UntrustedCodeError):
        Run.open(tmp_path / "run").load()


def test_it_is_remembered_outside_the_folder_for_other_processes(tmp_path):
    named = code(tmp_path / "mine.py", tmp_path / "ran")
    remember_code([str(named)])
    question = f"from remanence.runs import is_trusted; print(is_trusted({str(named)!r}), is_trusted('antigravity'))"
    done = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_looking_at_code_runs_nothing_of_it(tmp_path, monkeypatch):
    package = tmp_path / "strange_package"
    package.mkdir()
    code(package / "__init__.py", tmp_path / "ran")
    code(package / "inner.py", tmp_path / "ran")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not is_trusted("strange_package.inner")
    with pytest.raises(UntrustedCodeError):
        import_all(["strange_package.inner"])
    assert not (tmp_path / "ran").exists()
    remember_code(["strange_package.inner"])
    require_trust(["strange_package.inner"])
    assert not is_trusted("strange_package")


def test_the_packages_of_a_module_are_code_too(tmp_path, monkeypatch):
    """An import runs the packages first. All empty files are alike, so one that is trusted must not vouch for them."""
    mark = tmp_path / "ran"
    for package in ("honest", "evil"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "part.py").write_text("")
    (tmp_path / "honest" / "__init__.py").write_text("")
    code(tmp_path / "evil" / "__init__.py", mark)
    monkeypatch.syspath_prepend(tmp_path)
    remember_code(["honest", "honest.part"])
    with pytest.raises(UntrustedCodeError, match=r"evil\.part"):
        import_all(["evil.part"])
    assert not mark.exists()
    import_all(["honest.part"])


def test_a_missing_module_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("only_a_file.py").write_text("")  # a name that no other test imports
    with trusting(), pytest.raises(ValueError, match=r"`imports` must name modules .* For a file write only_a_file"):
        import_all(["only_a_file"])


def test_a_run_finds_its_code_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code(Path("mine.py"), tmp_path / "ran")
    config = config_from({**TINY, "imports": ["mine.py"]})
    train(config, tmp_path / "run")
    assert Run(tmp_path / "run").config.imports == (str(tmp_path / "mine.py"),)
    train(config, tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    Run.open(tmp_path / "run").load()


def test_compiled_code_beside_a_trusted_file_does_not_run(tmp_path):
    evil = code(tmp_path / "evil.py", tmp_path / "ran")
    mine = tmp_path / "mine.py"
    mine.write_text("")
    cached = Path(importlib.util.cache_from_source(str(mine)))
    # Unchecked: Python takes such a file without a look at the source that it stands for.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(evil), cfile=str(cached), invalidation_mode=mode)
    remember_code([str(mine)])
    import_all([str(mine)])
    assert not (tmp_path / "ran").exists()


def test_a_file_that_changes_after_the_look_at_it_does_not_run(tmp_path, monkeypatch):
    mine = tmp_path / "mine.py"
    mine.write_text("")
    remember_code([str(mine)])
    look = imports.require_trust

    def look_and_swap(names):
        look(names)
        code(mine, tmp_path / "ran")

    monkeypatch.setattr(imports, "require_trust", look_and_swap)
    with pytest.raises(UntrustedCodeError):
        import_all([str(mine)])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"environment": "strange_module:Maze-v0"},
        {"environment": "GymV26Environment-v0", "environment_options": {"env_id": "strange_module:Maze-v0"}},
    ],
)
def test_an_environment_may_not_bring_code(tmp_path, monkeypatch, settings):
    pytest.importorskip("gymnasium")
    code(tmp_path / "strange_module.py", tmp_path / "ran")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "policy.toml").write_text(to_toml(PolicyConfig(**settings)))
    for attempt in (load_policy, resume_policy):
        with pytest.raises(UntrustedCodeError, match="strange_module"):
            attempt(tmp_path / "run")
    assert not (tmp_path / "ran").exists()
