"""Models that are unlike those of the library: known answers are found, and what cannot be said is not said."""

import dataclasses
import math

import pytest
import torch
from torch import nn

from remanence import probes
from remanence.testing import DelayLine, LeakyIntegrator, MarkovModel


def numbers(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def tokens(kinds, *shape):
    return torch.randint(kinds, shape, generator=torch.Generator().manual_seed(0))


class Window(nn.Module):
    """A language model that sees the last five tokens, all alike."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(8, 6)
        self.head = nn.Linear(30, 8)

    def forward(self, ids):
        padded = nn.functional.pad(self.embedding(ids), (0, 0, 4, 0))
        return self.head(torch.cat([padded[:, lag : lag + ids.shape[1]] for lag in range(5)], dim=-1))


class Labels(nn.Module):
    """Two classes for each row of tokens."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(8, 6)
        self.core = nn.GRU(6, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, ids):
        return self.head(self.core(self.embedding(ids))[0][:, -1])


class Flat(nn.Module):
    """One matrix over all twenty steps: no step counts for more than another."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.head = nn.Linear(60, 2)

    def forward(self, x):
        return self.head(x.flatten(1))


class Translator(nn.Module):
    """An encoder reads the source, a decoder says the target."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.encoder = nn.GRU(3, 8, batch_first=True)
        self.decoder = nn.GRU(2, 8, batch_first=True)

    def forward(self, source, target):
        _, h = self.encoder(source)
        return self.decoder(target, h)[0]


class Padded(nn.Module):
    """A label for each row, from its last step that is no padding."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.core = nn.GRU(3, 8, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.head(self.core(packed)[1][-1])


@dataclasses.dataclass
class Answer:
    loss: float
    forecast: torch.Tensor
    hidden: torch.Tensor


class Forecaster(nn.Module):
    """Returns a dataclass with names of its own."""

    def __init__(self):
        super().__init__()
        self.core = nn.GRU(3, 6, batch_first=True)

    def forward(self, x):
        output, hidden = self.core(x)
        return Answer(0.5, output, hidden)


@pytest.mark.parametrize("delay", [7, 33, 60])
def test_a_delay_between_the_distances_tried_is_found(delay):
    found = probes.perturbation_reach(DelayLine(delay), numbers(100, 3, 2), batch_first=False)
    assert found.horizon == delay
    assert "nothing nearer" in found.verdict


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.95])
def test_both_reaches_find_the_steps_of_a_known_decay(decay):
    model = LeakyIntegrator(decay)
    gradient = probes.gradient_reach(model, numbers(200, 2, 1), batch_first=False)
    effect = probes.perturbation_reach(model, numbers(200, 2, 1), batch_first=False)
    for share in (0.5, 0.01):
        steps = math.floor(math.log(share) / math.log(decay))
        assert gradient.steps_left(share) == steps
        assert effect.steps_left(share) == steps


@pytest.mark.parametrize("order", [1, 3, 6, 11])
def test_context_is_used_up_to_the_order_of_the_chain(order):
    chances = torch.full((4, 4), 0.02) + 0.92 * torch.eye(4)
    model = MarkovModel(chances, order)
    sequences = model.sample(100, 64, torch.Generator().manual_seed(0))
    found = probes.context_use(model, sequences, batch_first=False)
    assert found.enough() == order


def test_a_window_forgets_all_at_once():
    found = probes.stability(Window(), tokens(8, 16, 50))
    assert found.horizon == 4
    assert found.verdict.startswith("forgets all at once: nothing older than 4 steps arrives")
    assert not found.figures()


@pytest.mark.parametrize("make", [lambda: LeakyIntegrator(1.0), lambda: lambda x: x.cumsum(dim=0) / len(x)])
def test_what_stays_as_it_is_has_no_rate(make):
    found = probes.probe_model(make(), numbers(60, 3, 2), batch_first=False)
    assert found["gradient_reach"].decay.rate == 0
    assert found["gradient_reach"].decay.interval == (0, 0)
    assert found["stability"].verdict.startswith("holds: a small difference neither falls nor grows")


def test_noise_is_not_called_forgetting():
    found = probes.stability(Flat(), numbers(6, 20, 3))
    assert found.interval[0] < 0 < found.interval[1]
    assert found.verdict.startswith("holds")


def test_two_steps_are_enough_for_a_sentence_that_does_not_contradict_itself():
    torch.manual_seed(0)
    found = probes.gradient_reach(nn.GRU(3, 3), numbers(2, 5, 3))
    assert found.verdict.startswith("Sees all 2 steps")
    assert "cut off" not in found.verdict


@pytest.mark.parametrize("limit", [math.inf, math.nan])
def test_outputs_that_are_not_finite_are_no_answer(limit):
    def broken(x):
        return x.cumsum(dim=0) * limit

    effect = probes.perturbation_reach(broken, numbers(20, 4, 3), batch_first=False)
    assert effect.verdict == "Cannot say how far it reacts: the output is not finite"
    assert not effect.figures()
    assert "not finite" in probes.truncation_gap(broken, numbers(20, 4, 3), [2, 20], batch_first=False).verdict


def test_costs_that_nobody_counted_are_left_out():
    found = probes.cost(LeakyIntegrator(0.9), [20, 40, 80], numbers(20, 3, 2), batch_first=False)
    assert "operations" not in found.verdict
    assert "state" not in found.verdict
    assert not found.as_declared


def test_costs_name_the_lengths():
    assert "from T = 16 to 64" in probes.cost(nn.LSTM(3, 4), [16, 32, 64]).verdict


def test_a_model_without_gradients_is_told_where_to_look():
    @torch.no_grad()
    def frozen(x):
        return x.cumsum(dim=0)

    found = probes.probe_model(frozen, numbers(30, 3, 2), batch_first=False)
    assert found["gradient_reach"].verdict.startswith("does not apply: nothing of the output has a gradient")
    assert found["stability"].verdict.startswith("no shorter window keeps outputs within")
    assert "gradients" not in found["truncation_gap"].verdict


def test_classes_are_not_taken_for_tokens():
    found = probes.probe_model(Labels(), tokens(8, 6, 20))["context_use"]
    assert found.verdict == "does not apply: the model predicts no tokens (2 outputs, tokens up to 7)"


def test_the_first_tensor_of_a_dataclass_is_the_output_and_is_named():
    found = probes.probe_model(Forecaster(), numbers(4, 30, 3))
    assert "output `forecast`" in found["layout"].verdict
    assert found["gradient_reach"].horizon == 29


def test_the_only_sequence_of_a_dictionary_is_the_input_whatever_its_name():
    core = nn.GRU(3, 4, batch_first=True)

    def padded(features, weight):
        return core(features * weight)[0]

    batch = {"features": numbers(4, 30, 3), "weight": torch.ones(3)}
    assert probes.gradient_reach(padded, batch).horizon == 29


def test_two_sequences_in_a_dictionary_are_refused_with_a_way_out():
    batch = {"price": numbers(5, 30), "amount": numbers(5, 30)}
    with pytest.raises(ValueError, match="Pass a function of one of them"):
        probes.gradient_reach(lambda batch: batch["amount"], batch)


class Fields(nn.Module):
    """Takes a category and an amount for each step."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.core = nn.GRU(6, 5, batch_first=True)

    def forward(self, batch):
        return self.core(torch.cat([self.embedding(batch["category"]), batch["amount"]], dim=-1))[0]


def test_the_sequence_with_most_dimensions_is_read_and_named():
    found = probes.probe_model(Fields(), {"category": tokens(9, 5, 30), "amount": numbers(5, 30, 2)})
    assert "input `amount`" in found["layout"].verdict
    assert found["layout"].any_length
    assert found["truncation_gap"].ks[-1] == 30


class Named(nn.Module):
    """Says that it is batch first, and gives one vector for each row."""

    batch_first = True

    def __init__(self):
        super().__init__()
        self.core = nn.GRU(3, 4, batch_first=True)

    def forward(self, x):
        return self.core(x)[1][0]


def test_a_model_that_names_its_layout_may_still_give_one_vector_for_each_row():
    found = probes.probe_model(Named(), numbers(5, 30, 3))["layout"]
    assert found.output_time is None


def test_one_number_for_all_rows_is_measured():
    core = nn.GRU(3, 4, batch_first=True)
    found = probes.probe_model(lambda x: core(x)[0].square().mean(), numbers(4, 30, 3), batch_first=True)
    assert found["perturbation_reach"].horizon > 0
    assert found["truncation_gap"].ks[-1] == 30


def test_complex_numbers_keep_both_parts():
    turn = torch.tensor(0.9j)

    def spiral(x):
        h = torch.zeros_like(x[0])
        outputs = []
        for x_t in x:
            h = turn * h + x_t
            outputs.append(h)
        return torch.stack(outputs)

    x = torch.complex(numbers(60, 3), numbers(60, 3).flip(0))
    found = probes.probe_model(spiral, x, batch_first=False)
    assert found["gradient_reach"].steps_left(0.01) == math.floor(math.log(0.01) / math.log(0.9))
    assert found["perturbation_reach"].steps_left(0.01) == math.floor(math.log(0.01) / math.log(0.9))


def test_time_without_counted_operations_is_not_called_more_than_memory_shows():
    found = probes.cost(lambda x: x.cumsum(dim=0), [64, 128, 256], numbers(64, 4, 8), batch_first=False)
    crooked = dataclasses.replace(found.growth["seconds"], order="quadratic")
    assert dataclasses.replace(found, growth={**found.growth, "seconds": crooked}).order("seconds") is None


def test_a_model_that_needs_two_arguments_gets_both():
    batch = (numbers(2, 30, 3), numbers(2, 12, 2))
    found = probes.probe_model(Translator(), batch)
    assert found["layout"].verdict.startswith("read as T = 30 steps, B = 2 rows")
    assert "input `source`" in found["layout"].verdict
    assert found["perturbation_reach"].verdict.startswith("Reacts to about")


def test_lengths_are_cut_with_the_rows_that_they_belong_to():
    x = numbers(3, 30, 3)
    padded = probes.probe_model(Padded(), (x, torch.tensor([30, 30, 30])))
    model = Padded()
    whole = probes.probe_model(lambda x: model.head(model.core(x)[1][-1]), x, batch_first=True)
    for name in ("gradient_reach", "perturbation_reach"):
        assert padded[name].verdict == whole[name].verdict
    assert padded["truncation_gap"].verdict.startswith("With the last step alone")


def test_a_gap_above_the_gradient_itself_is_a_plain_number():
    gap = probes.TruncationGap((2, 20), (4.9, 4.1), (), 1.0, (1.2345, 0.98))
    assert "gradients by 123 % of their size" in gap.verdict
    assert "by 98 % of their size" in gap.verdict


class Waveform(nn.Module):
    """A label for each row of raw audio ``(B, 1, T)``: convolutions with a stride, then a recurrent layer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.front = nn.Conv1d(1, 4, 4, stride=2)
        self.core = nn.GRU(4, 6, batch_first=True)

    def forward(self, wave):
        return self.core(self.front(wave).transpose(1, 2))[1][-1]


class Spectrogram(nn.Module):
    """Outputs for every second frame of ``(B, 1, 8, T)``."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.front = nn.Conv2d(1, 2, 3, stride=2, padding=1)
        self.core = nn.GRU(8, 6, batch_first=True)

    def forward(self, frames):
        return self.core(self.front(frames).permute(0, 3, 1, 2).flatten(2))[0]


class Frames(nn.Module):
    """Outputs for every second frame of ``(B, T, 40)``."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.front = nn.Conv1d(40, 32, 3, stride=2, padding=1)
        self.core = nn.GRU(32, 32, batch_first=True)
        self.head = nn.Linear(32, 29)

    def forward(self, x):
        return self.head(self.core(torch.relu(self.front(x.transpose(1, 2))).transpose(1, 2))[0])


@pytest.mark.parametrize(("model", "shape", "time"), [(Waveform, (3, 1, 60), 2), (Spectrogram, (3, 1, 8, 60), 3)])
def test_sound_has_its_time_last(model, shape, time):
    found = probes.probe_model(model(), numbers(*shape))
    assert found["layout"].verdict.startswith("read as T = 60 steps, B = 3 rows")
    assert found["layout"].verdict.endswith(f"time is dimension {time} of the input")
    assert found["perturbation_reach"].horizon > 10
    assert not any(result.verdict.startswith("failed") for result in found.values())


def test_two_dimensions_that_can_be_time_are_both_named():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(1))
    with pytest.raises(ValueError, match="T = 16 steps along dimension 2 or T = 20 steps along dimension 3"):
        probes.gradient_reach(model, numbers(2, 1, 16, 20))


def test_rows_that_are_scaled_together_are_told_by_the_output():
    core = nn.GRU(3, 5, batch_first=True)
    found = probes.probe_model(lambda x: core(x / x.abs().max())[1][0], numbers(4, 30, 3))["layout"]
    assert found.verdict.startswith("read as T = 30 steps, B = 4 rows (as the shape of the output shows")


def test_a_stride_does_not_hide_which_window_is_enough():
    found = probes.stability(Frames(), numbers(4, 100, 40), batch_first=True)
    assert found.method == "gradients"  # the layer inside takes two steps for one
    assert found.window_measured is not None
    assert found.window_measured < 60


def test_memory_whose_peak_moves_is_not_called_quadratic():
    found = probes.cost(Frames(), [25, 50, 100], numbers(4, 100, 40), batch_first=True, repeats=1)
    assert found.growth["peak_bytes"].order == "linear"


def test_attention_over_a_layer_that_forgets_does_not_forget():
    torch.manual_seed(0)
    core = nn.LSTM(3, 8, batch_first=True)
    score = nn.Linear(8, 1)

    class Pooled(nn.Module):
        def __init__(self):
            super().__init__()
            self.core = core

        def forward(self, x):
            states = core(x)[0]
            return (score(states).softmax(dim=1) * states).sum(dim=1)

    found = probes.stability(Pooled(), numbers(4, 60, 3))
    assert found.verdict.startswith("holds")


def test_products_inside_a_layer_of_torch_that_nobody_can_look_into_are_counted():
    torch.manual_seed(0)
    core = nn.LSTM(3, 8)
    x = numbers(20, 2, 3)
    plain = probes.cost(core, [10, 20], x, batch_first=False, repeats=1)
    hidden = probes.cost(lambda x: core(x)[0], [10, 20], x, batch_first=False, repeats=1)
    assert hidden.operations == plain.operations


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, when it imports its compiler
def test_a_compiled_model_is_probed_as_it_was_written():
    model = Labels()
    compiled = torch.compile(model)
    batch = tokens(8, 6, 20)
    plain = probes.probe_model(model, batch)
    found = probes.probe_model(compiled, batch)
    for name in ("layout", "gradient_reach", "perturbation_reach", "stability", "truncation_gap"):
        assert found[name].verdict == plain[name].verdict


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_not_called_deaf(dtype):
    torch.manual_seed(0)
    model = Window().to(dtype)
    found = probes.perturbation_reach(model, tokens(8, 16, 50))
    assert found.horizon == 4


def test_changes_below_rounding_are_not_called_none():
    found = probes.PerturbationReach(torch.arange(3).numpy(), torch.full((3,), 0.01).numpy(), "norm", 0.05)
    assert found.verdict == "Cannot say how far it reacts: rounding alone may move the output by 0.05, too"


def test_windows_of_padding_alone_are_named_and_the_others_measured():
    gap = probes.TruncationGap((2, 10, 40), (math.nan, 0.3, 0.0), (), 1.0, (math.nan, 0.2, 0.0))
    assert gap.verdict.startswith("With the last 10 steps alone outputs differ by 0.3")
    assert gap.verdict.endswith("; not finite with the last 2 steps: is a row all padding there?")
    assert "padding" in probes.TruncationGap((2, 40), (math.nan, 0.0), (), 1.0, ()).verdict


def test_costs_are_not_compared_with_layers_that_see_other_sequences():
    found = probes.cost(Translator(), [10, 20], (numbers(2, 30, 3), numbers(2, 12, 2)), repeats=1)
    assert found.declared_operations is None


def test_a_gradient_that_falls_by_a_factor_of_a_hundred_is_not_called_stable_in_words():
    found = probes.gradient_reach(LeakyIntegrator(0.7), numbers(15, 2, 1), batch_first=False)
    assert "dL/dx falls by a factor of 103 over the run, exponential law" in found.verdict


def test_a_model_of_integers_lets_no_gradient_through_and_says_where_to_look():
    core = nn.GRU(3, 5)
    found = probes.probe_model(lambda x: core(x.round())[0], numbers(30, 3, 3), batch_first=False)
    assert found["gradient_reach"].verdict == (
        "Sees nothing: no gradient arrives at any step; perturbation_reach needs none"
    )
    assert "-1" not in found["stability"].verdict
