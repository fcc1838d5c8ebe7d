import itertools
import json
import math
import warnings

import numpy as np
import pytest
import torch

from remanence import probes
from remanence.probes import _many_symbols, _pair_counts
from remanence.probes._entropy import ESTIMATORS, entropy, information_from_counts
from remanence.tasks import BinaryPowerLaw, HiddenMarkov, Ising, Repetitive
from remanence.testing import assert_agrees, assert_estimates, assert_frequency, assert_sampled


def quiet(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return probes.mutual_information(*arguments, **options)


def drawn(task, count, seed=0):
    return task.draw(count, task.stream("train", seed=seed)).T


@pytest.mark.parametrize(
    "task",
    [
        BinaryPowerLaw(length=256),
        Repetitive(length=256, probability=0.8),
        Ising(length=256, coupling=-0.7),
        HiddenMarkov(length=256, transition=((0.8, 0.2), (0.3, 0.7)), emission=((0.7, 0.2, 0.1), (0.0, 0.3, 0.7))),
        HiddenMarkov(length=256, transition=((0.9, 0.1), (0.1, 0.9)), emission=((1.0, 0.0), (0.0, 1.0))),
    ],
    ids=lambda task: type(task).__name__,
)
def test_estimates_agree_with_closed_forms(task):
    lags = [1, 2, 3, 5]
    found = quiet(drawn(task, 1500), lags)
    exact = task.mutual_information(lags).numpy()
    assert_sampled(found.values, exact, np.maximum(found.error, found.floor))
    assert (found.error < exact + found.floor).all()


def test_intervals_cover_about_as_often_as_they_say():
    task, lags = Ising(length=64, coupling=-0.5), [1, 3]
    exact = task.mutual_information(lags).numpy()
    runs = [quiet(drawn(task, 200, seed), lags, draws=2) for seed in range(100)]
    covered = np.array([(run.low <= exact) & (exact <= run.high) for run in runs])
    assert_frequency(covered.sum(), covered.size, 0.95)


def chains(transition, count, length, seed=0):
    """Chains of states: uint8 ``(count, length)``."""
    generator = np.random.default_rng(seed)
    ends = transition.cumsum(axis=1)
    state = generator.integers(0, len(transition), count)
    states = np.empty((length, count), np.uint8)
    for step, drawn in enumerate(generator.random((length, count))):
        state = (drawn[:, None] > ends[state, :-1]).sum(axis=1)
        states[step] = state
    return states.T.copy()


def exact_information(transition, lag):
    """Between two states of a stationary chain."""
    stationary = np.linalg.matrix_power(transition, 10_000)[0]
    pairs = stationary[:, None] * np.linalg.matrix_power(transition, lag)
    return float((pairs * np.log(pairs / np.outer(stationary, stationary))).sum())


def test_intervals_cover_about_as_often_as_they_say_in_one_sequence_with_a_memory():
    """Stretches of one sequence stand for independent ones; six of them give a rough standard error."""
    lags = [2, 4, 8]
    transition = 0.5 * np.eye(3) + 0.5 * np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]])
    exact = np.array([exact_information(transition, lag) for lag in lags])
    runs = [quiet(chain, lags, draws=2, groups=6) for chain in chains(transition, 200, 5000)]
    covered = np.array([(run.low <= exact) & (exact <= run.high) for run in runs])
    assert_frequency(covered.sum(), covered.size, 0.95)


def test_the_bootstrap_of_before_is_told_to_be_gone():
    with pytest.warns(DeprecationWarning, match="use `intervals`"):
        assert np.isnan(probes.mutual_information(b"01" * 50, [1], resamples=0).low).all()


@pytest.mark.parametrize("alphabet", [2, 4, 27])
def test_noise_stays_near_its_floor(alphabet):
    noise = np.random.default_rng(1).integers(0, alphabet, (50, 400))
    with pytest.warns(UserWarning, match="not above the noise floor"):
        found = probes.mutual_information(noise, np.arange(1, 40))
    # Two standard deviations above the mean lie 5 % of chi-squared with one degree of freedom, less with more.
    assert_frequency(found.above.sum(), len(found.above), 0.05)
    assert_sampled(found.values, 0, found.floor)


def mean_bias(estimator, alphabet, pairs, trials):
    generator = np.random.default_rng(0)
    drawn = generator.multinomial(pairs, np.full(alphabet**2, alphabet**-2.0), size=trials)
    first, second = np.divmod(np.arange(alphabet**2), alphabet)
    return information_from_counts(drawn, first, second, estimator).mean()


def test_for_two_symbols_the_documents_estimator_is_as_biased_as_plug_in():
    biases = [mean_bias(estimator, 2, 500, 20_000) for estimator in ("plug-in", "grassberger")]
    for bias in biases:
        assert_estimates(bias, 1 / (2 * 500))
    assert_estimates(biases[1], biases[0])


def test_for_27_symbols_it_is_far_less_biased():
    plug_in, grassberger, corrected, better = (
        mean_bias(name, 27, 5000, 300) for name in ("plug-in", "grassberger", "miller-madow", "grassberger-g")
    )
    assert_estimates(plug_in, 26**2 / (2 * 5000))
    assert abs(grassberger) < plug_in / 100
    assert abs(corrected) < plug_in / 10
    assert abs(better) < plug_in / 10


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_entropy_of_many_fair_throws(estimator):
    assert_agrees(entropy(np.full(6, 10**6), estimator), math.log(6), torch.float32)  # what is left of the bias
    assert entropy(np.array([0, 7, 0]), "plug-in") == 0


def test_digamma_estimator_is_the_printed_formula():
    psi = lambda n: -np.euler_gamma + sum(1 / k for k in range(1, n))  # noqa: E731
    counts = [1, 2, 5]
    expected = math.log(8) - sum(n * psi(n) for n in counts) / 8
    assert_agrees(float(entropy(np.array(counts))), expected)


def g_of(n):
    """Grassberger's own recursion: G_1 = -gamma - ln 2, G_2 = 2 - gamma - ln 2, G_{n+2} = G_n + 2 / n for odd n."""
    return -np.euler_gamma - math.log(2) + sum(2 / k for k in range(1, n, 2))


def test_grassbergers_g_follows_his_recursion():
    for n in range(1, 9):
        assert_agrees(-float(entropy(np.array([n]), "grassberger-g")) + math.log(n), g_of(n))


def test_the_large_alphabet_path_counts_the_same():
    words = np.random.default_rng(0).integers(0, 30, 3000)
    lags = [1, 5]
    dense, spread = quiet(words, lags), quiet(words * 1000 - 7, lags)
    listed = quiet(probes.Symbols(words, np.array([0, 3000]), 30), lags)
    for other in (spread, listed):
        np.testing.assert_array_equal(other.pairs, dense.pairs)
        assert_agrees(other.values, dense.values)
        assert_agrees(other.error, dense.error)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("held", [1, 40, 1 << 22])
def test_sorting_finds_the_same_as_a_table(monkeypatch, estimator, held):
    monkeypatch.setattr(_many_symbols, "HELD", held)
    monkeypatch.setattr(_many_symbols, "_SMALL", 16)
    monkeypatch.setattr(_many_symbols, "_BLOCK", 700)
    monkeypatch.setattr(_pair_counts, "_BLOCK", 700)
    words = np.random.default_rng(0).geometric(0.1, (3, 1000)) % 40
    dense = quiet(words, [1, 5, 900], estimator=estimator)
    giant = quiet(probes.Symbols(words.ravel() * 200, np.arange(4) * 1000, 8000), [1, 5, 900], estimator=estimator)
    np.testing.assert_array_equal(giant.pairs, dense.pairs)
    assert giant.alphabet == dense.alphabet
    assert_agrees(giant.values, dense.values)
    assert_sampled(giant.bias[0], dense.bias[0], error=(dense.floor - dense.bias)[0])


def test_without_a_group_the_jackknife_is_what_the_other_groups_say():
    words, edges = np.random.default_rng(0).integers(0, 30, 300) * 100, np.array([0, 100, 200, 300])
    symbols = probes.Symbols(words, np.array([0, 300]), 3000)
    left = []
    for group in range(3):
        kept = np.delete(np.arange(299), np.arange(edges[group], min(edges[group + 1], 299)))
        pairs, counts = np.unique(np.stack([words[kept], words[kept + 1]]), axis=1, return_counts=True)
        left.append(float(information_from_counts(counts, *pairs)))
    assert_agrees(
        _many_symbols.sorted_pairs(_many_symbols.Places.of(symbols, edges), 1, "grassberger").error,
        math.sqrt(2 * np.var(left)),
    )


def test_both_ways_of_counting_have_about_the_same_error():
    chain = np.cumsum(np.random.default_rng(0).integers(-1, 2, (400, 100)), axis=1) % 12
    dense = quiet(chain, [1, 5])
    symbols = probes.Symbols(chain.ravel() * 100, np.arange(401) * 100, 1200)
    giant = quiet(symbols, [1, 5])
    assert (np.abs(np.log(giant.error / dense.error)) < math.log(1.5)).all()
    assert ((giant.low < giant.values) & (giant.values < giant.high)).all()
    assert np.isnan(
        quiet(probes.Symbols(chain.ravel() * 100, np.arange(401) * 100, 1200), [1], intervals=False).low
    ).all()


def test_fewer_pairs_have_a_greater_bias_of_their_own():
    noise = np.random.default_rng(0).integers(0, 600, (20, 100))
    found = quiet(noise, [1, 2, 50], draws=4)
    assert (np.abs(found.excess) < 0.01 * found.bias).all()  # sharing the first one's would miss a tenth
    assert found.bias[2] > 1.1 * found.bias[0]


@pytest.mark.parametrize("held", [3, 100])
def test_a_shuffle_in_ranges_keeps_the_marginals(monkeypatch, held):
    monkeypatch.setattr(_many_symbols, "HELD", held)
    first, second, seen = np.array([5, 1, 4]), np.array([2, 8]), []
    run = _many_symbols._runs
    monkeypatch.setattr(_many_symbols, "_runs", lambda keys: seen.append(keys) or run(keys))
    pairs = _many_symbols.SortedPairs(0.0, 0.0, 0, first, second)
    values = [_many_symbols.shuffled_value(pairs, "plug-in", np.random.default_rng(seed)) for seed in range(20)]
    assert min(values) >= 0
    assert len(set(values)) > 1
    if held == 100:
        assert all(np.bincount(keys // 2).tolist() == [5, 1, 4] for keys in seen)
        assert all(np.bincount(keys % 2).tolist() == [2, 8] for keys in seen)


@pytest.mark.parametrize("alphabet", [30, 6000])
def test_the_large_alphabet_path_never_joins_sequences(alphabet):
    values, starts = np.random.default_rng(0).integers(0, 30, 3000), np.array([0, 7, 7, 1000, 2999, 3000])
    dense = quiet(probes.Symbols(values.astype(np.uint8), starts, 30), [1, 5, 900], groups=3)
    listed = quiet(probes.Symbols(values, starts, alphabet), [1, 5, 900], groups=3)
    np.testing.assert_array_equal(listed.pairs, dense.pairs)
    assert_agrees(listed.values, dense.values)


def test_33_thousand_words_need_no_table():
    ranks = np.arange(1, 33_001)
    words = np.random.default_rng(0).choice(33_000, 50_000, p=1 / ranks / (1 / ranks).sum())
    found = quiet(words, [1, 100], draws=2)
    assert any("alphabet is too large for the sample" in remark for remark in found.warnings)
    assert found.alphabet > 5000
    assert_estimates(found.values, found.bias)


def test_sequences_are_pooled_and_never_joined():
    apart = quiet([b"01" * 30, b"10" * 30], [1])
    assert apart.pairs[0] == 2 * 59
    assert apart.sequences == 2


def test_marginals_are_those_of_the_lag():
    found = quiet(np.array([0] * 50 + [1] * 50), [50], estimator="plug-in", intervals=False)
    assert found.values[0] == 0  # first members are all 0, second members all 1
    assert np.isnan(found.low).all()


@pytest.mark.parametrize(
    "same", ["abcabd" * 20, b"abcabd" * 20, list(b"abcabd" * 20), torch.tensor(list(b"abcabd" * 20)), ["abcabd" * 20]]
)
def test_the_same_symbols_from_any_source(same):
    assert_agrees(quiet(same, [1, 2]).values, quiet(b"abcabd" * 20, [1, 2]).values)


def test_words_and_other_scripts():
    text = "ja nein ja ja nein вот " * 20
    words = quiet(text, [1], unit="words")
    assert words.alphabet == 3
    assert quiet("вот" * 20, [1]).alphabet == 3


def test_result_is_plain_and_repeatable():
    data = np.random.default_rng(0).integers(0, 3, 500)
    first, second = (quiet(np.repeat(data, 3), [1, 2]) for _ in range(2))
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())
    assert "mutual information above the noise up to lag 2" in first.verdict


def test_plot_shows_curve_and_floor():
    pytest.importorskip("plotly")
    figure = quiet(b"0011" * 100, [2, 4, 6, 8]).plot()
    assert {trace.name for trace in figure.data} >= {"estimate", "noise floor", "2.5 %", "97.5 %"}


@pytest.mark.parametrize(
    ("sequence", "lags", "words"),
    [
        (b"", [1], "`sequence` must hold at least two symbols"),
        ("", [1], "`sequence` must hold at least two symbols"),
        (np.zeros(0), [1], "`sequence` must hold at least two symbols"),
        ([], [1], "`sequence` must hold at least two symbols"),
        (b"a", [1], "`sequence` must hold at least two symbols; got 1"),
        (b"abc", [3], "below the length of the longest sequence, 3; got 3"),
        (b"abc", [0], "`lags` must be a list of whole numbers >= 1"),
        (b"abc", [-2], "`lags` must be a list of whole numbers >= 1"),
        (b"abc", [], "`lags` must be a list of whole numbers >= 1"),
        (b"abc", [1.5], "`lags` must be a list of whole numbers >= 1"),
        (np.array([0.5, 1.5]), [1], "`sequence` must hold whole numbers; got float64. Turn measurements into classes"),
        (np.array([0.0, np.nan]), [1], "`sequence` must hold whole numbers; got NaN"),
        (torch.tensor([0.0, float("nan")]), [1], "`sequence` must hold whole numbers; got NaN"),
        (np.array([1.0, np.inf]), [1], "`sequence` must hold whole numbers; got float64"),
        (np.array([1j, 2]), [1], "`sequence` must hold whole numbers; got complex128"),
        ([[1, 2, 3], [0.5]], [1], "`sequence` must hold whole numbers; got float64"),
        (np.arange(2000), [2000], "below the length of the longest sequence, 2000; got 2000"),
        (["abc", "abcd"], [4], "below the length of the longest sequence, 4; got 4"),
        ([b"a", b"b"], [1], "`sequence` must hold at least two symbols; got 1"),
        (np.zeros((2, 2, 2), int), [1], r"`sequence` must have shape \(L,\) or \(S, L\)"),
    ],
)
def test_bad_input_is_named(sequence, lags, words):
    with pytest.raises(ValueError, match=words):
        probes.mutual_information(sequence, lags)


def test_options_and_types_are_checked():
    with pytest.raises(TypeError, match="`sequence` must be bytes, text, integers"):
        probes.mutual_information(3, [1])
    with pytest.raises(TypeError, match="`intervals` must be a bool"):
        probes.mutual_information(b"abcabc", [1], intervals=1)
    for option in ({"estimator": "naive"}, {"unit": "lines"}, {"groups": 1}, {"draws": 1}):
        with pytest.raises(ValueError, match=f"`{next(iter(option))}` must"):
            probes.mutual_information(b"abcabc", [1], **option)


def test_a_lag_that_only_one_sequence_is_long_enough_for():
    found = quiet(["abcab", "ab"], [4])
    assert found.pairs.tolist() == [1]
    assert quiet(np.arange(700), [699], estimator="plug-in").values[0] == 0  # one pair, of a large alphabet


def test_one_symbol_tells_nothing():
    found = quiet(b"aaaa" * 10, [1, 2])
    assert not found.above.any()
    np.testing.assert_array_almost_equal(quiet(b"aaaa" * 10, [1, 2], estimator="plug-in").values, [0, 0])
    assert "no mutual information above the noise floor" in found.verdict


def test_default_lags_reach_a_tenth():
    assert quiet(b"ab" * 500).lags.max() == 100
    lags = probes.logarithmic_lags(10_000, 60)
    assert lags[0] == 1
    assert lags[-1] == 10_000
    assert all(a < b for a, b in itertools.pairwise(lags))


def test_excess_takes_the_bias_of_small_samples_away():
    noise = np.random.default_rng(0).integers(0, 200, 3000)
    found = quiet(noise, [1, 2, 3], estimator="plug-in")
    assert (found.bias > 1).all()
    assert_estimates(found.values, found.bias)
    assert_agrees(found.excess, found.values - found.bias)
    assert (found.bias < found.floor).all()
