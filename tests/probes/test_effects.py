"""The reach of a change and the use of context, on models whose answers are known."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from remanence import probes
from remanence.testing import DelayLine, LeakyIntegrator, MarkovModel, assert_agrees, assert_sampled

CHAIN = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], dtype=torch.float64)


@pytest.mark.parametrize("decay", [0.5, 0.9, 1.0])
def test_the_effect_of_a_step_decays_as_the_integrator_does(decay):
    found = probes.perturbation_reach(LeakyIntegrator(decay), torch.randn(40, 3, 2, dtype=torch.float64))
    assert_agrees(found.change / found.change[0], decay**found.distance)
    assert found.measure == "norm"


def test_half_and_a_hundredth_are_where_the_powers_are():
    found = probes.perturbation_reach(
        LeakyIntegrator(0.8), torch.randn(60, 2, 1, dtype=torch.float64), distances=range(60)
    )
    assert found.steps_left(0.5) == math.floor(math.log(0.5) / math.log(0.8))
    assert found.steps_left(0.01) == math.floor(math.log(0.01) / math.log(0.8))
    assert (
        "Reacts to about 20 steps: of the effect of the last step, 50 % is left 3 steps back, 1 % 20 back"
        in found.verdict
    )


def test_the_gradient_says_the_same_steps():
    found = probes.gradient_reach(LeakyIntegrator(0.8), torch.randn(200, 2, 1))
    start = "Sees about 20 steps: of the gradient at the last step, 50 % is left 3 steps back, 1 % 20 back."
    assert found.verdict.startswith(start)
    assert f"Beyond {math.floor(math.log(found.resolution) / math.log(0.8))} it is noise." in found.verdict


def test_a_delay_is_felt_at_its_step_alone():
    found = probes.perturbation_reach(DelayLine(4), torch.randn(12, 2, 1))
    assert np.flatnonzero(found.change).tolist() == [4]
    assert found.horizon == 4
    assert "4 steps back; nothing nearer than 4 steps" in found.verdict


def test_a_token_moves_the_distribution_by_its_total_variation():
    model = MarkovModel(CHAIN, order=2)
    found = probes.perturbation_reach(model, model.sample(10, 4))
    assert found.measure == "total variation"
    assert_agrees(found.change, [0.0, 0.7, *[0.0] * (len(found.change) - 2)])
    assert found.horizon == 1


def test_models_without_gradients_have_a_reach():
    found = probes.perturbation_reach(lambda x: x.cumsum(dim=0).round(), torch.randn(9, 2, 1))
    assert found.horizon == 8


def test_nothing_is_felt_of_a_constant():
    found = probes.perturbation_reach(torch.zeros_like, torch.randn(9, 1, 1))
    assert found.horizon == -1
    assert "Reacts to nothing" in found.verdict


def test_bad_changes_name_the_way_out():
    with pytest.raises(ValueError, match="two different tokens"):
        probes.perturbation_reach(MarkovModel(CHAIN), torch.zeros(5, 1, dtype=torch.int64))
    with pytest.raises(ValueError, match="`distances` must rise and stay below 5"):
        probes.perturbation_reach(DelayLine(1), torch.randn(5, 1, 1), distances=[5])
    with pytest.raises(ValueError, match="`draws` must be an int >= 1"):
        probes.perturbation_reach(DelayLine(1), torch.randn(5, 1, 1), draws=0)


@pytest.mark.parametrize("order", [1, 3])
def test_nats_per_token_fall_at_the_order_of_the_chain(order):
    model = MarkovModel(CHAIN, order)
    tokens = model.sample(40, 300, torch.Generator().manual_seed(0))
    found = probes.context_use(model, tokens, contexts=[1, 2, 3, 8], batch_first=False)
    without = [nats for context, nats in zip(found.contexts, found.nats, strict=True) if context < order]
    within = [nats for context, nats in zip(found.contexts, found.nats, strict=True) if context >= order]
    assert_agrees([model.entropy, *without], math.log(3))
    assert len(set(np.round(within, 12))) == 1
    surprise = -CHAIN.log()[0]
    spread = float((CHAIN[0] * (surprise - model.conditional_entropy).square()).sum()) ** 0.5
    assert_sampled(within[0], model.conditional_entropy, spread / math.sqrt(found.tokens))
    assert found.enough() == order


def test_the_verdict_says_tokens_and_nats():
    model = MarkovModel(CHAIN, 3)
    found = probes.context_use(model, model.sample(40, 300, torch.Generator().manual_seed(0)))
    assert found.verdict.startswith("Uses about 3 tokens of context: 1.099 nats per token with 1 token of context, 0.6")


def test_useless_context_is_not_called_used():
    model = MarkovModel(CHAIN, 1)
    tokens = torch.randint(3, (20, 4), generator=torch.Generator().manual_seed(0))
    assert "Too few tokens to say" in probes.context_use(MarkovModel(CHAIN, 3), tokens[:, :1], targets=2).verdict
    assert "Context makes predictions worse" in probes.context_use(MarkovModel(CHAIN, 3), tokens.repeat(1, 200)).verdict
    assert probes.context_use(model, tokens, batch_first=False).gain == 0


def test_context_is_for_tokens_and_logits():
    with pytest.raises(ValueError, match="hold tokens"):
        probes.context_use(DelayLine(1), torch.randn(9, 2, 3))
    with pytest.raises(ValueError, match="predicts no tokens"):
        probes.context_use(nn.Embedding(5, 3), torch.randint(5, (9, 2)) // 4 * 4, batch_first=False)
    with pytest.raises(ValueError, match="three tokens in a row"):
        probes.context_use(nn.Embedding(5, 5), torch.randint(5, (2, 1)))


def test_a_first_step_that_is_always_attended_to_is_no_long_reach():
    from remanence.probes._steps import seen_words

    sizes = np.log([*0.5 ** np.arange(50.0), 0.02])
    words = "about 6 steps: of it, 50 % is left 1 step back, 1 % 6 back, 2 % 50 back"
    assert seen_words(sizes, "it", "is left") == words


WORDS = {
    0.0: "all 20 steps: of it, 100 % is left 19 steps back",
    0.2: "all 20 steps: 19 steps back it is 44.7 times it",
    -0.1: "all 20 steps: of it, 50 % is left 6 steps back, 15 % 19 back",
    -1.0: "about 4 steps: of it, 37 % is left 1 step back, 1 % 4 back",
    -9.0: "hardly more than the present step: of it, 0.012 % is left 1 step back",
}


@pytest.mark.parametrize(("rate", "words"), list(WORDS.items()))
def test_what_is_seen_in_words(rate, words):
    from remanence.probes._steps import seen_words

    assert seen_words(rate * np.arange(20), "it", "is left") == words


def test_equal_small_shares_of_all_steps_are_not_called_the_present_step_only():
    from remanence.probes._steps import seen_words

    flat = np.log([1.0, *np.linspace(0.006, 0.008, 40)])
    words = "all 41 steps, but each of them faintly: of it, 0.6 % is left 1 step back, 0.8 % 40 back"
    assert seen_words(flat, "it", "is left") == words
    falling = np.log([1.0, *(0.7 / np.arange(1, 40))])
    assert seen_words(falling, "it", "is left").startswith("all 40 steps: of it, 50 % is left 1 step back")


def test_steps_that_are_not_seen_between_others_are_named():
    from remanence.probes._steps import seen_words

    both_ends = np.log(np.concatenate([0.5 ** np.arange(30), 0.5 ** np.arange(30)[::-1]]))
    words = "all 60 steps: of it, 100 % is left 59 steps back, but less than 1 % from 7 to 52 back"
    assert seen_words(both_ends, "it", "is left") == words
    sparse = np.array([0, 1, 2, 30, 60])  # distances between those tried are not called unseen
    assert "from" not in seen_words(np.log([1.0, 0.5, 0.4, 0.3, 0.2]), "it", "is left", sparse)
