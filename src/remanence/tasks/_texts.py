"""The texts that the documents use: Penn Treebank, text8, WikiText-2."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

from remanence import _validate
from remanence.data import Corpus, MissingDataError, frequent_words, load_corpus
from remanence.tasks._batch import Score
from remanence.tasks._language import Language
from remanence.tasks._registry import register_task


@register_task("ptb-char")
@dataclass(frozen=True)
class PtbChar(Language):
    """Predict the Penn Treebank, character by character.

    Description:
        Newspaper text of 50 characters in Mikolov's preparation: small letters, `_` for the blank, rare words
        replaced by `<unk>`, numbers by `N`, a line end after every sentence. 5,017,482 characters for training,
        393,042 for validation, 442,423 for the test::

            input    p i e r r e _ <
            target   i e r r e _ < u

    Input:
        Tokens `(length, B)` below 50.

    Target:
        Tokens `(length, B)`: the next character.

    Metric:
        Bits per character (cross entropy / ln 2) and accuracy over all steps.

    Chance level:
        By character frequencies, and by a bigram model, both fitted on training and measured on validation: `chance`
        and `memory_free`.

    Reference:
        Marcus, Santorini & Marcinkiewicz 1993; Mikolov et al. 2012, "Subword language modeling with neural networks".

    Args:
        length: Steps of a chunk.
        drop_state: Probability that the carried state is dropped before a chunk of training.

    Example:
        >>> PtbChar().length, PtbChar().unit
        (150, 'bits_per_character')
    """

    length: int = 150
    unit = "bits_per_character"
    corpus_name = "ptb-char"


@register_task("text8")
@dataclass(frozen=True)
class Text8(Language):
    """Predict an old copy of the English Wikipedia, letter by letter.

    Description:
        The first 100 million characters of Wikipedia, cleaned to the small letters and the blank: 27 symbols, 90, 5 and
        5 million for training, validation and test::

            input      a n a r c h i
            target   a n a r c h i s

        `source="prefix"` takes the first 74,081,952 characters instead (64,081,952, 5 and 5 million). What is measured
        there must not be compared with published figures.

    Input:
        Tokens `(length, B)` below 27.

    Target:
        Tokens `(length, B)`: the next character.

    Metric:
        Bits per character (cross entropy / ln 2) and accuracy over all steps.

    Chance level:
        By character frequencies, and by a bigram model, both fitted on training and measured on validation: `chance`
        and `memory_free`.

    Reference:
        Mahoney 2011, "Large text compression benchmark".

    Args:
        length: Steps of a chunk.
        drop_state: Probability that the carried state is dropped before a chunk of training.
        source: "full", or "prefix" for the labelled beginning.

    Example:
        >>> Text8(source="prefix").length
        180
    """

    length: int = 180
    source: Literal["full", "prefix"] = "full"
    unit = "bits_per_character"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.one_of("source", self.source, ["full", "prefix"])

    @property
    def corpus(self) -> Corpus:
        """The text; read from its file at the first call."""
        if self.source == "prefix":
            return load_corpus("text8-prefix")
        try:
            return load_corpus("text8")
        except MissingDataError as error:
            hint = "source='prefix' takes the beginning alone, where results are not comparable"
            raise MissingDataError(f"{error}\n{hint}") from error

    def report(self, score: Score) -> dict[str, float]:
        """Words a score as texts are usually reported; on the prefix the unit says so."""
        if self.source == "prefix":
            return self._report_in(f"{self.unit}_of_prefix", score)
        return self._report_in(self.unit, score)


@register_task("wikitext2-char")
@dataclass(frozen=True)
class WikiText2Char(Language):
    """Predict WikiText-2, character by character.

    Description:
        Wikipedia articles of 283 different characters, rare words replaced by `<unk>`. 10,780,437 characters for
        training, 1,120,192 for validation, 1,255,018 for the test. As in Shen 2019, the
        carried state is dropped before one chunk in a hundred::

            input    = _ V a l k y r
            target   _ V a l k y r i

    Input:
        Tokens `(length, B)` below 283.

    Target:
        Tokens `(length, B)`: the next character.

    Metric:
        Bits per character (cross entropy / ln 2) and accuracy over all steps.

    Chance level:
        By character frequencies, and by a bigram model, both fitted on training and measured on validation: `chance`
        and `memory_free`.

    Reference:
        Merity et al. 2016, "Pointer sentinel mixture models"; Shen 2019, "Mutual information scaling and expressive
        power of sequence models".

    Args:
        length: Steps of a chunk.
        drop_state: Probability that the carried state is dropped before a chunk of training.

    Example:
        >>> WikiText2Char().drop_state
        0.01
    """

    length: int = 100
    drop_state: float = 0.01
    unit = "bits_per_character"
    corpus_name = "wikitext2-char"


@register_task("wikitext2-word")
@dataclass(frozen=True)
class WikiText2Word(Language):
    """Predict WikiText-2, word by word.

    Description:
        Wikipedia articles of 33,278 different words, `<eos>` after every line. 2,088,628 words for training, 217,646
        for validation, 245,569 for the test::

            input    the game began development
            target   game began development in

        With `words=10_000` only the words that are most frequent in training are kept, `<unk>` among them, and stands
        for all others: 7 % more of the text, and perplexities that must not be compared with published ones.

    Input:
        Tokens `(length, B)` below 33,278, or below `words`.

    Target:
        Tokens `(length, B)`: the next word.

    Metric:
        Perplexity (e to the cross entropy) and accuracy over all steps.

    Chance level:
        By word frequencies, and by a bigram model, both fitted on training and measured on validation: `chance` and
        `memory_free`.

    Reference:
        Merity et al. 2016, "Pointer sentinel mixture models".

    Args:
        length: Steps of a chunk.
        drop_state: Probability that the carried state is dropped before a chunk of training.
        words: How many different words are kept; None for all.

    Example:
        >>> WikiText2Word().length
        50
    """

    length: int = 50
    words: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.words is not None:
            _validate.dimension("words", self.words, 2)

    @property
    def corpus(self) -> Corpus:
        """The text; read from its files at the first call."""
        if self.words is None:
            return load_corpus("wikitext2-word")
        return _cut_wikitext2(self.words)


@register_task("ptb-word")
@dataclass(frozen=True)
class PtbWord(Language):
    """Predict the Penn Treebank, word by word.

    Description:
        Newspaper text of 10,000 different words in Mikolov's preparation, `<eos>` after every sentence. 929,589 words
        for training, 73,760 for validation, 82,430 for the test::

            input    the company said it
            target   company said it will

    Input:
        Tokens `(length, B)` below 10,000.

    Target:
        Tokens `(length, B)`: the next word.

    Metric:
        Perplexity (e to the cross entropy) and accuracy over all steps.

    Chance level:
        By word frequencies, and by a bigram model, both fitted on training and measured on validation: `chance` and
        `memory_free`.

    Reference:
        Marcus, Santorini & Marcinkiewicz 1993; Mikolov et al. 2010, "Recurrent neural network based language model".

    Args:
        length: Steps of a chunk.
        drop_state: Probability that the carried state is dropped before a chunk of training.

    Example:
        >>> PtbWord().length
        35
    """

    length: int = 35
    corpus_name = "ptb-word"


@functools.lru_cache(maxsize=2)
def _cut_wikitext2(words: int) -> Corpus:
    return frequent_words(load_corpus("wikitext2-word"), words)
