"""Random symbol sequences: the information they carry is what the formula says."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remanence.tasks import BinaryPowerLaw, HiddenMarkov, Ising, Repetitive, pair_correlation, pair_information

DOUBLE = torch.float64


def entropy(*chances):
    return -sum(chance * math.log(chance) for chance in chances if chance > 0)


def doubles(*values):
    return torch.tensor(values, dtype=DOUBLE)


@given(st.floats(-1, 1))
@settings(deadline=None)
def test_pair_information_is_the_definition(correlation):
    equal = (1 + correlation) / 2
    expected = math.log(2) - entropy(equal, 1 - equal)
    torch.testing.assert_close(pair_information(doubles(correlation)), doubles(expected))


@given(st.floats(1e-12, math.log(2), exclude_max=True))
@settings(deadline=None)
def test_pair_correlation_inverts_it(information):
    torch.testing.assert_close(pair_information(pair_correlation(doubles(information))), doubles(information))


def test_strong_correlation_keeps_its_digits():
    missing = 2.0**-30
    # ln 2 - H(missing / 2), with the entropy in digits of its own.
    expected = math.log(2) + (1 - missing / 2) * math.log1p(-missing / 2) + missing / 2 * math.log(missing / 2)
    found = pair_information(doubles(1 - missing))
    torch.testing.assert_close(found, doubles(expected), atol=0.0, rtol=torch.finfo(DOUBLE).eps * 4)


def test_small_information_keeps_its_digits():
    tiny = doubles(1e-20, 1e-30)
    torch.testing.assert_close(pair_correlation(tiny), (2 * tiny).sqrt(), atol=0.0, rtol=torch.finfo(DOUBLE).eps * 4)
    assert pair_correlation(doubles(0.0)) == 0


def estimated_correlation(task, lag, rows, seed=0):
    """Mean product of spins at a distance, and a bound on its error: rows are independent, places are not."""
    spins = 2.0 * task.draw(rows, task.stream("test", seed)).double() - 1
    means = (spins[:-lag] * spins[lag:]).mean(0)
    return means.mean().item(), 5 * (means.std() / math.sqrt(rows)).item()


@pytest.mark.parametrize(
    "task",
    [
        BinaryPowerLaw(length=128),
        BinaryPowerLaw(length=128, method="circulant"),
        BinaryPowerLaw(length=128, amplitude=0.2, exponent=1.0),
        Repetitive(length=101, probability=0.8),
        Repetitive(length=100, probability=0.1),
        Ising(length=64, coupling=-0.7),
        Ising(length=64, coupling=0.4),
        Ising(length=10, coupling=-0.3, decay=1.5),
    ],
    ids=str,
)
def test_drawn_bits_have_the_stated_correlation_and_are_balanced(task):
    for lag in (1, 2, 3, 7):
        found, margin = estimated_correlation(task, lag, rows=4000)
        assert abs(found - task.correlation(torch.tensor([lag])).item()) < margin, lag
    shares = task.draw(4000, task.stream("test", 1)).double().mean(0)
    assert abs(shares.mean() - 0.5) < 5 * shares.std() / math.sqrt(4000)


def test_power_law_is_exact_at_every_distance():
    lags = torch.arange(1, 600)
    law = BinaryPowerLaw(amplitude=0.1, exponent=0.4)
    torch.testing.assert_close(law.mutual_information(lags), 0.1 * lags.double() ** -0.4)
    # The value found by hand for the reference's constants.
    assert f"{law.covariance(torch.tensor([1])).item():.3f}" == "0.637"


def test_power_law_covariance_obeys_equation_46():
    law = BinaryPowerLaw(amplitude=0.15, exponent=0.7)
    lags = torch.arange(1, 50)
    angle = law.covariance(lags).acos()
    pi = math.pi
    printed = (pi * math.log(2 / pi) + (pi - angle) * (pi - angle).log() + angle * angle.log()) / pi
    torch.testing.assert_close(printed, law.mutual_information(lags))


def test_the_methods_agree_on_the_law_they_draw_from():
    from remanence.tasks._power_law import _amplitudes, _factor

    law = BinaryPowerLaw(length=100)
    amplitudes = _amplitudes(law)
    covariance = torch.fft.fft(amplitudes.square()).real[:100]
    torch.testing.assert_close(covariance, law.covariance(torch.arange(100)))
    factor = _factor(law)
    torch.testing.assert_close((factor @ factor.T)[0], law.covariance(torch.arange(100)))


def test_circulant_rows_are_independent():
    law = BinaryPowerLaw(length=4096, method="circulant")
    spins = 2.0 * law.draw(400, law.stream("test", 0)).double() - 1
    products = (spins[:, :200] * spins[:, 200:]).mean(0)
    assert abs(products.mean()) < 5 * products.std() / math.sqrt(200)


def test_long_sequences_come_by_the_circulant_method():
    law = BinaryPowerLaw(length=200_000)
    bits = law.draw(1, law.stream("train", 0))
    assert bits.shape == (200_000, 1)
    assert set(bits.unique().tolist()) == {0, 1}


@pytest.mark.parametrize(("method", "complaint"), [("cholesky", "no Gaussian"), ("circulant", "circulant method")])
def test_impossible_covariances_are_explained(method, complaint):
    law = BinaryPowerLaw(length=64, amplitude=0.69, exponent=8.0, method=method)
    with pytest.raises(ValueError, match=f"{complaint}.*least eigenvalue.*Lower `amplitude`"):
        law.draw(1, law.stream("train", 0))


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.9, 1.0])
def test_repetitive_information_is_equation_52(probability):
    p = probability
    bias = (1 - 2 * p) ** 2
    printed = math.log(2) if bias == 1 else 4 * p * (p - 1) * math.atanh(bias) + math.log(2 + 4 * p * (p - 1))
    found = Repetitive(probability=p).mutual_information([2, 3, 4, 5, 999])
    torch.testing.assert_close(found, doubles(*[printed] * 5))


def test_repetitive_without_bias_remembers_the_pair_alone():
    found = Repetitive(probability=0.5).mutual_information([1, 2, 3])
    torch.testing.assert_close(found, doubles(math.log(2) - entropy(0.25, 0.75), 0.0, 0.0))


def test_repetitive_is_made_of_opposite_pairs():
    bits = Repetitive(length=21).draw(200, Repetitive().stream())
    even = (bits[0:20:2] != bits[1:21:2]).all(0)
    odd = (bits[1:20:2] != bits[2:21:2]).all(0)
    assert (even | odd).all()
    assert not even.all()
    assert not odd.all()


PAIRS_AS_CHAIN = {
    # States: first and second place of 01, first and second place of 10.
    "transition": [[0, 1, 0, 0], [0.8, 0, 0.2, 0], [0, 0, 0, 1], [0.8, 0, 0.2, 0]],
    "emission": [[1, 0], [0, 1], [0, 1], [1, 0]],
}


def test_repetitive_is_a_periodic_hidden_chain():
    lags = [1, 2, 3, 50]
    chain, pairs = HiddenMarkov(**PAIRS_AS_CHAIN), Repetitive(probability=0.8)
    torch.testing.assert_close(chain.mutual_information(lags), pairs.mutual_information(lags))
    torch.testing.assert_close(doubles(*chain.memory_free), doubles(*pairs.memory_free))


def test_neighbour_ising_is_a_hidden_chain_without_noise():
    stay = 1 / (1 + math.exp(2 * -0.7))
    rows = [[stay, 1 - stay], [1 - stay, stay]]
    chain, ising = HiddenMarkov(transition=rows, emission=[[1, 0], [0, 1]]), Ising(coupling=-0.7)
    torch.testing.assert_close(chain.mutual_information([1, 5, 9]), ising.mutual_information([1, 5, 9]))


@pytest.mark.parametrize(("coupling", "decay"), [(-0.4, 1.2), (0.3, 0.0), (-0.8, 60.0)])
def test_ising_enumeration_is_the_boltzmann_law(coupling, decay):
    task = Ising(length=5, coupling=coupling, decay=decay)
    weights, product = 0.0, 0.0
    for spins in itertools.product([-1, 1], repeat=5):
        pairs = itertools.combinations(range(5), 2)
        weight = math.exp(-sum(coupling * (j - i) ** -decay * spins[i] * spins[j] for i, j in pairs))
        weights += weight
        product += weight * sum(spins[i] * spins[i + 2] for i in range(3)) / 3
    torch.testing.assert_close(task.correlation(torch.tensor([2])), doubles(product / weights))


def test_ising_with_a_steep_decay_couples_neighbours_alone():
    steep, neighbours = Ising(length=12, coupling=-0.8, decay=60.0), Ising(length=12, coupling=-0.8)
    torch.testing.assert_close(steep.mutual_information([1, 2, 3]), neighbours.mutual_information([1, 2, 3]))
    torch.testing.assert_close(doubles(*steep.memory_free), doubles(*neighbours.memory_free))


def test_ising_monte_carlo_agrees_with_enumeration():
    listed = Ising(length=16, coupling=-0.25, decay=1.5)
    chain = listed._draw_monte_carlo(3000, listed.stream("test", 0))
    spins = 2.0 * chain.double() - 1
    for lag in (1, 4, 10):
        means = (spins[:-lag] * spins[lag:]).mean(0)
        stated = listed.correlation(torch.tensor([lag])).item()
        assert abs(means.mean() - stated) < 5 * means.std() / math.sqrt(3000)


def test_ising_says_where_it_has_no_closed_form():
    task = Ising(length=17, decay=1.5)
    with pytest.raises(ValueError, match="no closed form"):
        task.mutual_information([1])
    with pytest.raises(ValueError, match="below `length` = 6"):
        Ising(length=6, decay=1.5).mutual_information([6])


def test_hidden_chain_is_drawn_from_its_joint_law():
    task = HiddenMarkov(
        length=30,
        transition=((0.5, 0.3, 0.2), (0.1, 0.8, 0.1), (0.3, 0.0, 0.7)),
        emission=((0.7, 0.2, 0.1, 0.0), (0.0, 0.5, 0.0, 0.5), (0.25, 0.25, 0.25, 0.25)),
    )
    rows = 20_000
    symbols = task.draw(rows, task.stream("test", 0))
    assert task.input_size == task.output_size == 4
    for lag, first in ((1, 0), (3, 20)):
        pairs = symbols[first] * 4 + symbols[first + lag]
        found = pairs.bincount(minlength=16) / rows
        stated = task.joint(lag).flatten()
        assert ((found - stated).abs() <= 5 * (stated * (1 - stated) / rows).sqrt()).all()


def test_hidden_chain_falls_at_twice_the_log_of_its_second_eigenvalue():
    task = HiddenMarkov(transition=((0.9, 0.1), (0.2, 0.8)), emission=((0.9, 0.1), (0.3, 0.7)))
    far = task.mutual_information([20, 21])
    # Beyond the leading term the fall differs by another factor of the eigenvalue to the twentieth.
    slope = (far[1] / far[0]).log().item()
    assert abs(slope - 2 * math.log(0.7)) < 0.7**20


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"transition": ((0.5, 0.4), (0.5, 0.5))}, "transition"),
        ({"transition": ((1.0, 0.0), (0.0, 1.0))}, "irreducible"),
        ({"transition": ((1.0,),)}, "emission"),
        ({"emission": ((1.0, 0.0), (1.0,))}, "emission"),
        ({"emission": ((1.2, -0.2), (0.5, 0.5))}, "emission"),
        ({"transition": ()}, "transition"),
    ],
)
def test_bad_chains_are_refused(options, argument):
    with pytest.raises(ValueError, match=argument):
        HiddenMarkov(**options)


@pytest.mark.parametrize("lags", [[], [0], [1.5], [[1]]])
def test_bad_lags_are_refused(lags):
    with pytest.raises(ValueError, match="lags"):
        Repetitive().mutual_information(lags)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: BinaryPowerLaw(amplitude=0.7), "amplitude"),
        (lambda: BinaryPowerLaw(exponent=0.0), "exponent"),
        (lambda: BinaryPowerLaw(method="fft"), "method"),  # pyright: ignore[reportArgumentType]
        (lambda: BinaryPowerLaw(length=1), "length"),
        (lambda: BinaryPowerLaw(train_sequences=0), "train_sequences"),
        (lambda: Repetitive(probability=1.5), "probability"),
        (lambda: Ising(coupling=math.nan), "coupling"),
        (lambda: Ising(decay=-1.0), "decay"),
        (lambda: Ising(sweeps=0), "sweeps"),
    ],
)
def test_bad_options_are_named(make, argument):
    with pytest.raises(ValueError, match=argument):
        make()


BINARY = [BinaryPowerLaw(length=65), Repetitive(length=65), Ising(length=65, coupling=-0.9), Ising(length=9, decay=1.5)]


@pytest.mark.parametrize("task", [*BINARY, HiddenMarkov(length=65), HiddenMarkov(length=65, **PAIRS_AS_CHAIN)], ids=str)
def test_memory_free_baseline_is_reached_by_its_predictor(task):
    batch = task.batch(0, 4000, split="test")
    if isinstance(task, HiddenMarkov):
        joint = task.joint(1)
        logits = (joint / joint.sum(1, keepdim=True)).log()[batch.inputs]
    else:
        logits = place_wise_logits(task, batch)
    losses = task.step_loss(logits.flatten(0, 1), batch.targets.flatten()).view(batch.targets.shape).mean(0)
    assert abs(losses.mean() - task.memory_free.loss) < 5 * losses.std() / math.sqrt(4000)
    right = (logits.argmax(-1) == batch.targets).double().mean(0)
    assert abs(right.mean() - task.memory_free.accuracy) < 5 * right.std() / math.sqrt(4000)


def place_wise_logits(task, batch):
    """Best foretelling of a bit from the one before; in an open chain it depends on the place."""
    from remanence.tasks._ising import _enumerate

    if isinstance(task, Ising) and task.enumerable:
        stay = (1 + _enumerate(task).correlations.diagonal(1)) / 2
    else:
        stay = ((1 + task.correlation(torch.tensor([1]))) / 2).expand(batch.steps)
    one = torch.where(batch.inputs == 1, stay.unsqueeze(1), 1 - stay.unsqueeze(1))
    return torch.stack([1 - one, one], dim=-1).log()


def test_a_fixed_training_set_is_gone_through_once_an_epoch():
    task = BinaryPowerLaw(length=40, train_sequences=10)
    assert task.batches_per_epoch(5) == 2
    epochs = [torch.cat([task.batch(2 * epoch + half, 5).inputs for half in (0, 1)], 1) for epoch in (0, 1)]
    rows = [sorted(map(tuple, epoch.T.tolist())) for epoch in epochs]
    assert rows[0] == rows[1]
    assert not torch.equal(*epochs)
    assert task.batches_per_epoch(5, "validation") is None
    assert not torch.equal(task.batch(0, 5, seed=1).inputs, task.batch(0, 5).inputs)
    with pytest.raises(ValueError, match="train_sequences"):
        task.batch(0, 11)
