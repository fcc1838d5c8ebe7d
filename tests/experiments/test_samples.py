import pytest
import torch

from remanence.data import Vocabulary
from remanence.experiments._samples import Amount, as_texts, data_of, draw_sequences, is_text, symbols_of
from remanence.nn import SequenceModel
from remanence.tasks import BinaryPowerLaw, Copy, SequenceFile, Text


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat\n" * 100)

    def make(**options):
        return Text(path=str(tmp_path / "text.txt"), **options)

    return make


def transformer(task, width=8):
    return SequenceModel.for_task(task, "Transformer", encoder="embedding", embedding_size=width, depth=1, heads=2)


def test_the_same_seed_draws_the_same():
    task = BinaryPowerLaw(length=30)
    model = SequenceModel.for_task(task, "RNN", hidden_size=4)
    drawn = [draw_sequences(model, task, Amount(5, 30), seed) for seed in (0, 0, 1)]
    assert drawn[0].tolist() == drawn[1].tolist() != drawn[2].tolist()


def test_a_model_that_is_sure_says_what_it_is_sure_of(text):
    """Logits that always want the letter 'c': all but the first symbol are that."""
    task = text(length=10)
    model = SequenceModel.for_task(task, "RNN", hidden_size=2)
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.copy_(100.0 * (torch.arange(task.output_size) == task.vocabulary.numbers["c"]))
    (row,) = as_texts(draw_sequences(model, task, Amount(1, 50)), task.vocabulary)
    assert row[1:] == "c" * 49
    assert row[0] in "the cat sat on the mat\n"


@pytest.mark.parametrize("length", [2, 9, 10, 11, 37])
def test_a_transformer_of_chunks_never_sees_a_later_position(text, length, monkeypatch):
    task = text(length=10, drop_state=1.0)
    model = transformer(task)
    longest = []
    whole = SequenceModel.forward
    monkeypatch.setattr(SequenceModel, "forward", lambda self, x, *a: longest.append(len(x)) or whole(self, x, *a))
    steps = []
    step = SequenceModel.step
    monkeypatch.setattr(
        SequenceModel, "step", lambda self, x, s=None: steps.append(int(s.step.max())) or step(self, x, s)
    )
    drawn = draw_sequences(model, task, Amount(2, length))
    assert drawn.shape == (2, length)
    assert max(longest) <= task.length // 2
    assert max(steps, default=0) < task.length


def test_windows_go_on_where_the_last_one_ended(text):
    """A Transformer that all but repeats the symbol before it repeats the first one through all windows."""
    task = text(length=8, drop_state=1.0)
    model = transformer(task, width=64)
    with torch.no_grad():
        for parameter in [p for name, p in model.core.named_parameters() if "norm" not in name]:
            parameter.zero_()  # what is left of the core: the input, normalised
        next(model.encoder.parameters()).copy_(100 * torch.eye(task.input_size, 64))
        model.head.weight.copy_(100 * torch.eye(task.input_size, 64))
        model.head.bias.zero_()
    drawn = draw_sequences(model, task, Amount(3, 30))
    assert (drawn == drawn[:, :1]).all()


def test_word_models_are_measured_as_characters(text, tmp_path):
    words = text(level="word", length=5)
    tokens = data_of(words, "train", 1)[:, :8]
    assert is_text(words)
    assert symbols_of(tokens, words) == ["the cat sat on the mat \n the"]
    (tmp_path / "numbers.txt").write_text("10 20 30 " * 100)
    numbers = SequenceFile(path=str(tmp_path / "numbers.txt"))
    assert not is_text(numbers)
    assert symbols_of(data_of(numbers, "train", 1), numbers)[0, :4].tolist() == [0, 1, 2, 0]


def test_how_much_is_drawn():
    task = BinaryPowerLaw(length=64)
    assert Amount.for_task(task) == Amount(2000, 64)
    assert Amount.for_task(task, 3, 9) == Amount(3, 9)
    assert data_of(task, "validation", 7).shape == (7, 64)


def test_what_says_no_sequences_is_refused():
    task = Copy(length=5)
    model = SequenceModel.for_task(task, "RNN", hidden_size=4)
    with pytest.raises(ValueError, match="`task` must ask for the next symbol"):
        draw_sequences(model, task, Amount(1, 5))
    for sizes in ((0, 5), (5, 1)):
        with pytest.raises(ValueError, match="must be an int"):
            Amount(*sizes)


def test_lines_end_where_words_say_so():
    assert as_texts(torch.tensor([[1, 0, 1]]), Vocabulary(("<eos>", "so"), " ")) == ["so \n so"]
