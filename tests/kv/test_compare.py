"""The comparison on a text: its numbers, and that it comes back from JSON."""

import pytest
import torch
from torch.nn.functional import cross_entropy


def test_the_loss_is_the_models_own(tiny, prompt, transformers):
    from remanence.kv import ScreenedCache, text_loss
    from remanence.testing import assert_matches

    model, tokens = tiny("llama", dtype=torch.float64), prompt(2, 50)
    with torch.no_grad():
        logits = model(tokens).logits
    exact = cross_entropy(logits[:, 19:-1].transpose(1, 2).float(), tokens[:, 20:], reduction="none").mean(1)
    for cache in (transformers.DynamicCache(config=model.config), ScreenedCache(model, 60)):
        found = text_loss(model, tokens, cache, first=20, piece=7)
        assert_matches({"loss": found}, {"loss": exact.double()}, {"loss": exact})


def test_budgets_and_screens(tiny, prompt):
    from remanence.kv import compare_caches
    from remanence.runs import result_from

    model, told = tiny("gpt2"), []
    found = compare_caches(model, prompt(1, 80), [16, 79 - 1], ["mean", "window"], names=("m", "t"), tell=told.append)
    assert found.first == 79
    assert [(score.policy, score.budget) for score in told] == [
        ("full", 80),
        ("mean", 16),
        ("window", 16),
        ("mean", 78),
        ("window", 78),
    ]
    assert abs(found.extra_loss("mean", 78)) < 1e-4 < abs(found.extra_loss("mean", 16))  # all but one key, and few
    assert found.full.cache_bytes > found.screened[0].cache_bytes
    assert result_from(found.to_dict()) == found
    (figure,) = found.figures()
    assert [part.name for part in figure.parts] == ["mean", "window", "full"]


def test_a_short_text_is_refused(tiny, prompt):
    from remanence.kv import compare_caches

    with pytest.raises(ValueError, match="be longer than the largest budget"):
        compare_caches(tiny("gpt2"), prompt(1, 20), [8, 19])


@pytest.mark.parametrize(("kind", "attention"), [("gpt2", "sdpa"), ("llama", "eager"), ("gemma2", "eager")])
def test_caches_of_one_pass_are_as_if_alone(tiny, prompt, kind, attention):
    """Losses and held keys, with pieces that fit, that fit in part, and that do not fit."""
    from remanence.kv import SCREENS, ScreenedCache, text_loss
    from remanence.kv._compare import losses_together
    from remanence.testing import assert_matches

    model, tokens = tiny(kind, attention, dtype=torch.float64), prompt(2, 50)
    made = [(screen, budget) for screen in SCREENS for budget in (8, 60)]
    together = [ScreenedCache(model, budget, screen=screen) for screen, budget in made]
    found = losses_together(model, tokens, together, first=10, piece=7)
    for (screen, budget), cache, losses in zip(made, together, found, strict=True):
        alone = ScreenedCache(model, budget, screen=screen)
        expected = text_loss(model, tokens, alone, first=10, piece=7)
        assert_matches({"loss": losses}, {"loss": expected.double()}, {"loss": expected})
        screened = 0 if kind != "gemma2" else 1  # every other layer of Gemma has a sliding window
        assert torch.equal(cache.positions(screened), alone.positions(screened)), (screen, budget)
