"""Generation in one call and step by step: the same tokens, the same state, the same randomness."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.utils import parametrize

from remanence import nn, ops
from remanence.nn import _generation
from remanence.testing import assert_matches

TOKENS = 7
CORES: dict[str, dict[str, Any]] = {
    "RNN": {},
    "LSTM": {"num_layers": 3},
    "GRU": {"batch_first": True},
    "RelLSTM": {"recent": 3, "relevant": 2, "num_layers": 2},
    "RelGRU": {"recent": 3, "relevant": 2},
    "MemRNN": {},
    "SABLSTM": {"top_k": 2, "every": 2},
    "ExpRNN": {},
    "HDetachLSTM": {},
    "RelRNN": {"recent": 3, "relevant": 2, "combine": "concat"},  # not in the kernel
}
ENCODERS: dict[str, dict[str, Any]] = {
    "one-hot": {},
    "embedding": {"encoder": "embedding", "embedding_size": 5},
    "tied": {"encoder": "embedding", "embedding_size": 8, "tied": True},
}


def make_model(core: str = "RelLSTM", encoder: str = "embedding", **options: Any) -> nn.SequenceModel:
    chosen = {**CORES[core], **ENCODERS[encoder], **options}
    model = nn.SequenceModel(TOKENS, core, TOKENS, hidden_size=8, dtype=torch.float64, **chosen)
    with torch.no_grad():  # far from uniform
        model.head.weight.mul_(5)
    return model


def draw(model: nn.SequenceModel, length: int = 40, seed: int = 1, **options: Any):
    return model.generate(length, generator=torch.Generator().manual_seed(seed), **options)


@pytest.fixture
def ways(monkeypatch) -> list[str]:
    """Which of the two ways each block of tokens went."""
    taken: list[str] = []

    def count(name: str) -> None:
        way = getattr(_generation, name)

        def counted(*arguments):
            taken.append(name)
            return way(*arguments)

        monkeypatch.setattr(_generation, name, counted)

    count("_by_scan")
    count("_by_steps")
    return taken


def step_by_step(monkeypatch) -> None:
    monkeypatch.setattr(_generation, "_runs_by_scan", lambda _: False)


@pytest.mark.parametrize(
    ("core", "encoder"),
    [(core, encoder) for core in CORES for encoder in ENCODERS if encoder != "tied" or "combine" not in CORES[core]],
)
@pytest.mark.parametrize("temperature", [0, 0.7])
def test_both_ways_draw_the_same(core, encoder, temperature, monkeypatch, ways):
    model, rows = make_model(core, encoder), 3
    first, state = draw(model, batch_size=rows, temperature=temperature)
    alone, alone_state = draw(model, prompt=torch.tensor([1, 2]), temperature=temperature)
    assert set(ways) == {"_by_scan"}
    step_by_step(monkeypatch)
    second, expected = draw(model, batch_size=rows, temperature=temperature)
    assert torch.equal(first, second)
    assert_matches(state._asdict(), expected._asdict())
    second, expected = draw(model, prompt=torch.tensor([1, 2]), temperature=temperature)
    assert torch.equal(alone, second)
    assert_matches(alone_state._asdict(), expected._asdict())
    assert ways[-1] == "_by_steps"


def test_both_backends_draw_the_same():
    model = make_model()
    drawn = []
    for backend in ("auto", "reference"):
        model.core.backend = backend  # type: ignore[assignment]
        drawn.append(draw(model, batch_size=4)[0])
    assert torch.equal(*drawn)


@pytest.mark.parametrize("core", ["LSTM", "RelLSTM", "MemRNN"])
def test_blocks_of_any_size_draw_the_same(core, monkeypatch, ways):
    model = make_model(core)
    whole, state = draw(model, batch_size=3)
    assert len(ways) == 1
    monkeypatch.setattr(_generation, "MOST_AT_ONCE", 20)
    cut, cut_state = draw(model, batch_size=3)
    assert len(ways) == 1 + 7  # 39 tokens after the first, six at a time
    assert torch.equal(whole, cut)
    assert all(torch.equal(a, b) for a, b in zip(state, cut_state, strict=True))
    monkeypatch.setattr(_generation, "MOST_AT_ONCE", 1)  # fewer than there are rows
    assert torch.equal(draw(model, batch_size=3)[0], whole)


def test_one_token_needs_no_step(ways):
    model = make_model()
    assert draw(model, 1, batch_size=2)[0].shape == (1, 2)
    assert draw(model, 1, prompt=torch.tensor([[1], [2]]))[1].step.tolist() == [[2], [2]]
    assert ways == []


def test_dropout_is_off():
    model = make_model(dropout=0.9)
    assert torch.equal(draw(model.train())[0], draw(model.eval())[0])


@pytest.mark.parametrize("part", ["head", "core", "encoder"])
def test_hooks_see_every_step(part, ways):
    model, seen = make_model(), []
    getattr(model, part).register_forward_hook(lambda *_: seen.append(1))
    draw(model, 10)
    assert len(seen) == 9
    assert set(ways) == {"_by_steps"}


def test_what_a_user_put_in_its_place_is_used(ways):
    class Loud(nn.SequenceModel):
        def step(self, input_t, state=None):
            logits, state = super().step(input_t, state)
            return logits + 1e6 * torch.eye(TOKENS, dtype=torch.float64)[3], state

    model = Loud(TOKENS, "LSTM", TOKENS, hidden_size=8, dtype=torch.float64)
    assert (draw(model)[0][1:] == 3).all()
    plain = make_model("LSTM")
    inner = plain.head
    plain.head = torch.nn.Sequential(inner)  # type: ignore[assignment]
    plain.head.weight = inner.weight
    draw(plain)
    renormed = make_model("LSTM")
    renormed.encoder.embedding.max_norm = 0.1  # type: ignore[assignment]
    draw(renormed)
    assert set(ways) == {"_by_steps"}


def test_parametrised_weights_are_used(ways, monkeypatch):
    class Halve(torch.nn.Module):
        def forward(self, weight):
            return weight / 2

    model = make_model()
    parametrize.register_parametrization(model.core, "weight_hh_l0", Halve())
    parametrize.register_parametrization(model.head, "weight", Halve())
    first, _ = draw(model)
    assert set(ways) == {"_by_scan"}
    step_by_step(monkeypatch)
    assert torch.equal(first, draw(model)[0])


def test_a_wrong_state_is_named():
    model = make_model()
    _, state = draw(model, batch_size=3)
    with pytest.raises(ValueError, match=r"`state.s` must have shape"):
        draw(model, prompt=torch.tensor([[1, 2]]), state=state)
    with pytest.raises(ValueError, match="bidirectional"):
        draw(make_model("LSTM", bidirectional=True))


def test_memory_does_not_grow_with_the_length():
    rows, length = 5, 10**7
    blocks = list(_generation._blocks(length, rows))
    assert sum(blocks) == length
    assert max(blocks) * rows <= _generation.MOST_AT_ONCE


@pytest.mark.slow
def test_very_many_tokens(require_or_skip):
    if ops.backend_report()["active"] != "fused":
        require_or_skip("kernel", "there is no kernel")
    model = make_model("RelLSTM")
    tokens, state = draw(model, 600_000)
    assert tokens.shape == (600_000,)
    assert state.step.tolist() == [599_999, 599_999]
    assert bool(state.s.isfinite().all())
