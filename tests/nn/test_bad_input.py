"""Bad input gets an error that names the argument, what was expected and what came."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from remanence import nn


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"input_size": 0}, ValueError, "input_size"),
        ({"hidden_size": 0}, ValueError, "hidden_size"),
        ({"hidden_size": 2.0}, TypeError, "hidden_size"),
        ({"num_layers": 0}, ValueError, "num_layers"),
        ({"dropout": 1.5}, ValueError, "dropout"),
        ({"bias": 1}, ValueError, "bias"),
        ({"batch_first": 1}, TypeError, "batch_first"),
        ({"recent": -1}, ValueError, "recent"),
        ({"recent": 0}, ValueError, "relevant"),
        ({"relevant": -1}, ValueError, "relevant"),
        ({"recent": 2**31 - 1, "relevant": 2}, ValueError, "relevant` must be at most 0 with recent=2147483647"),
        ({"screen": "norm"}, ValueError, "screen"),
        ({"score": "aditive"}, ValueError, "additive"),
        ({"combine": "mean"}, ValueError, "combine"),
        ({"combine": "concat", "recent": 0, "relevant": 0}, ValueError, "combine"),
        ({"output": "summary"}, ValueError, "output"),
        ({"max_steps": 5}, ValueError, "max_steps"),
        ({"recurrent_init": "orthogonal"}, ValueError, "recurrent_init"),
        ({"forget_bias": "much"}, TypeError, "forget_bias"),
        ({"forget_bias": 1.0, "bias": False}, ValueError, "forget_bias"),
        ({"cuts": 5}, TypeError, "cuts"),
        ({"backend": "cuda"}, ValueError, "backend"),
        ({"proj_size": 3}, ValueError, "proj_size"),
        ({"nonlinearity": "tanh"}, TypeError, "nonlinearity"),
        ({"recemt": 3}, TypeError, "recemt"),
    ],
    ids=str,
)
def test_constructor(options: dict[str, Any], error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        nn.RelLSTM(**({"input_size": 3, "hidden_size": 4} | options))


ABSURD = [2**31, 2**40, 2**63, 10**30, -1, True, 1.5, float("nan"), float("inf"), "3"]


@pytest.mark.parametrize("value", ABSURD, ids=str)
@pytest.mark.parametrize("name", ["input_size", "hidden_size", "num_layers", "recent", "relevant"])
def test_absurd_sizes_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must be an int"):
        nn.RelLSTM(**({"input_size": 3, "hidden_size": 4} | {name: value}))


CORES: dict[str, tuple[Any, dict[str, int]]] = {
    "MinGRU": (nn.MinGRU, {"input_size": 3, "hidden_size": 4}),
    "DeltaRule": (nn.DeltaRule, {"input_size": 3, "hidden_size": 4, "key_size": 2}),
    "CausalConvolution": (nn.CausalConvolution, {"input_size": 3, "channels": 4, "depth": 1, "kernel_size": 2}),
    "Transformer": (nn.Transformer, {"width": 4, "depth": 1, "heads": 2, "feedforward": 3, "context": 5}),
    "SequenceModel": (partial(nn.SequenceModel, core="LSTM"), {"input_size": 3, "output_size": 2, "hidden_size": 4}),
}


@pytest.mark.parametrize("value", [2**40, 10**30])
@pytest.mark.parametrize(("core", "name"), [(core, name) for core, (_, sizes) in CORES.items() for name in sizes])
def test_other_cores_refuse_absurd_sizes_by_name(core: str, name: str, value: int) -> None:
    make, sizes = CORES[core]
    make(**sizes)
    with pytest.raises(ValueError, match=f"`{name}` must be an int"):
        make(**(sizes | {name: value}))


def test_sizes_that_do_not_fit_into_memory_are_named() -> None:
    with pytest.raises(ValueError, match=r"fits into memory; got input_size=3, hidden_size=2147483647, num_layers=1"):
        nn.LSTM(3, 2**31 - 1)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: nn.RNN(3, 4, nonlinearity="sigmoid"), "nonlinearity"),
        (lambda: nn.MemLSTM(3, 4, limit=0), "limit"),
        (lambda: nn.SABLSTM(3, 4, top_k=0), "top_k"),
        (lambda: nn.SABLSTM(3, 4, every=0), "every"),
        (lambda: nn.SABLSTM(3, 4, truncate=5, cuts=nn.TruncatedBPTT(5)), "truncate"),
        (lambda: nn.SABLSTM(3, 4, combine="half"), "combine"),
        (lambda: nn.SABLSTM(3, 4, output="weights"), "max_steps"),
        (lambda: nn.HDetachLSTM(3, 4, p=-0.1), "p"),
        (lambda: nn.TruncatedBPTT(0), "k"),
        (lambda: nn.GORU(3, 6), "hidden_size"),
        (lambda: nn.GORU(3, 6, rotations="tunable", capacity=3), "capacity"),
        (lambda: nn.OrthRNN(3, 4, recurrent_init="identity"), "recurrent_init"),
        (lambda: nn.ExpRNN(3, 4, base_every=0), "base_every"),
        (lambda: nn.ExpRNN(3, 4, memory=nn.Screened(2, 2), combine="concat"), "combine"),
        (lambda: nn.RelRNN(3, 4, combine="concat", recurrent_init="henaff"), "recurrent_init"),
        (lambda: nn.LSTM.from_torch(torch.nn.LSTM(3, 4, proj_size=2)), "proj_size"),
    ],
)
def test_presets(make: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()


@pytest.mark.parametrize("make", [lambda: nn.LSTM(3, 4, memory="full"), lambda: nn.LSTM.from_torch(torch.nn.GRU(3, 4))])
def test_wrong_types(make: Any) -> None:
    with pytest.raises(TypeError, match=r"memory|module"):
        make()


@pytest.mark.parametrize(
    ("input", "error", "said"),
    [
        (torch.randn(5), ValueError, r"\(T, B, input_size\)"),
        (torch.randn(5, 2, 3, 1), ValueError, r"\(T, B, input_size\)"),
        (torch.randn(5, 2, 4), ValueError, "3 features"),
        (torch.randn(5, 2, 3, dtype=torch.float64), ValueError, "dtype"),
        (torch.zeros(5, 2, 3, dtype=torch.int64), ValueError, "dtype"),
        (torch.empty(5, 2, 3, device="meta"), ValueError, "device"),
        (torch.empty(0, 2, 3), ValueError, "at least one step"),
        (torch.empty(5, 0, 3), ValueError, "at least one"),
        ([[1.0, 2.0, 3.0]], TypeError, "tensor"),
    ],
    ids=lambda value: str(getattr(value, "shape", ""))[:30],
)
def test_input(input: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        nn.RelLSTM(3, 4)(input)


@pytest.mark.parametrize(
    ("reset", "error", "said"),
    [
        (torch.zeros(5, 3, dtype=torch.bool), ValueError, r"\(5, 2\)"),
        (torch.zeros(5, dtype=torch.bool), ValueError, r"\(5, 2\)"),
        (torch.zeros(5, 2), ValueError, "bool"),
        (True, TypeError, "bool tensor"),
    ],
)
def test_reset(reset: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=f"reset.*{said}"):
        nn.RelLSTM(3, 4)(torch.randn(5, 2, 3), reset=reset)


def test_state_of_another_layer_or_batch() -> None:
    layer, x = nn.RelLSTM(3, 4), torch.randn(5, 2, 3)
    for other in (nn.RelLSTM(3, 5), nn.RelLSTM(3, 4, recent=3), nn.RelRNN(3, 4), nn.LSTM(3, 4), nn.RelLSTM(3, 4, 2)):
        with pytest.raises(ValueError, match=r"state\.\w+` must have shape .* another"):
            layer(x, other.initial_state(2))
    with pytest.raises(ValueError, match="another batch size"):
        layer(x, layer.initial_state(3))
    with pytest.raises(ValueError, match="dtype"):
        layer(x, layer.initial_state(2).to(torch.float64))
    with pytest.raises(ValueError, match=r"state\.s"):
        layer(x[:, 0], layer.initial_state(2))


STATEFUL = {
    "MinGRU": lambda: nn.MinGRU(4, 4),
    "DeltaRule": lambda: nn.DeltaRule(4, 4),
    "CausalConvolution": lambda: nn.CausalConvolution(4, 4, depth=2),
    "Transformer": lambda: nn.Transformer(4, depth=2, heads=2),
    "Transformer with a context": lambda: nn.Transformer(4, depth=2, heads=2, context=3),
    "separable Transformer": lambda: nn.Transformer(4, depth=2, heads=2, kind="separable"),
    "TruncatedRNN": lambda: nn.TruncatedRNN(nn.GRU(4, 4), window=3),
    "carried TruncatedRNN": lambda: nn.TruncatedRNN(nn.RelGRU(4, 4), window=3, start="carried"),
}


@pytest.mark.parametrize("make", STATEFUL.values(), ids=STATEFUL)
def test_every_field_of_every_kind_of_state_is_checked_by_name(make: Any) -> None:
    core, x = make(), torch.randn(5, 2, 4)
    _, good = core(x)
    good = type(good)(*(field.detach() for field in good))
    for name, value in good._asdict().items():
        wrong: list[Any] = [torch.cat([value, value]), torch.cat([value, value], dim=1), value.flatten(), value.bool()]
        wrong += [value.to("meta"), value.to_sparse(), value.tolist(), None, value.unsqueeze(-1)]
        if value.dim() > 3 and value.shape[-1]:
            wrong += [value[..., :0], value[..., :-1]]
        if name == "step":
            wrong += [torch.full_like(value, count) for count in (-1, 2**62 + 1, 2**63 - 1)]
        for field in wrong:
            broken = good._replace(**{name: field})
            with pytest.raises((ValueError, TypeError), match=rf"`state\.{name}` must"):
                core(x, broken)
            with torch.no_grad(), pytest.raises((ValueError, TypeError), match=rf"`state\.{name}` must"):
                core.step(x[0], broken)


def test_the_fields_of_a_cache_have_one_number_of_slots() -> None:
    core, x = nn.Transformer(4, depth=2, heads=2), torch.randn(5, 2, 4)
    _, state = core(x)
    for name in ("value", "position"):
        with pytest.raises(ValueError, match=rf"`state\.{name}` must have shape \(2, 2, 5"):
            core(x, state._replace(**{name: getattr(state, name)[:, :, :-1]}))


def test_torch_hx_of_the_wrong_kind() -> None:
    h = torch.zeros(1, 2, 4)
    with pytest.raises(TypeError, match=r"\(h_0, c_0\)"):
        nn.RelLSTM(3, 4)(torch.randn(5, 2, 3), h)
    with pytest.raises(TypeError, match="h_0"):
        nn.RelRNN(3, 4)(torch.randn(5, 2, 3), (h, h))
    with pytest.raises(ValueError, match=r"state\.s"):
        nn.RelRNN(3, 4)(torch.randn(5, 2, 3), torch.zeros(1, 2, 5))


def test_step_of_a_bidirectional_layer_and_of_a_sequence() -> None:
    with pytest.raises(ValueError, match="bidirectional"):
        nn.LSTM(3, 4, bidirectional=True).step(torch.randn(2, 3))
    with pytest.raises(ValueError, match="input_t"):
        nn.LSTM(3, 4).step(torch.randn(5, 2, 3))


def test_the_fused_path_is_refused_with_a_reason_where_it_cannot_run() -> None:
    layer = nn.RelLSTM(3, 4, combine="concat", backend="fused")
    with pytest.raises((RuntimeError, ValueError), match="fused"):
        layer(torch.randn(5, 2, 3))


def test_nan_in_the_input_is_not_hidden() -> None:
    """A NaN spreads through its own row from its step on, and nowhere else."""
    layer, x = nn.RelLSTM(3, 4), torch.randn(9, 2, 3)
    x[4, 0] = torch.nan
    output, _ = layer(x)
    assert output[4:, 0].isnan().all()
    assert output[:4].isfinite().all()
    assert output[:, 1].isfinite().all()


@pytest.mark.parametrize("layer", [nn.MemRNN, nn.RelLSTM, nn.SABGRU])
def test_a_layer_with_a_memory_of_its_own_takes_no_other(layer: Any) -> None:
    with pytest.raises(TypeError, match=rf"{layer.__name__}\(\) .* 'memory'\. It makes its own; .* LSTM"):
        layer(3, 4, memory=nn.Screened(2, 2))
