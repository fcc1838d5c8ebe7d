"""The papers' tables and figures as declared grids: what is printed, what was measured, and engines that run them.

Start with :class:`Experiment`, which a paper's folder declares, and :class:`TableCell`, one place of it: a folder with
a run and what was measured on it. ``reproduce`` fills cells, records keep them, pages compare both with the printed
numbers.
"""

from remanence._renamed import renamed
from remanence.experiments._calibration import estimated_seconds, gain_of_threads
from remanence.experiments._cell import TableCell, adopt, carry_out, refresh, unique
from remanence.experiments._cell_state import CellState
from remanence.experiments._curves import KEPT_CURVE, kept_curve, kept_law
from remanence.experiments._departures import departure_lines
from remanence.experiments._driver import Failure, row_of, run_cells
from remanence.experiments._experiment import (
    Curve,
    Departure,
    Experiment,
    Reading,
    Recipe,
    Scale,
    Setting,
    without_seed,
)
from remanence.experiments._page import Part, make_page, markdown_table, page_parts, stored_parts
from remanence.experiments._plan import find_experiment, list_experiments, parse_seeds, plan_cells
from remanence.experiments._printed import Printed, printed_accuracy
from remanence.experiments._record import Record, load_record, make_record, save_record
from remanence.experiments._results import Grid, TableNumber, entries, figures_of, grid, read
from remanence.experiments._samples import Amount, as_texts, data_of, draw_sequences, is_text, symbols_of, vocabulary_of
from remanence.experiments._storage import is_url
from remanence.experiments._stored import (
    StoredCell,
    cells_in,
    load_stored,
    merge_records,
    nearest,
    records_of,
    store_record,
    stored_cells,
    stored_names,
    stored_records,
)
from remanence.experiments._stored_runs import runs_by_settings
from remanence.experiments._work import Measure, Work
from remanence.experiments.engines import make_engine
from remanence.runs import Engine, Stopped

__all__ = [
    "list_experiments",
    "find_experiment",
    "Experiment",
    "Setting",
    "Departure",
    "departure_lines",
    "Scale",
    "Recipe",
    "Reading",
    "Curve",
    "plan_cells",
    "parse_seeds",
    "without_seed",
    "TableCell",
    "CellState",
    "Work",
    "Measure",
    "unique",
    "refresh",
    "is_url",
    "carry_out",
    "adopt",
    "Engine",
    "make_engine",
    "run_cells",
    "row_of",
    "Failure",
    "Stopped",
    "estimated_seconds",
    "gain_of_threads",
    "TableNumber",
    "entries",
    "Grid",
    "grid",
    "read",
    "KEPT_CURVE",
    "kept_curve",
    "kept_law",
    "figures_of",
    "make_page",
    "page_parts",
    "stored_parts",
    "Part",
    "markdown_table",
    "runs_by_settings",
    "Record",
    "make_record",
    "merge_records",
    "save_record",
    "store_record",
    "load_record",
    "StoredCell",
    "stored_cells",
    "cells_in",
    "nearest",
    "records_of",
    "load_stored",
    "stored_names",
    "stored_records",
    "Amount",
    "draw_sequences",
    "as_texts",
    "data_of",
    "is_text",
    "symbols_of",
    "vocabulary_of",
    "printed_accuracy",
    "Printed",
]

__getattr__ = renamed(__name__, {"Cell": "TableCell", "Entry": "TableNumber"})
