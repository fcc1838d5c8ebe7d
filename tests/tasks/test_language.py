"""Texts: lanes, chunks, resets, baselines, the user's own files."""

import math

import numpy as np
import pytest
import torch

from remanence import data
from remanence.tasks import Score, SequenceFile, Text, Text8, WikiText2Char, make_task
from remanence.tasks._ngram import bigram

TEXT = "the cat sat on the mat and purred at the other cat\n" * 30


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text(TEXT)
    return str(file)


def test_chunks_of_a_pass_join_into_the_lanes(path):
    task = Text(path=path, length=7)
    for split in ("train", "validation", "test"):
        tokens = getattr(task.corpus, split).long()
        count = task.batches_per_epoch(3, split)
        batches = [task.batch(number, 3, split=split) for number in range(count)]
        lane = (len(tokens) - 1) // 3
        assert torch.equal(torch.cat([batch.inputs for batch in batches]), tokens[: 3 * lane].view(3, lane).T)
        assert torch.equal(torch.cat([batch.targets for batch in batches]), tokens[1 : 3 * lane + 1].view(3, lane).T)
        assert all(batch.mask.all() for batch in batches)
        again = task.batch(count, 3, split=split)
        assert torch.equal(again.inputs, batches[0].inputs)


def test_state_is_dropped_at_the_start_of_every_pass_and_nowhere_else(path):
    task = Text(path=path, length=50)
    count = task.batches_per_epoch(2)
    resets = [task.batch(number, 2).reset for number in range(2 * count)]
    assert [reset is not None and bool(reset.all()) for reset in resets] == ([True] + [False] * (count - 1)) * 2
    assert task.stateful


def test_state_is_dropped_with_the_given_probability_in_training_alone(path):
    task = Text(path=path, length=1, drop_state=0.25)
    count = task.batches_per_epoch(1)
    dropped = [bool(task.batch(number, 1).reset) for number in range(1, count)]
    assert abs(sum(dropped) / len(dropped) - 0.25) < 5 * math.sqrt(0.25 * 0.75 / len(dropped))
    assert not any(bool(task.batch(number, 1, split="validation").reset) for number in range(1, 60))
    other = [bool(task.batch(number, 1, seed=1).reset) for number in range(1, count)]
    assert dropped != other
    assert WikiText2Char().drop_state == 0.01


def test_samples_are_pieces_of_their_split(path):
    task = Text(path=path, length=9)
    for split in ("train", "test"):
        batch = task.sample(20, task.stream(split, 0), split)
        text = task.vocabulary.decode(getattr(task.corpus, split))
        for row in range(20):
            piece = task.vocabulary.decode(torch.cat([batch.inputs[:1, row], batch.targets[:, row]]))
            assert piece in text


def test_words_and_characters(path):
    words, characters = Text(path=path, level="word"), Text(path=path)
    assert words.input_size == len(set(TEXT.split())) + 1
    assert characters.input_size == len(set(TEXT))
    assert set(words.report(Score(2.0, 2, 1, 2))) == {"loss", "accuracy", "perplexity"}
    assert words.report(Score(2.0, 2, 1, 2))["perplexity"] == math.e
    assert characters.report(Score(2.0, 2, 1, 2))["bits_per_character"] == 1 / math.log(2)


def test_a_changed_file_is_read_again(path, tmp_path):
    task = Text(path=path)
    before = task.input_size
    (tmp_path / "mine.txt").write_text(TEXT + "!" * 100)
    assert task.input_size == before + 1


def test_token_arrays_become_tasks(tmp_path):
    np.save(tmp_path / "a.npy", np.tile([5, -3, 900], 100))
    task = make_task("sequence", path=str(tmp_path / "a.npy"), length=3)
    batch = task.batch(0, 2)
    assert isinstance(task, SequenceFile)
    assert task.vocabulary.symbols == ("-3", "5", "900")
    assert batch.inputs[:, 0].tolist() == [1, 0, 2]
    assert batch.targets[:, 0].tolist() == [0, 2, 1]


def test_baselines_of_a_text_that_a_bigram_knows_fully(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("ab" * 5000)
    task = Text(path=str(file))
    assert task.memory_free.accuracy == 1
    # Smoothing leaves less than one in a thousand to the wrong symbol.
    assert task.memory_free.loss < 1e-3
    # The last of 4,500 trained pairs is "ab", so both symbols come equally often.
    torch.testing.assert_close(task.chance.loss, math.log(2))


def test_baselines_by_hand(tmp_path):
    file = tmp_path / "a.txt"
    # 16 symbols: training "aabaabaabaab" (a 8, b 4), validation "ab", test "ab".
    file.write_text("aab" * 4 + "abab")
    task = Text(path=str(file), validation=0.125, test=0.125)
    assert task.vocabulary.decode(task.corpus.train) == "aabaabaabaab"
    chance_of_b = (4 + 1) / (12 + 2)
    torch.testing.assert_close(task.chance.loss, -math.log(chance_of_b))
    assert task.chance.accuracy == 0
    # After "a": 4 times "a", 4 times "b", two different followers.
    torch.testing.assert_close(task.memory_free.loss, -math.log((4 + 2 * chance_of_b) / (8 + 2)))


def test_the_most_frequent_follower_is_named():
    # In training "b" follows "a" three times and "c" once; in validation come "ab" twice, "ba" twice and "ac" once.
    corpus = data.corpus_of_characters(["abacabab", "ababac", "ab"])
    assert bigram(corpus).accuracy == 4 / 5


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"length": 0}, "length"),
        ({"drop_state": 1.5}, "drop_state"),
        ({"validation": 0.6, "test": 0.5}, "validation \\+ test"),
        ({"validation": 0.0}, "validation"),
        ({"level": "letter"}, "level"),
    ],
)
def test_bad_options_are_named(options, argument):
    with pytest.raises(ValueError, match=argument):
        Text(path="x", **options)


def test_missing_files_and_oversized_requests_are_explained(path):
    with pytest.raises(ValueError, match="`path` must name an existing file"):
        _ = Text(path="no-such-file").corpus
    with pytest.raises(ValueError, match="`path` must name an existing file"):
        _ = SequenceFile().corpus
    with pytest.raises(ValueError, match="`batch_size` must be below the 76 tokens of the test split"):
        Text(path=path).batch(0, 100, split="test")
    with pytest.raises(ValueError, match="`length` must be below"):
        Text(path=path, length=10_000).sample(1, Text(path=path).stream())


def test_the_prefix_of_text8_is_labelled():
    score = Score(2.0, 2, 1, 2)
    assert "bits_per_character_of_prefix" in Text8(source="prefix").report(score)
    assert "bits_per_character" in Text8().report(score)
    with pytest.raises(ValueError, match="source"):
        Text8(source="whole")  # pyright: ignore[reportArgumentType]


def test_the_whole_of_text8_is_not_replaced_by_the_prefix(tmp_path, monkeypatch):
    monkeypatch.setenv("REMANENCE_DATA", str(tmp_path))
    monkeypatch.setenv("REMANENCE_CACHE", str(tmp_path))
    monkeypatch.setattr("remanence.data._files.fetch", lambda form, target: None)
    with pytest.raises(data.MissingDataError, match=r"(?s)text8/text8.*source='prefix'"):
        _ = Text8().corpus
