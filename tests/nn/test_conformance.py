"""Every recurrent layer against every clause of the contract."""

from __future__ import annotations

import functools

import pytest

from remanence import nn
from remanence.testing import Check, check_recurrent_layer

SCREENED = {"recent": 4, "relevant": 6}
SAB = {"top_k": 3, "every": 2}

LAYERS = {
    "RNN": functools.partial(nn.RNN),
    "LSTM": functools.partial(nn.LSTM),
    "RelRNN": functools.partial(nn.RelRNN, **SCREENED),
    "RelLSTM": functools.partial(nn.RelLSTM, **SCREENED),
    "LSTM-reference": functools.partial(nn.LSTM, backend="reference"),
    "RelRNN-reference": functools.partial(nn.RelRNN, backend="reference", **SCREENED),
    "RelLSTM-reference": functools.partial(nn.RelLSTM, backend="reference", **SCREENED),
    "GRU": functools.partial(nn.GRU),
    "RNN-modrelu": functools.partial(nn.RNN, nonlinearity="modrelu", recurrent_init="henaff"),
    "OrthRNN": functools.partial(nn.OrthRNN),
    "ExpRNN": functools.partial(nn.ExpRNN),
    "GORU": functools.partial(nn.GORU),
    "StableRNN": functools.partial(nn.StableRNN),
    "StableLSTM": functools.partial(nn.StableLSTM),
    "HDetachLSTM": functools.partial(nn.HDetachLSTM, p=0.0),
    "MemRNN": functools.partial(nn.MemRNN),
    "MemLSTM": functools.partial(nn.MemLSTM),
    "MemGRU": functools.partial(nn.MemGRU),
    "MemLSTM-limit": functools.partial(nn.MemLSTM, limit=5),
    "RelGRU": functools.partial(nn.RelGRU, **SCREENED),
    "RelLSTM-dot-concat": functools.partial(nn.RelLSTM, score="dot", combine="concat", **SCREENED),
    "RelRNN-relu-hidden": functools.partial(nn.RelRNN, nonlinearity="relu", output="hidden", **SCREENED),
    "RelLSTM-mean": functools.partial(nn.RelLSTM, screen="mean", **SCREENED),
    "RelRNN-value": functools.partial(nn.RelRNN, screen="value", **SCREENED),
    "RelGRU-learned": functools.partial(nn.RelGRU, screen="learned", **SCREENED),
    "RelRNN-random": functools.partial(nn.RelRNN, screen="random", **SCREENED),
    "RelRNN-newest": functools.partial(nn.RelRNN, screen="newest", **SCREENED),
    "RelLSTM-mean-reference": functools.partial(nn.RelLSTM, screen="mean", backend="reference", **SCREENED),
    "RelGRU-learned-reference": functools.partial(nn.RelGRU, screen="learned", backend="reference", **SCREENED),
    "SABRNN": functools.partial(nn.SABRNN, **SAB),
    "SABLSTM": functools.partial(nn.SABLSTM, **SAB),
    "SABGRU": functools.partial(nn.SABGRU, **SAB),
    "SABLSTM-authors": functools.partial(
        nn.SABLSTM, score="tanh", keep="k", normalise=True, underfull="raw", start="zero", output="summary", **SAB
    ),
    "SABLSTM-mlp": functools.partial(nn.SABLSTM, score="mlp", top_k=2, every=4),  # more reads amplify rounding
    "SABLSTM-dense": functools.partial(nn.SABLSTM, sparse="backward", normalise=True, **SAB),
    "SABGRU-one-hop": functools.partial(nn.SABGRU, hops="one", **SAB),
}
GROWS = {"MemRNN", "MemLSTM", "MemGRU", "SABLSTM-mlp", "SABLSTM-dense"}
WITHOUT = {
    "HDetachLSTM": ("cuts_equal_detach",),  # it decides about its cuts itself
    # Their gradient is not the derivative, by design: it is stopped where finite differences go on.
    "SABLSTM-dense": ("gradcheck", "double_backward"),
    "SABGRU-one-hop": ("gradcheck", "double_backward"),
}
FAST_LANE = {"RNN", "LSTM", "RelRNN", "RelLSTM"}
"""The layers whose slow checks always run."""


def _cases():
    for name, factory in LAYERS.items():
        for check in check_recurrent_layer(factory, grows=name in GROWS, without=WITHOUT.get(name, ())):
            marks = [pytest.mark.slow] if check.slow and name not in FAST_LANE else []
            yield pytest.param(check, id=f"{name}-{check.name}", marks=marks)


@pytest.mark.parametrize("check", list(_cases()))
def test_layer_keeps_the_contract(check: Check) -> None:
    check()
