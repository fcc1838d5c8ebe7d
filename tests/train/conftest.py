"""What the tests of training share."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def faults() -> ModuleType:
    """The module beside this file that does faults to real processes."""
    path = Path(__file__).with_name("faults.py")
    spec = importlib.util.spec_from_file_location("faults", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["faults"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def reference(faults, tmp_path_factory) -> Path:
    """An uninterrupted run of the tiny configuration."""
    folder = tmp_path_factory.mktemp("reference") / "run"
    faults.train(faults.tiny_config(), folder)
    return folder
