"""A changed public name is a visible difference: `make api` writes the list again after a wanted change."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import runpy
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("public_api", Path(__file__).with_name("public_api.py"))
assert _spec is not None
assert _spec.loader is not None
public_api = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(public_api)


def test_public_names_are_the_committed_ones():
    committed = public_api.COMMITTED.read_text(encoding="utf-8").splitlines()
    found = public_api.public_names()
    assert {"new": sorted(set(found) - set(committed)), "gone": sorted(set(committed) - set(found))} == {
        "new": [],
        "gone": [],
    }, "run `make api` if this change is wanted, and say so in CHANGELOG.md"


@pytest.mark.parametrize("path", list(public_api.public_modules()))
def test_no_name_is_listed_twice(path):
    names = importlib.import_module(path).__all__
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", public_api.public_names())
def test_every_public_function_and_class_is_documented(name):
    module, _, attribute = name.rpartition(".")
    thing = getattr(importlib.import_module(module), attribute)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        assert inspect.getdoc(thing)
        assert thing.__doc__, f"{name} has no docstring of its own"


def test_the_reference_has_a_page_for_every_layer():
    path = Path(__file__).parents[1] / "docs" / "reference_pages.py"
    pages = runpy.run_path(str(path))["package_pages"]("nn", {})
    shown = [name.removeprefix("remanence.nn.") for name in pages if name != "nn"]
    assert sorted(shown) == sorted(importlib.import_module("remanence.nn").__all__)
