import dataclasses

import pytest
import torch

from remanence import nn

EXPECTED = [
    *("RNN", "LSTM", "GRU", "OrthRNN", "ExpRNN", "GORU", "StableRNN", "StableLSTM", "HDetachLSTM"),
    *("MemRNN", "MemLSTM", "MemGRU", "SABRNN", "SABLSTM", "SABGRU", "RelRNN", "RelLSTM", "RelGRU"),
    *("Transformer", "CausalConvolution", "TruncatedRNN", "MinGRU", "MinLSTM", "LRU", "DeltaRule", "ScreenedDeltaRule"),
]
INFOS = {info.name: info for info in nn.list_models()}


def test_every_preset_is_listed_once_in_a_fixed_order():
    assert [info.name for info in nn.list_models()] == EXPECTED


def test_every_recurrent_layer_of_the_package_is_listed():
    public = {name for name in nn.__all__ if isinstance(getattr(nn, name), type)}
    layers = {name for name in public if issubclass(getattr(nn, name), nn.RecurrentLayer)} - {"RecurrentLayer"}
    assert layers <= set(INFOS)


@pytest.mark.parametrize(
    ("name", "cell", "memory", "document"),
    [
        ("RNN", "rnn", "none", "all"),
        ("GORU", "goru", "none", "kerg2020"),
        ("MemGRU", "gru", "full", "kerg2020"),
        ("SABLSTM", "lstm", "strided", "ke2017"),
        ("RelRNN", "rnn", "screened", "kerg2020"),
        ("Transformer", "attention", "full", "shen2019"),
    ],
)
def test_a_model_says_what_it_is_made_of(name, cell, memory, document):
    info = INFOS[name]
    assert (info.cell, info.memory, info.document) == (cell, memory, document)


@pytest.mark.parametrize("info", INFOS.values(), ids=INFOS)
def test_summary_is_the_first_line_of_the_documentation_without_markup(info):
    documented = getattr(nn, info.name).__doc__.splitlines()[0]
    assert info.summary
    assert "``" not in info.summary
    assert info.summary[:3] == documented[:3]


def test_an_entry_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(INFOS["RNN"], "name", "other")  # noqa: B010


@pytest.mark.parametrize("name", INFOS)
def test_a_name_gives_the_class(name):
    assert nn.get_model(name) is getattr(nn, name)


@pytest.mark.parametrize(("wrong", "nearest"), [("RelLSMT", "RelLSTM"), ("rellstm", "RelLSTM"), ("gru", "GRU")])
def test_a_misspelt_name_is_answered_with_the_nearest(wrong, nearest):
    with pytest.raises(ValueError, match=rf"`model` must be one of .*got '{wrong}'\. Did you mean '{nearest}'"):
        nn.get_model(wrong)


def test_listing_leaves_the_random_numbers_alone():
    before = torch.get_rng_state()
    nn.list_models()
    assert torch.equal(torch.get_rng_state(), before)
