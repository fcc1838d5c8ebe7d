"""Tasks: seeded recipes for sequences whose memory is known. They know no model.

Start with :class:`Task`, the contract: batch number n of a seed is always the same :class:`Batch`.
"""

from remanence.tasks._adding import Adding
from remanence.tasks._batch import Baseline, Batch, Score
from remanence.tasks._hidden_markov import HiddenMarkov
from remanence.tasks._information import pair_correlation, pair_information
from remanence.tasks._ising import Ising
from remanence.tasks._language import Language
from remanence.tasks._mqar import MultiQueryRecall
from remanence.tasks._own_files import SequenceFile, Text
from remanence.tasks._pixel_mnist import PixelMnist
from remanence.tasks._power_law import BinaryPowerLaw
from remanence.tasks._recall import Copy, Denoise, LateCues
from remanence.tasks._registry import list_tasks, make_task, register_task
from remanence.tasks._repetitive import Repetitive
from remanence.tasks._series import SeriesFile
from remanence.tasks._stream import SPLITS, Split, stream
from remanence.tasks._symbols import BinarySequences, SymbolSequences
from remanence.tasks._task import Task
from remanence.tasks._texts import PtbChar, PtbWord, Text8, WikiText2Char, WikiText2Word

__all__ = [
    "Task",
    "Batch",
    "Baseline",
    "Score",
    "Split",
    "SPLITS",
    "stream",
    "register_task",
    "make_task",
    "list_tasks",
    "Copy",
    "Denoise",
    "LateCues",
    "MultiQueryRecall",
    "Adding",
    "PixelMnist",
    "Language",
    "PtbChar",
    "PtbWord",
    "Text8",
    "WikiText2Char",
    "WikiText2Word",
    "Text",
    "SequenceFile",
    "SeriesFile",
    "SymbolSequences",
    "BinarySequences",
    "BinaryPowerLaw",
    "Repetitive",
    "Ising",
    "HiddenMarkov",
    "pair_information",
    "pair_correlation",
]
