"""Bounds, rows, going back, saving, models and threads side by side, and what is refused."""

import copy
import threading

import pytest
import torch

from remanence.kv import SCREENS
from remanence.runs import read_tensors, write_tensors


def generate(model, tokens, cache, **options):
    settings = {"max_new_tokens": 25, "do_sample": False, "pad_token_id": 0} | options
    return model.generate(tokens, past_key_values=cache, **settings)


def feed(model, tokens, cache, piece):
    with torch.no_grad():
        return torch.cat([model(part, past_key_values=cache).logits for part in tokens.split(piece, dim=1)], dim=1)


def addresses(cache):
    return [field.data_ptr() for layer in cache.layers for field in layer.slots]


@pytest.mark.parametrize("screen", ["mean", "window"])
def test_nothing_grows_over_20000_tokens(tiny, prompt, screened_cache, screen):
    model = tiny("llama", num_hidden_layers=1)
    cache = screened_cache(model, 24, screen=screen, chunk=32)
    feed(model, prompt(1, 40), cache, 8)
    before = (cache.nbytes, addresses(cache))
    feed(model, prompt(1, 19_900, seed=1), cache, 199)
    logits = feed(model, prompt(1, 60, seed=2), cache, 1)
    assert cache.get_seq_length() == 20_000
    assert (cache.nbytes, addresses(cache)) == before  # the same memory, written in place
    assert cache.positions(0).shape == (1, 2, 24)
    assert logits.isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_grows_over_20000_single_tokens(tiny, prompt, screened_cache, screen):
    model = tiny("llama", num_hidden_layers=1)
    cache = screened_cache(model, 24, screen=screen)
    feed(model, prompt(1, 1), cache, 1)
    before = (cache.nbytes, addresses(cache))
    feed(model, prompt(1, 19_999, seed=1), cache, 1)
    assert (cache.nbytes, addresses(cache)) == before


def test_all_memory_is_there_after_the_first_token(tiny, prompt, screened_cache):
    model = tiny("llama")
    cache = screened_cache(model, 24)
    assert cache.nbytes == 0
    feed(model, prompt(1, 1), cache, 1)
    slot = 2 * 8 * 4 + 8 + 4 + 4  # key and value of 8 floats, index, score, norm
    assert cache.nbytes == 3 * 2 * (24 + 1) * slot


def test_a_long_prompt_is_never_held_whole(tiny, prompt, screened_cache, monkeypatch):
    from remanence.kv._layer import ScreenedLayer

    seen = []
    step = ScreenedLayer._attend_part

    def watched(layer, attend, query, new, mask, scaling):
        seen.append((layer.count, query.shape[2]))
        return step(layer, attend, query, new, mask, scaling)

    monkeypatch.setattr(ScreenedLayer, "_attend_part", watched)
    model = tiny("llama", num_hidden_layers=1)
    feed(model, prompt(1, 100), screened_cache(model, 24, chunk=10), 100)
    assert seen[0] == (0, 24)
    assert all(held == 24 and new <= 10 for held, new in seen[1:])
    assert sum(new for _, new in seen) == 100


def test_one_long_call_is_the_same_as_pieces_of_a_chunk(tiny, prompt, screened_cache):
    from remanence.testing import assert_matches

    model, tokens = tiny("llama", dtype=torch.float64), prompt(2, 64)
    whole, pieces = screened_cache(model, 24, chunk=8), screened_cache(model, 24, chunk=8)
    assert_matches({"logits": feed(model, tokens, whole, 64)}, {"logits": feed(model, tokens, pieces, 8)})
    assert torch.equal(whole.positions(2), pieces.positions(2))


def test_a_row_does_not_depend_on_the_rows_beside_it(tiny, prompt, screened_cache):
    model, tokens = tiny("llama", dtype=torch.float64), prompt(3, 40)
    together, alone = screened_cache(model, 12), screened_cache(model, 12)
    feed(model, tokens, together, 5)
    feed(model, tokens[1:2], alone, 5)
    for layer in range(3):
        assert torch.equal(together.positions(layer)[1:2], alone.positions(layer))


def test_heads_and_layers_choose_for_themselves(tiny, prompt, screened_cache):
    model = tiny("llama")
    cache = screened_cache(model, 12)
    feed(model, prompt(1, 80), cache, 1)
    assert not torch.equal(cache.positions(0)[0, 0], cache.positions(0)[0, 1])
    assert not torch.equal(cache.positions(0), cache.positions(1))


def test_the_newest_and_the_first_stay(tiny, prompt, screened_cache):
    model = tiny("llama")
    cache = screened_cache(model, 12, recent=5, screen="attention", sinks=3)
    feed(model, prompt(1, 80), cache, 1)
    held = cache.positions(1)[0, 0].tolist()
    assert held[:3] == [0, 1, 2]
    assert held[-5:] == [75, 76, 77, 78, 79]


def test_a_window_that_takes_all_is_the_policy_window(tiny, prompt, screened_cache):
    model, tokens = tiny("llama"), prompt(1, 50)
    screen, window = screened_cache(model, 12, 8, sinks=4), screened_cache(model, 12, screen="window")
    assert torch.equal(feed(model, tokens, screen, 1), feed(model, tokens, window, 1))


def test_beam_search_takes_its_rows_along(tiny, prompt, screened_cache):
    model, tokens = tiny("llama", dtype=torch.float64), prompt(2, 20)
    cache = screened_cache(model, 12)
    text = generate(model, tokens, cache, num_beams=3)
    assert text.shape == (2, 45)
    assert cache.positions(0).shape == (6, 2, 12)


def test_rows_are_taken_and_repeated(tiny, prompt, screened_cache):
    model = tiny("llama")
    cache = screened_cache(model, 12)
    feed(model, prompt(3, 30), cache, 5)
    before = cache.positions(1)
    cache.batch_select_indices(torch.tensor([2, 0]))
    assert torch.equal(cache.positions(1), before[[2, 0]])
    cache.batch_repeat_interleave(2)
    assert torch.equal(cache.positions(1), before[[2, 2, 0, 0]])
    cache.reorder_cache(torch.tensor([3, 0, 1, 2]))
    assert torch.equal(cache.positions(1), before[[0, 2, 2, 0]])
    feed(model, prompt(4, 3), cache, 1)


def test_crop_takes_tokens_back_while_nothing_is_lost(tiny, prompt, screened_cache):
    model, tokens = tiny("llama"), prompt(1, 20)
    cache, fresh = screened_cache(model, 30, screen="window"), screened_cache(model, 30, screen="window")
    feed(model, tokens, cache, 7)
    cache.crop(-6)
    feed(model, tokens[:, :14], fresh, 7)
    assert cache.get_seq_length() == 14
    assert torch.equal(feed(model, tokens[:, :30], cache, 1), feed(model, tokens[:, :30], fresh, 1))
    with pytest.raises(ValueError, match=r"once keys have been evicted; got -1\. Keep copy\.deepcopy"):
        cache.crop(-1)
    cache.crop(0)
    with pytest.raises(ValueError, match="be negative or 0; got 3"):
        cache.crop(3)


def test_a_copy_goes_its_own_way(tiny, prompt, screened_cache):
    model, tokens = tiny("llama"), prompt(1, 40)
    cache = screened_cache(model, 12)
    feed(model, tokens, cache, 5)
    kept = copy.deepcopy(cache)
    assert kept._model is model  # a second one would cost more than many caches
    first = feed(model, tokens[:, :9], cache, 1)
    assert torch.equal(feed(model, tokens[:, :9], kept, 1), first)


def test_reset_begins_anew_in_the_same_memory(tiny, prompt, screened_cache):
    model, tokens = tiny("llama"), prompt(1, 40)
    cache = screened_cache(model, 12)
    first = feed(model, tokens, cache, 1)
    before = addresses(cache)
    cache.reset()
    assert cache.get_seq_length() == 0
    assert torch.equal(feed(model, tokens, cache, 1), first)
    assert addresses(cache) == before
    cache.reset()
    feed(model, prompt(3, 5), cache, 5)  # another number of rows


@pytest.mark.parametrize("kind", ["llama", "gemma2"])
@pytest.mark.parametrize("screen", ["mean", "tova"])
def test_a_loaded_cache_goes_on_with_the_same_bits(tiny, prompt, screened_cache, tmp_path, kind, screen):
    model, tokens = tiny(kind, "eager"), prompt(2, 40)
    mask = torch.ones_like(tokens)
    mask[0, :3] = 0
    cache = screened_cache(model, 12, screen=screen, chunk=7)
    with torch.no_grad():
        model(tokens, attention_mask=mask, past_key_values=cache)
    cache.save(tmp_path / "cache")
    loaded = screened_cache.load(tmp_path / "cache", model)
    assert repr(loaded) == repr(cache)
    longer = torch.cat([mask, torch.ones(2, 1, dtype=torch.int64)], dim=1)
    with torch.no_grad():
        found = [model(tokens[:, :1], attention_mask=longer, past_key_values=one).logits for one in (cache, loaded)]
    assert torch.equal(*found)
    assert torch.equal(cache.positions(1), loaded.positions(1))


def test_an_empty_cache_can_be_saved_and_a_strange_file_is_refused(tiny, screened_cache, tmp_path):
    from safetensors.torch import save_file

    model = tiny("llama")
    screened_cache(model, 12).save(tmp_path / "cache")
    assert screened_cache.load(tmp_path / "cache", model).get_seq_length() == 0
    with pytest.raises(ValueError, match="`model` must have the 3 layers of the cache; got 1"):
        screened_cache.load(tmp_path / "cache", tiny("llama", num_hidden_layers=1))
    save_file({"a": torch.zeros(1)}, tmp_path / "other")
    with pytest.raises(ValueError, match=r"be a whole file of ScreenedCache\.save"):
        screened_cache.load(tmp_path / "other", model)
    (tmp_path / "half").write_bytes((tmp_path / "cache").read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"`path` must be a whole file of ScreenedCache\.save; got .*half"):
        screened_cache.load(tmp_path / "half", model)


def test_a_filled_cache_names_what_does_not_fit(tiny, prompt, screened_cache):
    model = tiny("llama")
    cache = screened_cache(model, 12)
    model.generate(prompt(2, 20), past_key_values=cache, max_new_tokens=2)
    with pytest.raises(ValueError, match=r"Call cache\.reset\(\) before another batch"), torch.no_grad():
        model(prompt(3, 1), past_key_values=cache)
    other = tiny("llama", num_key_value_heads=4)
    screened_cache(other, 12)  # switches its attention
    with pytest.raises(ValueError, match="Another model filled the cache"), torch.no_grad():
        other(prompt(2, 1), past_key_values=cache)


@pytest.mark.parametrize(
    "change",
    [
        {"budget": "12"},
        {"budget": 11},
        {"screen": ["attention"]},
        {"layers": 3},
        {"layers": [{"seen": 20, "count": 9, "padded": False}] * 3},
        {"layers": [{"seen": 5, "count": 12, "padded": False}] * 3},
        {"layers": [{"update": 0}] * 3},
        {"layers": [[]] * 3},
    ],
)
def test_facts_that_do_not_fit_the_tensors_are_refused(tiny, prompt, screened_cache, tmp_path, change):
    model = tiny("llama")
    cache = screened_cache(model, 12)
    with torch.no_grad():
        model(prompt(2, 20), past_key_values=cache)
    cache.save(tmp_path / "cache")
    tensors, facts = read_tensors(tmp_path / "cache")
    write_tensors(tmp_path / "cache", tensors, {**facts, **change})
    with pytest.raises(ValueError, match=r"be a whole file of ScreenedCache\.save"):
        screened_cache.load(tmp_path / "cache", model)


def test_a_damaged_cache_is_refused(tiny, screened_cache, tmp_path):
    model = tiny("llama")
    cache = screened_cache(model, 12)
    with torch.no_grad():
        model(torch.ones(1, 20, dtype=torch.int64), past_key_values=cache)
    cache.save(tmp_path / "cache")
    contents = bytearray((tmp_path / "cache").read_bytes())
    contents[-1] ^= 1
    (tmp_path / "cache").write_bytes(contents)
    with pytest.raises(ValueError, match="its checksum does not match"):
        screened_cache.load(tmp_path / "cache", model)


def test_layers_with_a_sliding_window_keep_their_own_cache(tiny, prompt, screened_cache):
    from transformers.cache_utils import DynamicSlidingWindowLayer

    model, tokens = tiny("gemma2", "eager"), prompt(2, 20)
    expected = generate(model, tokens, None)
    cache = screened_cache(model, 60)
    assert torch.equal(generate(model, tokens, cache), expected)
    assert [isinstance(layer, DynamicSlidingWindowLayer) for layer in cache.layers] == [True, False, True]
    small = screened_cache(model, 12)
    generate(model, tokens, small)
    assert small.positions(1).shape == (2, 2, 12)
    with pytest.raises(ValueError, match="name a screened layer; got 0, a DynamicSlidingWindowLayer"):
        small.positions(0)
    with pytest.raises(ValueError, match="sliding windows alone"):
        screened_cache(tiny("mistral", sliding_window=6), 12)  # in every layer


def test_capped_attention_is_scored_by_its_own_weights(tiny, prompt, screened_cache):
    """Gemma 2 squashes its logits: scores without that would choose other keys."""
    model, tokens = tiny("gemma2", "eager", attn_logit_softcapping=0.01), prompt(1, 40)
    cache = screened_cache(model, 12, screen="h2o", recent=0)
    feed(model, tokens, cache, 1)
    assert cache.positions(1)[0, 0].tolist() == list(range(12))  # all alike: the oldest have the largest sums


def test_models_and_caches_side_by_side(tiny, prompt, screened_cache):
    models = [tiny("llama"), tiny("gpt2"), tiny("qwen", "eager")]
    alone = [generate(model, prompt(1, 20), screened_cache(model, 12)) for model in models]
    caches = [screened_cache(model, 12) for model in models]
    texts = [prompt(1, 20)] * 3
    with torch.no_grad():
        for _ in range(25):
            for place, (model, cache) in enumerate(zip(models, caches, strict=True)):
                new = texts[place][:, cache.get_seq_length() :]
                token = model(new, past_key_values=cache).logits[:, -1:].argmax(-1)
                texts[place] = torch.cat([texts[place], token], dim=1)
    assert all(map(torch.equal, texts, alone))


def test_a_cache_filled_in_inference_mode_goes_on_outside_of_it(tiny, prompt, screened_cache):
    model, tokens = tiny("llama"), prompt(1, 30)
    cache, usual = screened_cache(model, 12), screened_cache(model, 12)
    with torch.inference_mode():
        model(tokens, past_key_values=cache)
    feed(model, tokens, usual, 30)
    assert torch.equal(feed(model, tokens, cache, 1), feed(model, tokens, usual, 1))


def test_a_compiled_model_gives_the_same_text(tiny, prompt, screened_cache):
    model, tokens = tiny("llama"), prompt(2, 20)
    expected = generate(model, tokens, screened_cache(model, 12), max_new_tokens=5)
    compiled = torch.compile(model, backend="eager")
    assert torch.equal(generate(compiled, tokens, screened_cache(model, 12), max_new_tokens=5), expected)
    with pytest.raises(TypeError, match=r"got OptimizedModule\. Of a compiled model, hand over the one"):
        screened_cache(compiled, 12)


def test_threads_do_not_meet(tiny, prompt, screened_cache):
    model = tiny("llama")
    prompts = [prompt(1, 20, seed=seed) for seed in range(4)]
    alone = [generate(model, tokens, screened_cache(model, 12)) for tokens in prompts]
    found = {}

    def work(place):
        found[place] = generate(model, prompts[place], screened_cache(model, 12))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(found[place], alone[place]) for place in range(4))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": 0}, "`budget` must be an int >= 1; got 0"),
        ({"budget": 8, "recent": 6, "sinks": 4}, r"`budget` must be >= recent \+ sinks = 6 \+ 4; got 8"),
        ({"budget": 4, "sinks": 5}, r"`budget` must be >= recent \+ sinks = 0 \+ 5; got 4"),
        ({"screen": "beta"}, "`screen` must be one of 'attention'"),
        ({"screen": "tova", "recent": 4}, r"`recent` must be None with TOVA\(\)"),
        ({"chunk": 0}, "`chunk` must be an int >= 1; got 0"),
    ],
)
def test_bad_numbers(tiny, screened_cache, options, words):
    with pytest.raises(ValueError, match=words):
        screened_cache(tiny("gpt2"), **options)


def test_bad_types(tiny, screened_cache):
    with pytest.raises(TypeError, match=r"`screen` must be a Screen or the name of one; got 3\. Names: attention"):
        screened_cache(tiny("gpt2"), screen=3)
    with pytest.raises(TypeError, match="`model` must be a model of transformers; got Linear"):
        screened_cache(torch.nn.Linear(2, 2))


def test_what_would_be_wrong_in_silence_is_refused(transformers, tiny, prompt, screened_cache):
    model, tokens = tiny("llama"), prompt(2, 20)
    cache = screened_cache(model, 12)
    with pytest.raises(ValueError, match=r"be used without gradients; got keys with a gradient\. Use torch\.no_grad"):
        model(tokens, past_key_values=cache)
    with torch.no_grad():
        mask = torch.ones_like(tokens)
        mask[0, -2:] = 0
        with pytest.raises(ValueError, match="be padded on the left; got padding after a token"):
            model(tokens, attention_mask=mask, past_key_values=screened_cache(model, 12))
        with pytest.raises(RuntimeError, match="given to a model that it was not made for"):
            tiny("llama")(tokens, past_key_values=cache)
        model(tokens, past_key_values=cache)
        with pytest.raises(ValueError, match="as the cache holds them"):
            model(tokens[:1], past_key_values=cache)
        model.set_attn_implementation("sdpa")
        with pytest.raises(RuntimeError, match="was switched back"):
            model(tokens, past_key_values=cache)
    with pytest.raises(ValueError, match="have an attention function that transformers can exchange; got Bloom"):
        screened_cache(transformers.BloomForCausalLM(transformers.BloomConfig(vocab_size=32, hidden_size=8)))
    with pytest.raises(ValueError, match="be a decoder whose layers own their keys"):
        screened_cache(transformers.T5ForConditionalGeneration(tiny_t5(transformers)))
    model.set_attn_implementation("flex_attention")
    with pytest.raises(ValueError, match="attend by 'sdpa' or 'eager'; got 'flex_attention'"):
        screened_cache(model)


def tiny_t5(transformers):
    return transformers.T5Config(vocab_size=32, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
