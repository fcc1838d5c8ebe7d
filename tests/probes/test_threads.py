"""Two threads probe two models at once, and each gets what it would get alone."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import remanence.nn
from remanence import ops, probes
from remanence.probes._observe import uncompiled

X = torch.randn(12, 3, 4)

MODELS = {
    "LSTM": lambda: nn.LSTM(4, 4),
    "RelLSTM": lambda: remanence.nn.RelLSTM(4, 4, recent=2, relevant=2),
    "Transformer": lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0),
}

PROBES = {
    "gradient_reach": lambda model: probes.gradient_reach(model, X).to_dict(),
    "attention_map": lambda model: probes.attention_map(model, X).to_dict(),
    "stability": lambda model: probes.stability(model, X).to_dict(),
    "truncation_gap": lambda model: probes.truncation_gap(model, X, [2, 6]).to_dict(),
    "cost": lambda model: without_the_clock(probes.cost(model, [4, 8], X, repeats=1)),
}


def without_the_clock(cost):
    return [cost.peak_bytes, cost.state_bytes, cost.operations]


@pytest.mark.parametrize("probe", sorted(PROBES))
def test_each_thread_finds_what_it_finds_alone(probe):
    models = [make() for make in MODELS.values() for _ in range(2)]
    alone = [json.dumps(PROBES[probe](model)) for model in models]
    before = torch.get_rng_state()
    with ThreadPoolExecutor(len(models)) as pool:
        for _ in range(3):
            assert list(pool.map(lambda model: json.dumps(PROBES[probe](model)), models)) == alone
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_scan_is_seen_in_its_own_thread_alone():
    layer, seen, inside, ran = remanence.nn.LSTM(4, 4), [], threading.Event(), threading.Event()

    def look(scan, x, *args, **options):
        seen.append(len(x))
        return scan(x, *args, **options)

    def watch():
        with ops.around_scans(look):
            inside.set()
            assert ran.wait(10)
            layer(X[:5])

    thread = threading.Thread(target=watch)
    thread.start()
    assert inside.wait(10)
    layer(X)
    ran.set()
    thread.join()
    assert seen == [5]


def test_of_several_wrappers_the_latest_runs_first_and_none_is_left():
    order = []

    def named(name):
        def look(scan, *args, **options):
            order.append(name)
            return scan(*args, **options)

        return look

    layer = remanence.nn.LSTM(4, 4)
    with ops.around_scans(named("outer")), ops.around_scans(named("inner")):
        layer(X)
    layer(X)
    assert order == ["inner", "outer"]


def test_what_stands_around_a_scan_that_throws_is_gone():
    def refuse(scan, *args, **options):
        raise RuntimeError("no")

    layer = remanence.nn.LSTM(4, 4)
    with pytest.raises(RuntimeError, match="no"), ops.around_scans(refuse):
        layer(X)
    layer(X)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, when it imports its compiler
def test_the_compiler_is_left_as_it_was_whoever_leaves_last():
    import torch._dynamo.eval_frame as dynamo

    before = dynamo._stance
    first, second = (uncompiled() for _ in range(2))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert dynamo._stance.stance == "force_eager"
    second.__exit__(None, None, None)
    assert dynamo._stance == before
