"""Every probe is right on the models that people own, from Python."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from remanence import probes
from remanence.probes._subject import Subject
from remanence.testing import assert_agrees

sys.path.insert(0, str(Path(__file__).parent))
import foreign

STEPS = 20
ROWS = 3
HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None


def numbers(*shape):
    return lambda: torch.randn(shape, generator=torch.Generator().manual_seed(0))


def tokens():
    return torch.randint(foreign.VOCABULARY, (ROWS, STEPS), generator=torch.Generator().manual_seed(0))


def dictionary():
    return {"x": numbers(ROWS, STEPS, foreign.WIDTH)(), "mask": torch.ones(ROWS, STEPS)}


TIME_FIRST = numbers(STEPS, ROWS, foreign.WIDTH)
BATCH_FIRST = numbers(ROWS, STEPS, foreign.WIDTH)
MODELS = {
    "LSTM classifier": (foreign.Classifier, TIME_FIRST),
    "transposing": (foreign.Transposing, BATCH_FIRST),
    "GRU on tokens": (foreign.TokenModel, tokens),
    "TransformerEncoder": (foreign.encoder, BATCH_FIRST),
    "TCN, features second": (foreign.Convolutions, numbers(ROWS, foreign.WIDTH, STEPS)),
    "TCN, batch first": (foreign.BatchFirstConvolutions, BATCH_FIRST),
    "bidirectional": (foreign.both_ways, TIME_FIRST),
    "stateful": (foreign.Stateful, TIME_FIRST),
    "dictionary": (foreign.FromDictionary, dictionary),
    "GPT-2": (foreign.gpt2, tokens),
    "Llama": (foreign.llama, tokens),
}
PROBES = {
    "gradient_reach": probes.gradient_reach,
    "attention_map": probes.attention_map,
    "stability": probes.stability,
    "truncation_gap": lambda model, batch: probes.truncation_gap(model, batch, [1, 4, STEPS]),
    "cost": lambda model, batch: probes.cost(model, [5, 10, 20], batch, repeats=1),
    "tradeoff": lambda model, batch: probes.tradeoff({"it": model}, [5, 10], batch),
}


@pytest.fixture(params=sorted(MODELS))
def subject(request, require_or_skip):
    if request.param in ("GPT-2", "Llama") and not HAS_TRANSFORMERS:
        require_or_skip("transformers", "transformers is not installed: pip install 'remanence[hf]'")
    make, batch = MODELS[request.param]
    return make(), batch()


@pytest.mark.parametrize("probe", sorted(PROBES))
def test_every_probe_runs_on_every_model(probe, subject):
    model, batch = subject
    assert PROBES[probe](model, batch).verdict


def test_the_layout_is_read_right_without_being_told(subject):
    model, batch = subject
    layout = Subject(model, batch).layout
    assert (layout.steps, layout.rows) == (STEPS, ROWS)
    assert f"read as T = {STEPS} steps, B = {ROWS} rows" in layout.verdict


def test_the_last_step_is_felt_most_and_some_before_it_too(subject):
    model, batch = subject
    reach = probes.gradient_reach(model, batch)
    assert len(reach.distance) == STEPS
    assert reach.horizon >= foreign.Convolutions.reach


def test_nothing_is_missing_in_the_full_window(subject):
    model, batch = subject
    gap = probes.truncation_gap(model.train(), batch, [1, STEPS])
    assert gap.output[-1] == 0
    assert gap.output[0] > 0
    assert all(part.training for part in model.modules())


def test_a_vector_for_each_row_is_the_output_of_the_last_step():
    model = foreign.Classifier()

    def by_step(x):
        return model.head(model.core(x)[0])

    x = TIME_FIRST()
    whole = probes.gradient_reach(by_step, x, through="inputs")
    assert_agrees(probes.gradient_reach(model, x, through="inputs").log_norm, whole.log_norm, torch.float32)
    windows = [1, 3, 9]
    assert_agrees(
        probes.truncation_gap(model, x, windows).output,
        probes.truncation_gap(by_step, x, windows).output,
        torch.float32,
    )


def test_a_model_that_transposes_inside_gives_what_its_layer_gives():
    model = foreign.Transposing()
    x = BATCH_FIRST()
    inner = probes.gradient_reach(model.core, x.transpose(0, 1))
    assert_agrees(probes.gradient_reach(model, x).log_norm, inner.log_norm, torch.float32)
    assert_agrees(probes.stability(model, x).lyapunov, probes.stability(model.core, x.transpose(0, 1)).lyapunov)


def test_a_convolution_reaches_what_its_kernels_span():
    for make, batch in (MODELS["TCN, features second"], MODELS["TCN, batch first"]):
        assert probes.gradient_reach(make(), batch()).horizon == foreign.Convolutions.reach


def test_a_state_on_the_model_is_as_it_was():
    model = foreign.Stateful()
    x = TIME_FIRST()
    fresh = probes.gradient_reach(model, x)
    assert model.h is None
    assert_agrees(fresh.log_norm, probes.gradient_reach(model.core, x).log_norm, torch.float32)


def test_dropout_is_off_unless_training_is_asked_for():
    model = foreign.TokenModel()
    quiet = probes.truncation_gap(model, tokens(), [STEPS])
    loud = probes.truncation_gap(model, tokens(), [STEPS], training=True)
    assert quiet.output == (0.0,)
    assert loud.output[0] > 0


def test_modes_come_back_for_each_module():
    model = foreign.TokenModel()
    model.dropout.eval()
    before = [part.training for part in model.modules()]
    probes.gradient_reach(model, tokens())
    assert [part.training for part in model.modules()] == before


def test_two_readings_are_refused_by_name():
    pattern = r"T = 6 steps of B = 4 rows, or batch first: T = 4 of B = 6\. Pass batch_first=True or False"
    with pytest.raises(ValueError, match=pattern):
        probes.gradient_reach(nn.Linear(3, 2), torch.randn(6, 4, 3))
    assert len(probes.gradient_reach(nn.Linear(3, 2), torch.randn(6, 4, 3), batch_first=True).distance) == 4


def test_equal_sizes_are_told_apart_by_what_a_change_reaches():
    square = torch.randn(6, 6, foreign.WIDTH)
    assert Subject(foreign.Transposing(), square).layout.time == 1
    assert Subject(foreign.Classifier(), square).layout.time == 0


def test_one_length_only_is_said():
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.Linear(STEPS, STEPS)

        def forward(self, x):
            return self.mix(x.transpose(1, 2)).transpose(1, 2)

    with pytest.raises(ValueError, match="runs on 20 steps only"):
        probes.truncation_gap(Fixed(), BATCH_FIRST(), [1, 2], batch_first=True)
    found = probes.stability(Fixed(), BATCH_FIRST(), batch_first=True)
    assert not found.any_length
    assert "no shorter window was tried, because the model runs on one length only" in found.verdict


def test_a_dictionary_without_a_known_name_says_which_keys_it_has():
    with pytest.raises(ValueError, match="the keys left, right"):
        probes.gradient_reach(lambda batch: batch["left"], {"left": torch.randn(4, 1), "right": torch.randn(4, 1)})


def test_all_probes_in_one_call(subject):
    model, batch = subject
    told = []
    found = probes.probe_model(model, batch, tell=told.append)
    assert list(found) == ["layout", *told]
    assert found["layout"].verdict.startswith(f"read as T = {STEPS} steps, B = {ROWS} rows")
    failed = {name: result.verdict for name, result in found.items() if "failed" in result.verdict}
    assert not failed
    for name in ("gradient_reach", "perturbation_reach", "stability", "truncation_gap", "cost"):
        assert not isinstance(found[name], probes.NotMeasured)


def test_one_failing_probe_does_not_stop_the_others():
    class Grumpy(nn.Module):
        """Runs forward alone."""

        def __init__(self):
            super().__init__()
            self.core = nn.RNN(foreign.WIDTH, 4)

        def forward(self, x):
            if torch.is_grad_enabled():
                raise RuntimeError("no gradients here\nat all")
            return self.core(x)[0]

    found = probes.probe_model(Grumpy(), TIME_FIRST())
    assert found["gradient_reach"].verdict == "failed: RuntimeError: no gradients here"
    assert found["gradient_reach"].figures() == []
    assert found["perturbation_reach"].verdict.startswith("Reacts")


def test_what_is_skipped_says_why():
    found = probes.probe_model(foreign.TokenModel(), tokens(), skip={"cost": "it is not wanted"})
    assert found["cost"].verdict == "does not apply: it is not wanted"


def test_time_that_cannot_be_judged_is_not_called_quadratic(monkeypatch):
    from remanence.probes import _cost

    noisy = iter([1.0, 2.3, 5.0, 1.1, 2.7, 6.2] * 3)
    monkeypatch.setattr(_cost, "timed", lambda run, device: next(noisy))
    found = probes.cost(nn.LSTM(4, 4), [10, 20, 40], TIME_FIRST(), repeats=2)
    assert found.growth["seconds"].order == "unclear"
    assert "time (too noisy to say)" in found.verdict


def test_time_with_little_scatter_is_judged(monkeypatch):
    from remanence.probes import _cost

    steady = iter([1.0, 2.0, 4.0] * 3)
    monkeypatch.setattr(_cost, "timed", lambda run, device: next(steady))
    assert "time linear" in probes.cost(nn.LSTM(4, 4), [10, 20, 40], TIME_FIRST(), repeats=2).verdict


@pytest.fixture
def language_models(require_or_skip):
    if not HAS_TRANSFORMERS:
        require_or_skip("transformers", "transformers is not installed: pip install 'remanence[hf]'")
    return {"GPT-2": foreign.gpt2(), "Llama": foreign.llama()}


def test_plain_and_fused_attention_of_grouped_heads_are_the_same_map(language_models):
    for model in language_models.values():
        fused = probes.attention_map(model, tokens())
        model.set_attn_implementation("eager")
        plain = probes.attention_map(model, tokens())
        assert len(fused.maps) == len(plain.maps) == 2
        for one, other in zip(fused.maps, plain.maps, strict=True):
            assert_agrees(one, other, torch.float32)
            assert_agrees(one.sum(axis=1), 1.0, torch.float32)


def test_a_dictionary_with_a_mask_says_what_the_tokens_say(language_models):
    for model in language_models.values():
        batch = {"input_ids": tokens(), "attention_mask": torch.ones(ROWS, STEPS, dtype=torch.int64)}
        for probe in (probes.gradient_reach, probes.perturbation_reach):
            assert probe(model, batch).to_dict() == probe(model, tokens()).to_dict()
        assert probes.truncation_gap(model, batch, [3, STEPS]).output[1] == 0


def test_gradients_are_taken_at_the_tokens_and_not_at_their_positions(language_models):
    model = language_models["GPT-2"].eval()  # nothing can switch a module inside a function
    embedded = model.get_input_embeddings()(tokens()).detach()
    by_embedding = probes.gradient_reach(lambda x: model(inputs_embeds=x), embedded, batch_first=True)
    assert_agrees(probes.gradient_reach(model, tokens()).log_norm, by_embedding.log_norm, torch.float32)


def test_tokens_that_are_turned_before_they_are_embedded():
    class Turning(foreign.TokenModel):
        def forward(self, tokens):
            embedded = self.embedding(tokens.T).transpose(0, 1)
            return self.head(self.core(embedded)[0])

    turning = Turning().eval()
    straight = foreign.TokenModel().eval()
    straight.load_state_dict(turning.state_dict())
    turned = probes.gradient_reach(turning, tokens(), through="inputs")
    plain = probes.gradient_reach(straight, tokens(), through="inputs")
    assert_agrees(turned.log_norm, plain.log_norm, torch.float32)
