"""What was run, and what came out: results of experiments that take too long to repeat, kept with the package."""

from remanence.experiments._stored import load_stored, save_stored, stored_names

__all__ = ["load_stored", "save_stored", "stored_names"]
