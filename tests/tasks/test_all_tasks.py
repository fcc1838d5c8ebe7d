"""What holds for every task, whatever it is."""

import dataclasses
import itertools
import math
import random

import numpy as np
import pytest
import torch

from remanence import data, tasks
from remanence.tasks import (
    SPLITS,
    Adding,
    BinaryPowerLaw,
    Copy,
    Denoise,
    HiddenMarkov,
    Ising,
    LateCues,
    MultiQueryRecall,
    PixelMnist,
    PtbChar,
    PtbWord,
    Repetitive,
    SequenceFile,
    SeriesFile,
    Task,
    Text,
    Text8,
    WikiText2Char,
    WikiText2Word,
    list_tasks,
)

SYNTHETIC = [
    Copy(length=7),
    Copy(length=7, encoding="scalar", shortest=3),
    Denoise(length=7),
    LateCues(length=7, distractors=3),
    LateCues(length=9, encoding="scalar", shortest=6, distractors=2),
    MultiQueryRecall(length=20, pairs=4, keys=6, values=5),
    MultiQueryRecall(length=20, pairs=4, gaps="power-law"),
    Adding(length=7),
    BinaryPowerLaw(length=20),
    BinaryPowerLaw(length=20, train_sequences=30),
    BinaryPowerLaw(length=20, method="circulant"),
    Repetitive(length=20),
    Ising(length=20),
    Ising(length=8, decay=1.5),
    Ising(length=18, decay=1.5, sweeps=3),
    HiddenMarkov(length=20),
]

NEEDED = {
    PixelMnist(): "mnist/train-images-idx3-ubyte",
    PixelMnist(permuted=True, group=7): "mnist/train-images-idx3-ubyte",
    PtbChar(): "ptb/ptb.char.train.txt",
    PtbWord(): "ptb/ptb.train.txt",
    WikiText2Char(): "wikitext-2/train.txt",
    WikiText2Word(): "wikitext-2/train.txt",
    WikiText2Word(words=1000): "wikitext-2/train.txt",
}


OWN = {"text": Text, "sequence": SequenceFile, "series": SeriesFile}


@pytest.fixture(params=[*SYNTHETIC, *NEEDED, *OWN], ids=str)
def task(request, tmp_path, require_or_skip):
    if request.param in OWN:
        return own_file(request.param, tmp_path)
    if request.param in NEEDED and not data.is_available(NEEDED[request.param]):
        require_or_skip("data", f"{NEEDED[request.param]} is not on this machine (set REMANENCE_DATA)")
    return request.param


def own_file(kind, folder):
    path = folder / "mine.txt"
    steps = random.Random(0).choices([-1, 1], k=600)
    between = "\n" if kind == "series" else " "
    path.write_text(between.join(str(place % 12) for place in itertools.accumulate(steps)))
    return OWN[kind](path=str(path), length=10)


def test_every_built_in_name_is_covered_here():
    tested = {task.name for task in [*SYNTHETIC, *NEEDED]} | {*OWN, "text8"}
    exported = [getattr(tasks, name) for name in tasks.__all__]
    names = {thing.name for thing in exported if isinstance(thing, type) and issubclass(thing, Task) and thing.name}
    assert names == tested
    assert names <= set(list_tasks())


def test_shapes_and_types_are_those_of_the_protocol(task):
    batch = task.sample(4, task.stream("train", 0))
    steps = batch.steps
    assert batch.size == 4
    if task.input_kind == "tokens":
        assert batch.inputs.shape == (steps, 4)
        assert batch.inputs.dtype == torch.int64
        assert batch.inputs.min() >= 0
        assert batch.inputs.max() < task.input_size
    else:
        assert batch.inputs.shape == (steps, 4, task.input_size)
        assert batch.inputs.dtype == torch.get_default_dtype()
    assert batch.mask.shape == (steps, 4)
    assert batch.mask.dtype == torch.bool
    assert batch.mask.any()
    if batch.targets.dtype == torch.int64:
        assert batch.targets.shape == (steps, 4)
        assert batch.targets.min() >= 0
        assert batch.targets.max() < task.output_size
    else:
        assert batch.targets.shape == (steps, 4, task.output_size)


def test_inputs_follow_the_default_type():
    torch.set_default_dtype(torch.float64)
    try:
        kinds = {task.batch(0, 2).inputs.dtype for task in SYNTHETIC if task.input_kind == "vectors"}
    finally:
        torch.set_default_dtype(torch.float32)
    assert kinds == {torch.float64}


def test_the_global_seed_is_neither_read_nor_changed(task):
    before, numpy_before = torch.get_rng_state(), np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    first = task.batch(1, 4, seed=5)
    task.sample(4, task.stream("test", 3))
    assert torch.equal(torch.get_rng_state(), before)
    numpy_after = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    assert np.array_equal(numpy_after["key"], numpy_before["key"])
    assert numpy_after["pos"] == numpy_before["pos"]
    torch.manual_seed(987)
    assert torch.equal(task.batch(1, 4, seed=5).inputs, first.inputs)


def test_the_same_generator_gives_the_same_batch(task):
    first, again = (task.sample(3, task.stream("train", 11)) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first[:3], again[:3], strict=True))


def test_splits_give_different_batches(task):
    inputs = [task.batch(0, 4, split=split).inputs for split in SPLITS]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert inputs[one].shape != inputs[other].shape or not torch.equal(inputs[one], inputs[other])


def test_baselines_are_probabilities_and_losses(task):
    for baseline in (task.chance, task.memory_free):
        assert 0 < baseline.accuracy < 1
        assert 0 <= baseline.loss < math.inf
    # Seeing the present input never makes the best predictor worse; a table fitted on one set may be, on another.
    assert isinstance(task, PixelMnist) or task.memory_free.loss <= task.chance.loss
    assert task.chance_level == task.chance.accuracy


def test_recipes_are_frozen_and_hashable(task):
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.name2 = 1
    assert hash(task) == hash(dataclasses.replace(task))


@pytest.mark.parametrize("task", [*SYNTHETIC, *NEEDED, Text8(), Text(), SequenceFile()], ids=str)
def test_docstrings_have_the_fixed_headings(task):
    text = type(task).__doc__ or ""
    places = [text.index(f"\n    {heading}:\n") for heading in HEADINGS]
    assert places == sorted(places)
    assert "::\n" in text[places[0] : places[1]]  # the picture


HEADINGS = ["Description", "Input", "Target", "Metric", "Chance level", "Reference", "Args", "Example"]
