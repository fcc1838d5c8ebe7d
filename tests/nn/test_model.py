import copy
from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence
from torch.utils._pytree import tree_leaves

from remanence import nn, tasks
from remanence.testing import assert_matches

TOKENS = 6
DOUBLE = torch.float64
CORES: dict[str, dict[str, Any]] = {
    "RelLSTM": {"hidden_size": 8, "recent": 3, "relevant": 2},
    "SABRNN": {"hidden_size": 8, "top_k": 2, "every": 2},
    "ExpRNN": {"hidden_size": 8},
    "GRU": {"hidden_size": 8, "num_layers": 2},
    "Transformer": {"depth": 2, "heads": 2},
    "CausalConvolution": {"channels": 8, "depth": 2},
}
TORCH_CORES = {"RNN": torch.nn.RNN, "LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU}


def named_model(name: str, **options) -> nn.SequenceModel:
    return nn.SequenceModel(
        TOKENS, name, TOKENS, encoder="embedding", embedding_size=8, dtype=DOUBLE, **CORES[name] | options
    )


def torch_model(name: str, **options) -> nn.SequenceModel:
    return nn.SequenceModel(TOKENS, TORCH_CORES[name](TOKENS, 8, dtype=DOUBLE, **options), TOKENS)


FACTORIES = {name: lambda name=name, **options: named_model(name, **options) for name in CORES}
FACTORIES |= {f"torch.{name}": lambda name=name, **options: torch_model(name, **options) for name in TORCH_CORES}
FACTORIES["TruncatedRNN"] = lambda **options: nn.SequenceModel(
    TOKENS, nn.TruncatedRNN(nn.LSTM(TOKENS, 8, dtype=DOUBLE, **options), window=3), TOKENS
)
any_core = pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES)


def random_tokens(*shape: int) -> torch.Tensor:
    return torch.randint(TOKENS, shape)


# ---- any core ------------------------------------------------------------------------------------------------------


@any_core
def test_logits_have_the_layout_of_the_tokens(make):
    assert make()(random_tokens(7, 3))[0].shape == (7, 3, TOKENS)
    assert make()(random_tokens(7))[0].shape == (7, TOKENS)
    assert make(batch_first=True)(random_tokens(3, 7))[0].shape == (3, 7, TOKENS)


@any_core
@pytest.mark.parametrize("batch_first", [False, True])
def test_steps_equal_the_whole_run(make, batch_first):
    model = make(batch_first=batch_first)
    tokens = random_tokens(3, 7) if batch_first else random_tokens(7, 3)
    whole, _ = model(tokens)
    state, steps = None, []
    for token in tokens.unbind(int(batch_first)):
        logits, state = model.step(token, state)
        steps.append(logits)
    assert_matches({"logits": torch.stack(steps, dim=int(batch_first))}, {"logits": whole})


@any_core
def test_the_state_goes_on_where_a_piece_ended(make):
    model, tokens = make(), random_tokens(9, 2)
    whole, _ = model(tokens)
    first, state = model(tokens[:4])
    second, _ = model(tokens[4:], state)
    assert_matches({"logits": torch.cat([first, second])}, {"logits": whole})


@any_core
def test_packed_tokens_give_packed_logits(make):
    model = make()
    rows = [random_tokens(5), random_tokens(3)]
    logits, lengths = pad_packed_sequence(model(pack_sequence(rows))[0])
    assert lengths.tolist() == [5, 3]
    for row, tokens in enumerate(rows):
        assert_matches({"logits": logits[: len(tokens), row]}, {"logits": model(tokens)[0]})


# ---- encoders and head ---------------------------------------------------------------------------------------------


def test_one_hot_equals_an_embedding_by_the_unit_vectors():
    one_hot = nn.SequenceModel(TOKENS, "RNN", 4, hidden_size=8)
    embedding = nn.SequenceModel(TOKENS, one_hot.core, 4, encoder="embedding", embedding_size=TOKENS)
    embedding.head = one_hot.head
    embedding.encoder.embedding = torch.nn.Embedding.from_pretrained(torch.eye(TOKENS))
    tokens = random_tokens(5, 2)
    assert torch.equal(one_hot(tokens)[0], embedding(tokens)[0])


def test_dense_vectors_reach_the_core_as_they_are():
    model = nn.SequenceModel(3, "LSTM", 2, encoder="dense", hidden_size=4)
    x = torch.randn(5, 2, 3)
    assert torch.equal(model(x)[0], model.head(model.core(x)[0]))


def test_dense_vectors_may_pass_a_linear_map():
    model = nn.SequenceModel(3, "LSTM", 2, encoder="dense", embedding_size=7, hidden_size=4)
    assert model.core.input_size == 7
    assert model(torch.randn(5, 2, 3))[0].shape == (5, 2, 2)


@pytest.mark.parametrize("options", [{}, {"encoder": "embedding", "embedding_size": 5}])
def test_encoder_and_head_follow_the_core(options):
    model = nn.SequenceModel(TOKENS, "GRU", 2, hidden_size=4, dtype=DOUBLE, **options)
    assert {parameter.dtype for parameter in model.parameters()} == {DOUBLE}
    assert model(random_tokens(3, 1))[0].dtype == DOUBLE
    assert model.float()(random_tokens(3, 1))[0].dtype == torch.float32
    meta = nn.SequenceModel(TOKENS, "GRU", 2, hidden_size=4, device="meta", **options)
    assert {parameter.device.type for parameter in meta.parameters()} == {"meta"}
    assert meta(random_tokens(3, 1).to("meta"))[0].shape == (3, 1, 2)


def tied_model() -> nn.SequenceModel:
    return nn.SequenceModel(TOKENS, "RNN", TOKENS, encoder="embedding", embedding_size=8, tied=True, hidden_size=8)


def test_tied_weights_are_one_parameter_whose_gradient_is_that_of_both_uses():
    tied = tied_model().double()
    free = nn.SequenceModel(TOKENS, copy.deepcopy(tied.core), TOKENS, encoder="embedding", embedding_size=8)
    free.load_state_dict(tied.state_dict())
    tokens = random_tokens(4, 2)
    shared, *rest = tied.encoder.embedding.parameters()
    assert shared is tied.head.weight
    assert not rest
    (gradient,) = torch.autograd.grad(tied(tokens)[0].square().sum(), [shared])
    uses = [*free.encoder.embedding.parameters(), free.head.weight]
    both = torch.autograd.grad(free(tokens)[0].square().sum(), uses)
    assert_matches({"weight": gradient}, {"weight": both[0] + both[1]})


def test_tied_weights_start_as_small_as_a_heads():
    assert tied_model().head.weight.abs().max() <= 8**-0.5


def test_tied_weights_stay_tied_in_copies_and_state_dicts():
    model = tied_model()
    twin = copy.deepcopy(model)
    assert twin.encoder.embedding.weight is twin.head.weight
    other = tied_model()
    other.load_state_dict(model.state_dict())
    tokens = random_tokens(4, 2)
    assert torch.equal(other(tokens)[0], model(tokens)[0])


def test_dropout_acts_in_training_only_and_never_on_one_hot_tokens():
    model = nn.SequenceModel(TOKENS, "RNN", 2, hidden_size=8, dropout=1.0)
    tokens = random_tokens(4, 2)
    assert torch.equal(model(tokens)[0], model.head.bias.expand(4, 2, 2))  # all that the head reads was dropped
    assert model(tokens)[1].s.abs().sum() > 0
    state = model(tokens)[1].s
    assert torch.equal(model.eval()(tokens)[1].s, state)  # what entered the core was not
    assert not torch.equal(model(tokens)[0], model.head.bias.expand(4, 2, 2))


def test_dropout_drops_learned_encodings():
    model = nn.SequenceModel(TOKENS, torch.nn.RNN(5, 8), 2, encoder="embedding", embedding_size=5, dropout=1.0)
    zeros = torch.zeros(4, 2, 5)
    assert torch.equal(model(random_tokens(4, 2))[1], model.core(zeros)[1])


def test_a_named_core_gets_the_dropout_for_its_inside():
    assert nn.SequenceModel(TOKENS, "LSTM", 2, hidden_size=4, num_layers=2, dropout=0.25).core.dropout == 0.25


# ---- parameter counts of Shen 2019 -------------------------------------------------------------------------------


@pytest.mark.parametrize(("core", "hidden_size", "single", "double"), [("RNN", 32, 1190, 1222), ("LSTM", 4, 126, 142)])
def test_parameter_counts_of_document_003(core, hidden_size, single, double):
    options: dict[str, Any] = {"encoder": "embedding", "embedding_size": 2, "hidden_size": hidden_size}
    assert count(nn.SequenceModel(2, core, 2, **options, bias="single")) == single
    assert count(nn.SequenceModel(2, core, 2, **options)) == double
    own = getattr(torch.nn, core)(2, hidden_size)
    assert count(nn.SequenceModel(2, own, 2, encoder="embedding", embedding_size=2)) == double


def count(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


# ---- tasks and resets ----------------------------------------------------------------------------------------------


def test_a_model_takes_its_sizes_from_a_task():
    task = tasks.Copy(length=5, items=2)
    model = nn.SequenceModel.for_task(task, "RelRNN", hidden_size=8, recent=3, relevant=2)
    batch = task.batch(0, 4)
    assert torch.isfinite(task.loss(model(batch.inputs)[0], batch))


def test_a_task_of_tokens_gets_an_encoder_of_tokens():
    class Echo:
        input_kind, input_size, output_size = "tokens", 5, 4

    assert nn.SequenceModel.for_task(Echo(), "RNN", hidden_size=8).encoder.kind == "one-hot"
    chosen = nn.SequenceModel.for_task(Echo(), "RNN", hidden_size=8, encoder="embedding", embedding_size=3)
    assert chosen.core.input_size == 3


def test_reset_equals_a_fresh_start():
    model = named_model("RelLSTM")
    tokens = random_tokens(8, 2)
    reset = torch.zeros(8, 2, dtype=torch.bool)
    reset[5] = True
    assert_matches({"logits": model(tokens, reset=reset)[0][5:]}, {"logits": model(tokens[5:])[0]})


@pytest.mark.parametrize("make", [FACTORIES["torch.LSTM"], FACTORIES["CausalConvolution"]])
def test_a_core_without_reset_says_so(make):
    with pytest.raises(ValueError, match="`reset` must be None with the core"):
        make()(random_tokens(3, 1), reset=torch.zeros(3, 1, dtype=torch.bool))


# ---- generation ----------------------------------------------------------------------------------------------------


def teacher_forced(model, tokens, temperature, seed, prompt=None):
    """Draws every token from the logits that one full pass over the given tokens makes."""
    generator = torch.Generator().manual_seed(seed)
    if prompt is None:
        known, drawn = tokens, [torch.randint(model.output_size, tokens.shape[1:], generator=generator)]
        logits = model.eval()(known[:-1])[0]
    else:
        known, drawn = torch.cat([prompt, tokens]), []
        logits = model.eval()(known[:-1])[0][len(prompt) - 1 :]
    for logits_t in logits:
        uniform = torch.rand(logits_t.shape[:-1], generator=generator, dtype=DOUBLE)
        up_to = torch.softmax(logits_t.double() / temperature, dim=-1).cumsum(dim=-1)
        drawn.append((up_to <= uniform.unsqueeze(-1)).sum(dim=-1))
    return torch.stack(drawn)


@any_core
@pytest.mark.parametrize("rows", [(), (3,)], ids=["unbatched", "batched"])
def test_generated_tokens_are_those_drawn_from_the_full_pass(make, rows):
    model, prompt = make(), random_tokens(4, *rows)
    tokens, _ = model.generate(12, prompt=prompt, temperature=0.7, generator=torch.Generator().manual_seed(1))
    assert tokens.shape == (12, *rows)
    assert torch.equal(tokens, teacher_forced(model, tokens, 0.7, seed=1, prompt=prompt))


@any_core
def test_without_a_prompt_the_first_token_is_uniform_and_the_rest_the_models(make):
    model = make()
    tokens, _ = model.generate(12, batch_size=3, generator=torch.Generator().manual_seed(2))
    assert torch.equal(tokens, teacher_forced(model, tokens, 1.0, seed=2))
    assert model.generate(5)[0].shape == (5,)


@any_core
def test_generation_in_pieces_equals_generation_at_once(make):
    model, prompt = make(), random_tokens(2, 3)
    whole, end = model.generate(10, prompt=prompt, generator=torch.Generator().manual_seed(3))
    generator = torch.Generator().manual_seed(3)
    first, state = model.generate(6, prompt=prompt, generator=generator)
    second, state = model.generate(4, prompt=first[-1:], state=state, generator=generator)
    assert torch.equal(torch.cat([first, second]), whole)
    assert_matches(named(state), named(end))


def named(state) -> dict[str, torch.Tensor]:
    return {str(number): leaf for number, leaf in enumerate(tree_leaves(state))}


def test_batch_first_generation():
    model = named_model("RelLSTM", batch_first=True)
    twin = named_model("RelLSTM")
    twin.load_state_dict(model.state_dict())
    prompt = random_tokens(3, 4)
    tokens, _ = model.generate(6, prompt=prompt, generator=torch.Generator().manual_seed(4))
    expected, _ = twin.generate(6, prompt=prompt.T, generator=torch.Generator().manual_seed(4))
    assert torch.equal(tokens, expected.T)
    assert model.generate(6, batch_size=2)[0].shape == (2, 6)


def test_temperature_zero_takes_the_likeliest_token():
    model, prompt = named_model("GRU"), random_tokens(3, 2)
    tokens, _ = model.generate(5, prompt=prompt, temperature=0)
    known = torch.cat([prompt, tokens])
    assert torch.equal(tokens, model(known[:-1])[0][2:].argmax(-1))


def test_frequencies_follow_the_softmax():
    model = nn.SequenceModel(3, "RNN", 3, hidden_size=2)
    torch.nn.init.zeros_(model.head.weight)
    with torch.no_grad():
        model.head.bias.copy_(torch.tensor([0.2, 0.3, 0.5]).log())
    rows, generator = 20000, torch.Generator().manual_seed(0)
    tokens, _ = model.generate(2, batch_size=rows, generator=generator)
    for place, chances in enumerate([torch.full((3,), 1 / 3), torch.tensor([0.2, 0.3, 0.5])]):
        expected = rows * chances
        chi_square = ((tokens[place].bincount(minlength=3) - expected) ** 2 / expected).sum()
        assert chi_square < 13.8  # exceeded once in a thousand draws by two degrees of freedom


def test_generation_leaves_modes_gradients_and_global_randomness_alone():
    model = named_model("GRU", dropout=0.5).train()
    model.head.eval()
    before = torch.get_rng_state()
    generator = torch.Generator().manual_seed(5)
    tokens, state = model.generate(6, batch_size=2, generator=generator)
    assert torch.equal(torch.get_rng_state(), before)
    assert (model.training, model.core.training, model.head.training) == (True, True, False)
    again, _ = model.generate(6, batch_size=2, generator=generator.manual_seed(5))
    assert torch.equal(tokens, again)  # dropout was off
    assert not state.s.requires_grad
    model(tokens, state)[0].sum().backward()  # and the state may enter a graph


# ---- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ((0, "RNN", 2), {"hidden_size": 4}, ValueError, "`input_size` must be an int >= 1; got 0"),
        ((3, "RNN", 0), {"hidden_size": 4}, ValueError, "`output_size` must be an int >= 1; got 0"),
        ((3, "RNM", 2), {"hidden_size": 4}, ValueError, "Did you mean 'RNN'"),
        ((3, 7, 2), {}, TypeError, "`core` must be a module or the name of one; got int"),
        ((3, torch.nn.RNN(4, 5), 2), {}, ValueError, "`core` must have input_size 3, as the encoder gives; got 4"),
        ((3, torch.nn.RNN(3, 5), 2), {"hidden_size": 4}, TypeError, "`core` must be a name to take options"),
        ((3, "RNN", 2), {"encoder": "onehot", "hidden_size": 4}, ValueError, "Did you mean 'one-hot'"),
        ((3, "RNN", 2), {"encoder": "embedding", "hidden_size": 4}, ValueError, "`embedding_size` must be given"),
        ((3, "RNN", 2), {"embedding_size": 5, "hidden_size": 4}, ValueError, "`embedding_size` must be given"),
        ((3, "RNN", 3), {"tied": True, "hidden_size": 4}, ValueError, "`tied` must be False without an embedding"),
        ((3, "RNN", 2), {"dropout": 2.0, "hidden_size": 4}, ValueError, "`dropout` must be"),
        ((3, "RNN", 2), {"hidden_sizes": 4}, TypeError, "hidden_size"),
    ],
)
def test_bad_arguments_are_named(arguments, options, error, words):
    with pytest.raises(error, match=words):
        nn.SequenceModel(*arguments, **options)


@pytest.mark.parametrize("sizes", [(5, 4, 6), (5, 5, 6)], ids=["output", "hidden"])
def test_tied_sizes_must_agree(sizes):
    tokens, classes, hidden = sizes
    with pytest.raises(ValueError, match="`tied` must be False unless"):
        nn.SequenceModel(tokens, "RNN", classes, encoder="embedding", embedding_size=4, tied=True, hidden_size=hidden)


@pytest.mark.parametrize(
    ("encoder", "inputs", "error", "words"),
    [
        ("one-hot", torch.zeros(3, 1), TypeError, "`inputs` must be an int64 tensor .* Vectors need encoder='dense'"),
        ("one-hot", torch.tensor([[3]]), ValueError, "`inputs` must hold tokens from 0 to 2; got tokens from 3 to 3"),
        ("one-hot", torch.tensor([[-1]]), ValueError, "`inputs` must hold tokens from 0 to 2"),
        ("dense", torch.zeros(3, 1, dtype=torch.int64), TypeError, "`inputs` must be a float tensor"),
        ("dense", torch.zeros(3, 1, 4), ValueError, "`inputs` must have 3 features"),
    ],
)
def test_bad_inputs_are_named(encoder, inputs, error, words):
    model = nn.SequenceModel(3, "RNN", 2, encoder=encoder, hidden_size=4)
    with pytest.raises(error, match=words):
        model(inputs)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"length": 0}, "`length` must be an int >= 1"),
        ({"length": 2, "temperature": -1.0}, "`temperature` must be"),
        ({"length": 2, "batch_size": 0}, "`batch_size` must be an int >= 1"),
        ({"length": 2, "batch_size": 2, "prompt": torch.tensor([1])}, "`batch_size` must be absent with a prompt"),
        ({"length": 2, "prompt": torch.zeros(1, 1, 1, dtype=torch.int64)}, "`prompt` must be tokens of shape"),
        ({"length": 2, "state": torch.zeros(1, 8)}, "`state` must come with a prompt"),
    ],
)
def test_bad_generation_is_named(options, words):
    with pytest.raises(ValueError, match=words):
        torch_model("RNN").generate(**options)


def test_models_that_cannot_generate_say_so():
    with pytest.raises(ValueError, match="`encoder` must read tokens"):
        nn.SequenceModel(3, "RNN", 3, encoder="dense", hidden_size=4).generate(2)
    with pytest.raises(ValueError, match="`output_size` must be at most input_size = 3"):
        nn.SequenceModel(3, "RNN", 4, hidden_size=4).generate(2)
    with pytest.raises(ValueError, match="forward only"):
        torch_model("RNN", bidirectional=True).generate(2)
    with pytest.raises(ValueError, match="bidirectional"):
        nn.SequenceModel(3, "RNN", 3, hidden_size=4, bidirectional=True).generate(2)
