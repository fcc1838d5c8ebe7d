"""Models with known answers, and models that nobody here wrote."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import remanence.nn


class LinearRNN(nn.Module):
    """h_t = W h_{t-1} + x_t, stepped by hand: a foreign model of which only inputs are seen."""

    def __init__(self, matrix):
        super().__init__()
        self.matrix = nn.Parameter(matrix)

    def forward(self, x):
        h, outputs = torch.zeros_like(x[0]), []
        for x_t in x:
            h = h @ self.matrix.T + x_t
            outputs.append(h)
        return torch.stack(outputs)


class DelayLine(nn.Module):
    """The output is the input of ``delay`` steps ago."""

    def __init__(self, delay):
        super().__init__()
        self.delay = delay

    def forward(self, x):
        return torch.cat([torch.zeros_like(x[: self.delay]), x])[: len(x)]


class Causal(nn.Module):
    """torch's Transformer encoder under a causal mask."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(len(x), dtype=x.dtype)
        return self.layer(x, src_mask=mask, is_causal=True)


class CellLoop(nn.Module):
    """A loop over torch's cell."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 4)

    def forward(self, x):
        state, outputs = None, []
        for x_t in x:
            state = self.cell(x_t, state)
            outputs.append(state[0])
        return torch.stack(outputs)


class Stacked(nn.Module):
    """Embedding, a recurrent layer inside, a head and a dropout that uses random numbers."""

    def __init__(self):
        super().__init__()
        self.embedding, self.core = nn.Embedding(7, 4), nn.GRU(4, 4, batch_first=True)
        self.head, self.norm = nn.Linear(4, 2), nn.BatchNorm1d(2)

    def forward(self, tokens):
        output = self.head(nn.functional.dropout(self.core(self.embedding(tokens))[0], 0.5, self.training))
        return self.norm(output.transpose(1, 2)).transpose(1, 2)


class Throwing(nn.Module):
    """Runs its layer, changes what it can, and throws."""

    def __init__(self):
        super().__init__()
        self.core, self.norm = nn.LSTM(4, 4), nn.BatchNorm1d(4)
        self.attention = nn.MultiheadAttention(4, 2)

    def forward(self, x):
        output, _ = self.core(x)
        self.norm(output[-1])
        self.attention(output, output, output)
        torch.rand(3)
        self.eval()
        raise RuntimeError("no")


class Broken(remanence.nn.MemRNN):
    """One of our layers, whose kind is known, and which throws once it runs."""

    def weights(self, *arguments):
        torch.rand(3)
        self.eval()
        raise RuntimeError("no")


MODELS = {
    "LSTM": lambda: nn.LSTM(4, 4),
    "two GRUs": lambda: nn.GRU(4, 4, 2),
    "bidirectional": lambda: nn.LSTM(4, 4, bidirectional=True),
    "RelLSTM": lambda: remanence.nn.RelLSTM(4, 4, recent=2, relevant=2),
    "MemRNN": lambda: remanence.nn.MemRNN(4, 4),
    "SABLSTM": lambda: remanence.nn.SABLSTM(4, 4),
    "our Transformer": lambda: remanence.nn.Transformer(4, 1, 2),
    "torch's Transformer": Causal,
    "cells": CellLoop,
    "linear": lambda: LinearRNN(0.5 * torch.eye(4)),
    "delay": lambda: DelayLine(3),
    "function": lambda: lambda x: x.cumsum(dim=0),
}


@pytest.fixture(params=sorted(MODELS))
def model(request):
    return MODELS[request.param]()


@pytest.fixture
def zoo():
    """The classes above, for tests that build their own."""
    kinds = (LinearRNN, DelayLine, Causal, CellLoop, Stacked, Throwing, Broken)
    return SimpleNamespace(MODELS=MODELS, **{kind.__name__: kind for kind in kinds})
