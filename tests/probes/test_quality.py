import json
import math

import numpy as np
import pytest

from remanence import probes


def test_words_that_the_reference_lacks_are_not_valid():
    found = probes.text_quality("The CAT, tha cat 42", "the cat sat")
    assert found.words == 4
    assert found.valid_words == 3 / 4


@pytest.mark.parametrize(
    ("line", "good"),
    [
        (" = Title = \n", True),
        (" = = A = = \n", True),
        ("= = A =\n", False),
        ("= A = =\n", False),
        (" = \n", False),
        ("= = A", False),
    ],
)
def test_titles_are_closed_or_not(line, good):
    found = probes.text_quality("some text \n" + line + " and more = here \n", "a")
    assert found.titles == 1
    assert found.balanced_titles == good


def test_texts_without_words_or_titles_are_said_to_have_none():
    found = probes.text_quality(["", "12 34"], "a word")
    assert (found.words, found.titles) == (0, 0)
    assert math.isnan(found.valid_words)
    assert math.isnan(found.balanced_titles)
    assert "no titles" in found.verdict
    assert "too short for a topic" in found.verdict
    json.dumps(found.to_dict())


def test_a_topic_is_seen_and_chance_is_not():
    """Texts of one topic each, against the same words in any order."""
    generator = np.random.default_rng(0)
    topics = [[f"{name}{letter}" for letter in "abcdefghij"] for name in ("sea", "war", "sun", "law")]
    texts = [" ".join(generator.choice(topics[number % 4], 400)) for number in range(12)]
    mixed = " ".join(texts).split()
    generator.shuffle(mixed)
    reference = " ".join(word for topic in topics for word in topic)
    kept = probes.text_quality(texts, reference)
    lost = probes.text_quality(" ".join(mixed), reference)
    assert min(kept.topic[:3]) > 0.5
    assert max(map(abs, lost.topic)) < 0.1
    assert kept.plot() is not None


def test_a_topic_that_changes_is_lost_with_distance():
    names = [f"topic{chr(97 + number // 150)}x{chr(97 + number % 5)}" for number in range(3000)]
    found = probes.text_quality(" ".join(names), " ".join(names))
    assert found.topic[0] > found.topic[-1]


def test_bad_input():
    with pytest.raises(ValueError, match="`reference` must have words"):
        probes.text_quality("a", "12")
    with pytest.raises(ValueError, match="`window` must be an int"):
        probes.text_quality("a", "a", window=0)
