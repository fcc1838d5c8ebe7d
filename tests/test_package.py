import importlib
import importlib.metadata
import importlib.resources
import subprocess
import sys

import pytest

import remanence


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_installed_version_is_the_one_in_the_source():
    assert importlib.metadata.version("remanence") == remanence.__version__


def test_importing_the_package_does_not_load_torch():
    assert run("import sys, remanence; print('torch' in sys.modules)").strip() == "False"


def test_subpackages_load_when_they_are_named():
    assert run("import remanence; print(remanence.nn.__name__)").strip() == "remanence.nn"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        remanence.nothing  # noqa: B018


def test_the_package_is_marked_as_typed():
    assert importlib.resources.files("remanence").joinpath("py.typed").is_file()


def test_subpackages_show_in_dir():
    assert set(remanence.__all__) <= set(dir(remanence))


@pytest.mark.parametrize(
    ("package", "old", "new"),
    [
        ("train", "Cell", "ComparedRun"),
        ("experiments", "Cell", "TableCell"),
        ("experiments", "Entry", "TableNumber"),
        ("data", "Entry", "DataFile"),
        ("rl", "Score", "EpisodeResults"),
    ],
)
def test_an_old_name_still_works_and_says_the_new_one(package, old, new):
    module = importlib.import_module(f"remanence.{package}")
    with pytest.warns(DeprecationWarning, match=f"`remanence.{package}.{old}` is now called `{new}`"):
        assert getattr(module, old) is getattr(module, new)
