"""The command ``remanence``: thin commands over the library.

Options are declared in ``_app.py``, ``_training.py``, ``_experiments.py`` and ``_rl.py``; each command imports the
module that does its work when it runs, so that ``--help`` is quick.
"""

from remanence.cli._app import main

__all__ = ["main"]
