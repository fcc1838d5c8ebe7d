import dataclasses
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remanence.train import (
    OptimiserConfig,
    RunConfig,
    build_model,
    build_task,
    config_from,
    read_config,
    to_toml,
    with_settings,
)

plain = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=8)
plain = plain.filter(lambda value: value != "none")
options = st.dictionaries(
    st.text(min_size=1, max_size=6), plain | st.lists(plain.filter(lambda v: v is not None), max_size=3)
)


@given(options=options, seed=st.integers(0, 2**40), rate=st.floats(1e-300, 1e38), clip=st.none() | st.floats(1e-9, 1e9))
def test_every_configuration_reads_back_as_itself(options, seed, rate, clip):
    table = {"seed": seed, "optimiser": {"learning_rate": rate}, "loop": {"clip_norm": clip}}
    config = config_from({**table, "task": {"options": options}})
    again = config_from(tomllib.loads(to_toml(config)))
    assert again == config
    assert again.digest == config.digest


def test_the_file_names_every_key_of_every_section():
    text = to_toml(RunConfig())
    for section in dataclasses.fields(RunConfig):
        value = getattr(RunConfig(), section.name)
        names = (
            [field.name for field in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else [section.name]
        )
        assert all(f"{name} = " in text for name in names)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("optimizer.name=adam", "Did you mean 'optimiser'?"),
        ("optimiser.learning_rat=1", "Did you mean 'learning_rate'?"),
        ("optimiser.name=adan", "Did you mean 'adam'?"),
        ("loop.clipnorm=1", "Did you mean 'clip_norm'?"),
        ("budget=5", "`budget` must be a table"),
        ("seed", "must have the form key=value"),
        ("seed=many", "`seed` must be of type int"),
        ("task.batch_size=1.5", "`task.batch_size` must be of type int"),
        ("loop.threads=0", "`loop.threads` must be an int >= 1; got 0"),
        ("optimiser.betas=[0.9]", "`optimiser.betas` must be two numbers"),
        ("budget.epochs=3", "`budget.updates` must"),
        ("loop.clip_value=1", "`loop.clip_value` must be absent"),
    ],
)
def test_a_bad_setting_is_an_error_that_names_the_way_out(setting, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        with_settings(RunConfig(), [setting])
    assert words in str(caught.value)


def test_a_file_reads_back_as_itself(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(to_toml(RunConfig(seed=3)), encoding="utf-8")
    assert read_config(path) == RunConfig(seed=3)


def test_settings_add_options_and_leave_the_others():
    config = with_settings(RunConfig(), ["model.options.recent=5", "task.options.length=7", "budget.patience=none"])
    assert config.model.options == {"recent": 5}
    assert config.task.options == {"length": 7}
    assert config.budget.patience is None


@pytest.mark.parametrize(
    "options",
    [{"name": "adamw", "l2": 0.1}, {"name": "adam", "decoupled_decay": 0.1}, {"name": "adam", "momentum": 0.9}],
)
def test_decay_and_momentum_cannot_be_mixed_up(options):
    with pytest.raises(ValueError, match="must be 0 with"):
        OptimiserConfig(**options)


def test_another_configuration_has_another_digest():
    assert RunConfig().digest != RunConfig(seed=1).digest


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("imports=mine.py", "`imports` must be a list; got 'mine.py'. Write imports=[\"mine.py\"]"),
        ("imports=[3]", "`imports` must be of type str; got 3"),
        ("task.name=none", "`task`"),
        ("seed=none", "`seed` must be of type int; got 'none'"),
        ("task.batch_size=none", "`task.batch_size` must be of type int; got 'none'"),
    ],
)
def test_none_stands_for_no_value_only_where_there_may_be_none(setting, words):
    with pytest.raises(ValueError, match=r".") as caught:
        build_task(with_settings(RunConfig(), [setting]))
    assert words in str(caught.value)


@pytest.mark.parametrize("setting", ["task.options.length=none", "model.options.hidden_size=none"])
def test_an_option_that_cannot_be_none_refuses_it(setting):
    config = with_settings(RunConfig(), [setting])
    with pytest.raises((ValueError, TypeError), match=setting.partition("=")[0].replace(".", r"\.") + "|`length`"):
        build_model(config, build_task(config))


def test_an_option_that_may_be_none_takes_it():
    config = with_settings(RunConfig(), ["task.options.shortest=none", "model.options.recurrent_init=none"])
    assert build_model(config, build_task(config)).core.hidden_size == 128
