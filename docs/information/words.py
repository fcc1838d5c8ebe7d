"""The words of the pages; numbers are put in by ``make.py``."""

BINARY = """# Models that learnt a power law

{said}
Every model learnt to predict bits whose mutual information falls as 0.1 lag^-0.4 (figures 1, 3a, 7 and 9 of
Shen 2019; models with a memory are new). Then bits were sampled from it, and their mutual information was measured at
every lag from 1 to 200. *Best law* is Akaike's choice among exponential, power law and constant; *xi* and *gamma* are
fitted even if their law is not the best, to estimates above 0.001 nats as in the paper. For several runs the mean and
the range are given. The paper's xi are longer because its sequences, and so the lags that are fitted, are twice as
long: its data have 420, ours 167.

{table}

Six models of about 4,700 parameters (the first run of each):

![Information against lag for six models of equal size](binary.svg)

RNN and LSTM of several widths and depths, on a linear axis of lags, where an exponential is a straight line:

![Information against lag for RNN and LSTM](binary_widths.svg)

Transformers; one of them has a context of 32 steps:

![Information against lag for Transformers](binary_transformers.svg)

## Findings

- **RNN**: exponential in every run, and width helps little: xi goes from {xi[RNN 8]:.0f} at 114 parameters to
  {xi[RNN 66]:.0f} at 4,754. A second layer gains as much as four times the width, a third and fourth little more.
  The paper says the same.
- **LSTM**: at width 4, with 138 parameters, xi is longer than that of an RNN of width 32, as the paper says, and as
  long as that of width 66. Up to width 8 the best law is an exponential; at width 32, and in some runs of more layers,
  a power law fits better up to lag 200, but see below.
- **Transformer**: a power law in every run at width 16; at width 4 in two runs of three, while the third falls
  exponentially. One with a context of 32 steps follows the power law up to lag 32 and falls exponentially from there
  on.
- **Memories**: `MemLSTM`, which keeps all states, and `RelLSTM`, which keeps 20, follow the data's law over the whole
  range, about as closely as the Transformer of the same size after the same number of updates. `SABLSTM` is like
  the LSTM of its size. It reads a mean of its ten states here; with the sum, as published, its state overflowed
  within twenty updates for two of the three memory sizes tried.
- The validation losses lie within 0.005 nats of each other. Loss alone does not show which model carries the law.

{far}"""

FAR = """## Longer than in training

{said}
Lags up to 256 occur in training. Sequences of 2,048 show whether a model has learnt the law or only its beginning.

![Information against lag in sequences of 2,048](binary_far.svg)

| model | best law | xi | gamma | I(50) | I(100) | I(200) | I(300) | I(500) | I(900) |
|---|---|---|---|---|---|---|---|---|---|
{rows}

- In long sequences both RNN and LSTM fall exponentially, even the LSTM that seemed to follow a power law, as Shen 2019
  says.
- `RelLSTM` does not fall exponentially, but it no longer follows the law either: between lags 20 and 300 it holds
  less information than the data, and beyond that it falls too slowly. The steps in its relevant set explain this:
  eight of the ten are the first eight of the sequence, whatever its length. A state enters that set if it receives much
  attention in its first ten steps, and the first states have few competitors. Over long distances the model only
  carries how the sequence began.
- `SABLSTM` lies between them. Its ten states are those with the highest scores, which do not depend on the present
  state: one with a high score stays until ten better ones have appeared.

## Can a recurrent model with bounded memory carry power-law information?

Within the training length, yes. With 20 stored states and 4,552 parameters, samples of `RelLSTM` follow the data's law
up to lag 200. There they have {left[RelLSTM 26]:.0%} of the data's information; those of `MemLSTM`, which keeps all
states, have {left[MemLSTM 26]:.0%}, of a Transformer {left[Transformer 16]:.0%}, of an LSTM {left[LSTM 32]:.0%} and of
an RNN {left[RNN 66]:.0%}. In longer sequences, no. Its information outlasts any exponential, because a few states from
the beginning are never dropped, but it is not scale-free: a bounded memory must choose what it keeps, and this
screening rule keeps the beginning.
"""

ESTIMATOR = """# How well the estimator finds a law

{said}
Figure 5 of Shen 2019, at its size: 10,000 sequences of 1,000 bits for each exponent, all lags up to 500. The law is
fitted to estimates above 0.0002 nats.

![Estimates for four exponents](estimator.svg)

![Fitted against true exponents](estimator_fits.svg)

| true gamma | fitted | difference |
|---|---|---|
{rows}

The greatest difference is {worst:.4f}, and for every exponent Akaike's criterion chooses the power law. Estimates at
different lags come from the same sequences and are not independent, so the intervals of the fits, about 0.001, are too
narrow.
"""

HELD_OUT = """# Are held-out sets like training sets?

{said}
Shen 2019 finds far more information in validation and test sets than in training sets (figure 6), and no power law.
Estimates depend on the size of a sample, and these sets are ten times smaller. Here each is compared with stretches
of the training set of the same size, at {lags} lags from 1 to 1000. *Outside* counts the lags at which it is above or
below all stretches; *by chance* is the count expected for one more stretch of the same kind. The last four columns are
the estimates divided by the mean over the stretches.

| part | stretches | symbols each | outside | by chance | lag 1 | lag 10 | lag 100 | lag 1000 |
|---|---|---|---|---|---|---|---|---|
{rows}

![WikiText-2: validation set and stretches of the training set](held_out.svg)

- WikiText-2's validation and test sets are indeed unlike its training set, but not as the paper says: within words
  and short phrases they hold more information, over a hundred characters and more they hold **less**.
- Penn Treebank's validation set is like any stretch of its training set; its test set differs at short lags.
- text8, cut by position, is uniform, as the paper says.
- `probes.uniformity(training, validation)` makes this comparison for any data, and `remanence mi RUN` for the data of a
  run.
"""

WIKITEXT = """# WikiText-2, character by character

{said}
Figures 2a, 3b, 8 and 10 of Shen 2019 at a small scale, with `RelLSTM` added. Both parts of the text were cut into as
many pieces as were drawn from the models, so that all estimates have the same bias. The table gives estimates minus
this bias. *bits* is the validation cross-entropy in bits per character, in chunks that start from an empty state.
*xi* is the correlation length of an exponential at lags 1 to 10. The last columns are `probes.text_quality`: share of
words that occur in the training text, titles closed by as many `=` as they began with, and how much more similar two
stretches of 50 words are than a random pair, if they are neighbours (*topic*) and eight stretches apart (*far*; sampled
pieces are too short for that).

| source | parameters | bits | I(1) | I(10) | I(20) | I(100) | I(1000) | xi | words | titles | topic | far |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
{rows}

![Information against lag, bias subtracted](wikitext2.svg)

- The text itself shows the three ranges of the paper, with a power law from about lag 50 on.
- All three models learn the letters within a word: all of the text's information at lags 1 to 5, and two thirds or
  more at lag 10. The paper finds the same of small character-level models.
- **The memory helps.** With as many parameters as the LSTM, the cross-entropy of `RelLSTM` is 0.13 bits per character
  lower. It spells more words right and closes twice as many titles. At lags 15 to 30, the beginning of the paper's
  middle range, its samples have a third of the information of the training text, those of the LSTM a seventh. Beyond
  lag 60 little is left above the noise in any of the three: none of them has the power law of the long range.
- The Transformer's cross-entropy is a little lower still. It has three quarters of the information at lags 15 to 30,
  half at lags 30 to 60: the middle range, which the paper too finds in Transformers and not in character-level LSTMs.
  `RelLSTM` reads 20 states where the Transformer reads up to 256. Its cross-entropy is closer to that of the
  Transformer than to that of the LSTM, but its samples have less information.
- A model whose state is never reset in training does not learn how a text begins. When the state of a `RelLSTM` was
  carried from the first chunk to the last, each sampled row kept its own kind of text from beginning to end. This adds
  0.017 nats at every lag from 20 on, which are not memory. Here the state of LSTM and `RelLSTM` is dropped before one
  chunk in ten, at random (`drop_state`), and the effect is gone.

Samples from an empty state:

{samples}"""

WIKITEXT_WORDS = """# WikiText-2, word by word

{said}
Figures 2b, 3c, 8 and 10 of Shen 2019 at a small scale, with `RelLSTM` added. Words were sampled from each model and
written out. The information is measured between characters, as in the paper, and between words. Both parts of the
text were cut into as many pieces of as many words, so that all estimates have about the same bias, which the table
subtracts. *perplexity* is that of the validation set with the same words, in chunks that start from an empty state.
Other columns are as on the page about [characters](wikitext2.md).

| source | parameters | perplexity | I(1) | I(10) | I(20) | I(100) | I(1000) | xi | words | titles | topic | far |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
{rows}

![Information between characters against lag, bias subtracted](wikitext2_words.svg)

Between words, with the bias subtracted; it is large for such a vocabulary:

![Information between words against lag in words](wikitext2_words_words.svg)

- Between words the text's information falls as slowly as a power law from lag 1 to lag 160. There is no short range,
  because that range is spelling.
- Word models need not learn spelling. All three have more than nine tenths of the text's information at lags 1 to 5,
  and at lags 15 to 30 half of it, where the LSTM of [characters](wikitext2.md) has a seventh and `RelLSTM` a third:
  the middle range, as the paper says. Beyond lag 50 little is left, and no power law. The paper finds more, with
  larger models and more training.
- The Transformer's cross-entropy is the highest; its text has the most of the next word's information and closes
  the fewest titles.
- `RelLSTM` has a higher cross-entropy than the LSTM here, and the same curve. Most of what helped it with characters
  lies within a few words, and two LSTM layers hold that by themselves. As with
  [characters](wikitext2.md), the state is dropped before one chunk in ten.

Samples:

{samples}"""

LANGUAGE_MODEL = """# A pretrained language model

{said}
Figure 3d of Shen 2019, with another model. Texts start from the model's own start token, and tokens are sampled from
its full distribution. WikiText-2 is cut into as many pieces, each as long as one of the texts, so that both estimates
have about the same bias, which the table subtracts. *gamma* is the exponent of a power law at lags 50 to 1000, *best*
the law that Akaike's criterion prefers there.

| source | texts | characters | I(1) | I(10) | I(20) | I(100) | I(1000) | gamma | best |
|---|---|---|---|---|---|---|---|---|---|
{rows}

![Information against lag](language_model.svg)

- From lag 10 on the model's texts have several times the information of WikiText-2. The paper reports the same for
  GPT-2 and attributes it to the quality of its data.
- Beyond lag 50, texts with shuffled characters have nearly all of it too. Code, prose and lists use different
  characters, so two places of one text share its kind at any distance. This does not fall with the lag and is not
  memory. A curve of pooled texts, such as the paper's, includes it; WikiText-2 is of one kind and has little of it.

The beginning of the first text:

```text
{sample}
```
"""
