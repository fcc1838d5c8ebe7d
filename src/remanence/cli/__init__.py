"""The command ``remanence``: thin commands over the library."""

from remanence.cli._app import main

__all__ = ["main"]
