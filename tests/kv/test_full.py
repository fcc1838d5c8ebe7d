"""A budget that everything fits into gives what transformers' own cache gives, bit for bit."""

import pytest
import torch

from remanence.kv import SCREENS

FAMILIES = ("gpt2", "llama", "qwen", "mistral", "gemma")


def generate(model, tokens, cache=None, **options):
    settings = {"max_new_tokens": 30, "do_sample": False, "pad_token_id": 0} | options
    told = {"output_logits": True, "return_dict_in_generate": True}
    return model.generate(tokens, past_key_values=cache, **told, **settings)


def assert_same(found, expected):
    assert torch.equal(found.sequences, expected.sequences)
    assert torch.equal(torch.stack(found.logits), torch.stack(expected.logits))


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_logits_and_text(tiny, prompt, screened_cache, kind, attention):
    model, tokens = tiny(kind, attention), prompt(2, 20)
    expected = generate(model, tokens)
    assert_same(generate(model, tokens, screened_cache(model, 50)), expected)
    assert_same(generate(model, tokens), expected)  # the model without a screened cache is what it was


@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen(tiny, prompt, screened_cache, screen):
    model, tokens = tiny("llama"), prompt(2, 20)
    expected = generate(model, tokens)
    assert_same(generate(model, tokens, screened_cache(model, 49, screen=screen)), expected)


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_rows_padded_on_the_left(tiny, prompt, screened_cache, kind, attention):
    model, tokens = tiny(kind, attention), prompt(3, 20)
    mask = torch.ones_like(tokens)
    mask[0, :7] = 0
    mask[1, :1] = 0
    expected = generate(model, tokens, attention_mask=mask)
    assert_same(generate(model, tokens, screened_cache(model, 50), attention_mask=mask), expected)


@pytest.mark.parametrize("options", [{"do_sample": True, "temperature": 1.3}, {"num_beams": 3}])
def test_sampling_and_beam_search(tiny, prompt, screened_cache, options):
    model, tokens = tiny("llama"), prompt(2, 12)
    torch.manual_seed(3)
    expected = generate(model, tokens, **options)
    torch.manual_seed(3)
    assert_same(generate(model, tokens, screened_cache(model, 50), **options), expected)


def test_prefill_in_chunks(tiny, prompt, screened_cache):
    model, tokens = tiny("llama"), prompt(1, 24)
    expected = generate(model, tokens, prefill_chunk_size=7)
    assert_same(generate(model, tokens, screened_cache(model, 60), prefill_chunk_size=7), expected)


def test_a_text_goes_on_in_a_second_call(tiny, prompt, screened_cache):
    model, tokens = tiny("qwen"), prompt(1, 10)
    cache = screened_cache(model, 60)
    first = generate(model, tokens, cache, max_new_tokens=8)
    second = generate(model, first.sequences, cache, max_new_tokens=8)
    whole = generate(model, tokens, max_new_tokens=16)
    assert torch.equal(second.sequences, whole.sequences)


def test_guesses_are_taken_back(tiny, prompt, screened_cache):
    """Prompt lookup and assisted decoding crop the cache after a wrong guess."""
    model, tokens = tiny("llama"), prompt(1, 10).repeat(1, 2)
    expected = generate(model, tokens)
    for helper in ({"prompt_lookup_num_tokens": 3}, {"assistant_model": tiny("llama", num_hidden_layers=1)}):
        found = generate(model, tokens, screened_cache(model, 60), **helper)
        assert torch.equal(found.sequences, expected.sequences)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(tiny, prompt, screened_cache, dtype):
    model, tokens = tiny("llama", dtype=dtype), prompt(2, 20)
    expected = generate(model, tokens)
    assert_same(generate(model, tokens, screened_cache(model, 50)), expected)
