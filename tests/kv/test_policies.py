"""Held positions and logits against `slow.py`, which shares no code with the library."""

import sys
from pathlib import Path

import pytest
import torch

from remanence.kv import SCREENS
from remanence.testing import assert_matches

sys.path.insert(0, str(Path(__file__).parent))
from slow import NAME, SlowPolicy

BUDGET, CHUNK = 9, 4


def run_slowly(transformers, model, pieces, masks, slow):
    transformers.AttentionInterface.register(NAME, slow.attention)
    transformers.AttentionMaskInterface.register(NAME, transformers.masking_utils.sdpa_mask)
    model.set_attn_implementation(NAME)
    try:
        return run(model, pieces, masks, transformers.DynamicCache(config=model.config))
    finally:
        model.set_attn_implementation("sdpa")


@torch.no_grad()
def run(model, pieces, masks, cache):
    found = []
    for piece, mask in zip(pieces, masks, strict=True):
        found.append(model(piece, attention_mask=mask, past_key_values=cache).logits)
    return torch.cat(found, dim=1)


def assert_equal_to_slow(transformers, screened_cache, model, pieces, padding, screen, sinks=None):
    rows = len(pieces[0])
    lengths = torch.tensor([piece.shape[1] for piece in pieces]).cumsum(0).tolist()
    masks = [torch.stack([torch.arange(length) >= pad for pad in padding]).long() for length in lengths]
    cache = screened_cache(model, BUDGET, screen=screen, sinks=sinks, chunk=CHUNK)
    policy = cache.policy
    slow = SlowPolicy(screen, BUDGET, policy.recent, policy.sinks, CHUNK, padding)
    found = run(model, pieces, masks, cache)
    exact = run_slowly(transformers, model, pieces, masks, slow)
    real = masks[-1].bool()
    assert_matches({"logits": found[real]}, {"logits": exact[real]})
    assert slow.let_go > 0
    for (layer, row, head), held in slow.held.items():
        shown = [p - padding[row] if p >= padding[row] else -1 for p in held]
        assert cache.positions(layer)[row, head].tolist() == shown, (layer, row, head)
    assert {row for _, row, _ in slow.held} == set(range(rows))


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("kind", ["gpt2", "llama", "qwen"])
def test_one_token_at_a_time(transformers, screened_cache, tiny, prompt, kind, screen):
    model = tiny(kind, dtype=torch.float64)
    pieces = prompt(1, 24).split(1, dim=1)
    assert_equal_to_slow(transformers, screened_cache, model, pieces, [0], screen)


@pytest.mark.parametrize("screen", SCREENS)
def test_a_prompt_that_does_not_fit_then_tokens(transformers, screened_cache, tiny, prompt, screen):
    model = tiny("llama", dtype=torch.float64)
    pieces = prompt(2, 30).split([19, 1, 1, 5, 1, 1, 1, 1], dim=1)
    assert_equal_to_slow(transformers, screened_cache, model, pieces, [0, 0], screen, sinks=2)


@pytest.mark.parametrize("screen", SCREENS)
def test_rows_with_padding(transformers, screened_cache, tiny, prompt, screen):
    model = tiny("llama", dtype=torch.float64)
    pieces = prompt(3, 26).split([8, 10, 1, 1, 1, 4, 1], dim=1)
    assert_equal_to_slow(transformers, screened_cache, model, pieces, [0, 11, 3], screen, sinks=1)
