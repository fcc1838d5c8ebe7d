"""Modules whose examples need a package that may be missing are left out where it is."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("torchrl") else ["remanence/rl/torchrl.py"]
