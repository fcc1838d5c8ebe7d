"""What was run, and what came out: results of experiments that take too long to repeat, and what documents print."""

from remanence.experiments._printed import Printed, printed_accuracy
from remanence.experiments._stored import load_stored, save_stored, stored_names

__all__ = ["load_stored", "save_stored", "stored_names", "printed_accuracy", "Printed"]
