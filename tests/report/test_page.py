"""What the page says, and what it does with files that are not as they should be."""

import json
import os
import re
import shutil
import statistics

import pytest

from remanence.experiments import KEPT_CURVE, Record
from remanence.figures import Axis, Curve, Figure, Look
from remanence.probes import NotMeasured
from remanence.report import (
    Code,
    Column,
    Details,
    Entry,
    Facts,
    Figures,
    Finding,
    Heading,
    Page,
    ProbeFinding,
    Problem,
    Section,
    Switches,
    Table,
    Text,
    probes_section,
    write_report,
)
from remanence.runs import tag, write_result

pytest.importorskip("plotly")

HOSTILE = [
    "</script><script>window.hurt = 1</script>",
    '"><img src=x onerror="window.hurt = 1">',
    "<!-- <b>%{x} ${y} &amp; {{z}}",
    "نموذج ذو ذاكرة " + "长" * 300,
]


def text_of(path):
    """The visible part: everything before the scripts, with spaces as one types them."""
    return path.read_text(encoding="utf-8").partition("<script")[0].replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture
def write(tmp_path):
    return lambda *paths, **options: write_report(paths, tmp_path / "page.html", **{"measure": False, **options})


def test_the_same_files_give_the_same_bytes(write, make_comparison, claims_file, curves_file):
    paths = (make_comparison(), claims_file, curves_file)
    assert write(*paths).read_bytes() == write(*paths).read_bytes()


def test_the_first_screen_says_what_came_out(write, make_comparison):
    page = text_of(write(make_comparison()))
    assert "<h1><bdi>RelRNN solves Denoise at T = 100; LSTM does not</bdi></h1>" in page
    assert (
        "RelRNN solves Denoise at T = 100: 100 % over 2 seeds; 99 % first reached after 1,000 updates (median)." in page
    )
    assert "Without more training its best run keeps 99.5 % at T = 5,000 (20 sequences each)." in page
    assert "LSTM does not solve Denoise at T = 100 within 1,000 updates: 20.5 % (20.0 % to 21.0 %) over 2 seeds" in page
    assert "a guess gets 12.5 %" in page
    assert "It carries 512 B from step to step." in page


@pytest.mark.parametrize(
    ("accuracies", "words"),
    [
        ((1.0, 0.98), "RelRNN solves Denoise at T = 100 in 1 of 2 runs"),
        ((0.9899, 0.98), "RelRNN does not solve Denoise at T = 100 within 1,000 updates"),
        ((0.9999,), "&gt; 99.9 % in one run"),
    ],
)
def test_words_are_no_stronger_than_the_numbers(write, make_run, accuracies, words):
    for seed, best in enumerate(accuracies):
        runs = make_run(f"r{seed}", model="RelRNN", seed=seed, best=best).parent
    assert words in text_of(write(runs))


def test_printed_numbers_stand_beside_what_was_measured(write, make_comparison):
    page = text_of(write(make_comparison()))
    rows = re.findall(r"<tr>(.*?Kerg et al. 2020, Table 2.*?)</tr>", page)
    lstm = next(row for row in rows if "LSTM" in row)
    assert "82 %" in lstm
    assert "−61.5" in lstm


def test_cells_hold_the_numbers_of_the_files(write, make_comparison):
    page = text_of(write(make_comparison()))
    assert f'data-value="{statistics.fmean((0.2, 0.21))!r}"' in page
    assert 'data-value="12345.0"' in page


@pytest.mark.parametrize("status", ["failed", "interrupted", "running", "new"])
def test_runs_that_did_not_end_are_shown_as_what_they_are(write, make_run, status):
    make_run("good", model="RelRNN", best=1.0)
    runs = make_run("bad", model="RelRNN", seed=1, best=0.3, status=status, reason="loss is not finite").parent
    page = text_of(write(runs))
    shown = "killed" if status == "running" else status  # nobody holds its lock
    assert f"1 run {shown}" in page
    assert f"2 seeds, 1 {shown}" in page
    if status in ("failed", "interrupted"):
        assert f"{status}: loss is not finite" in page


def test_a_run_that_has_only_settings(write, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").write_text('[task]\nname = "copy"\n[model]\nname = "GRU"\n', encoding="utf-8")
    assert "GRU has not been evaluated (1 run new)." in text_of(write(tmp_path / "run"))


def test_mixed_versions_are_said(write, make_run):
    make_run("old", manifest={"torch": "2.12.0"})
    page = text_of(write(make_run("new", seed=1).parent))
    assert "not all made with the same versions. torch: 2.12.0, 2.13.0" in page


def test_models_of_one_name_are_told_apart_by_their_settings(write, make_run):
    make_run("five", model="RelRNN", options={"recent": 5})
    page = text_of(write(make_run("ten", model="RelRNN", options={"recent": 10}).parent))
    assert "RelRNN (recent 5)" in page
    assert "RelRNN (recent 10)" in page


@pytest.mark.parametrize(
    ("name", "contents", "said"),
    [
        ("config.toml", "seed = = 1", "config.toml</code> <bdi>cannot be read"),
        ("status.json", "{", "status.json</code> <bdi>cannot be read"),
        ("manifest.json", "[1]", "a JSON object was expected"),
        ("probes.json", "\ud800", "probes.json"),
        ("metrics.jsonl", "{}\nnonsense\n" * 9, "line 1, 2, 3, 4, 5, … cannot be read and is left out"),
    ],
)
def test_a_damaged_file_is_named_and_the_rest_is_shown(write, make_comparison, name, contents, said):
    runs = make_comparison()
    (runs / "lstm-0" / name).write_bytes(contents.encode("utf-8", "surrogatepass"))
    page = text_of(write(runs))
    assert said in page
    assert "RelRNN solves Denoise" in page


def test_a_torn_last_line_is_no_problem(write, make_comparison):
    runs = make_comparison()
    with (runs / "lstm-0" / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "val')
    assert "could not be read" not in text_of(write(runs))


def test_values_of_wrong_kinds_are_shown_or_left_out(write, make_comparison):
    runs = make_comparison()
    table = json.loads((runs / "rel-0" / "probes.json").read_text())
    table |= {"parameters": "many", "gradient_reach": [1], "errors": None, "chance": float("nan")}
    (runs / "rel-0" / "probes.json").write_text(json.dumps(table), encoding="utf-8")
    with (runs / "rel-0" / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "validation", "update": 1001, "loss": null, "accuracy": "x", "best": false}\n')
    write(runs)


def test_whole_numbers_beyond_every_float_are_left_out(write, make_run):
    run = make_run("lstm-0")
    before = text_of(write(run))
    huge = "9" * 400
    with (run / "metrics.jsonl").open("a") as file:
        file.write(f'{{"kind": "validation", "update": 1, "loss": {huge}, "accuracy": 0.1}}\n')
        file.write(f'{{"kind": "validation", "update": {huge}, "loss": 1.0, "best": true}}\n')
    page = text_of(write(run))
    assert "What could not be read" in page
    assert "What could not be read" not in before
    assert huge not in page


def test_numbers_that_are_not_finite_are_words(write, make_run, claims_file):
    runs = make_run("bad").parent
    line = {"kind": "validation", "update": 1100, "loss": None, "accuracy": 0.1, "best": True}
    with (runs / "bad" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    page = text_of(write(runs, claims_file))
    assert "not finite" in page
    assert "gap ∞" in page


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(write, make_run, name):
    page = write(make_run("x", model=name, task=name, reason=name, status="failed", manifest={"torch": name}).parent)
    whole = page.read_text(encoding="utf-8")
    assert "<script>window.hurt" not in whole
    assert "<img" not in whole.partition("<script")[0]
    assert whole.count("<script") == 3


def test_a_verdict_that_is_not_known_is_named(write, make_comparison, claims_file):
    claims = json.loads(claims_file.read_text())
    claims[0]["version"] = 9
    claims_file.write_text(json.dumps(claims), encoding="utf-8")
    page = text_of(write(make_comparison(), claims_file))
    assert "its verdict cannot be read: the verdict is of version 9, and this package reads up to 1" in page
    assert "statement of miller2018" in page


def test_every_kind_of_result_has_its_section(write, make_comparison, claims_file, curves_file, tmp_path):
    reach = {"distance": [0, 1], "log_norm": [0.0, -1.0], "source": "states", "horizon": 1, "decay": None}
    probes = {"gradient_reach": {**tag("gradient_reach"), **reach, "verdict": "vanishing"}}
    (tmp_path / "probe.json").write_text(json.dumps(probes), encoding="utf-8")
    record = Record("mine/a", "", "a long one", "run it", "", (), "mine", {}, {"a": {"b": 1}})
    write_result(tmp_path / "record.json", record)
    make_comparison()
    page = text_of(write(tmp_path))
    for section in ("comparison-1", "information", "probes", "record-1", "claims"):
        assert f'<section id="{section}">' in page
    assert "could not be read" not in page


def test_files_that_are_nothing_known_are_named(write, make_comparison, tmp_path):
    (tmp_path / "other.json").write_text("[1, 2]", encoding="utf-8")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    page = text_of(write(make_comparison(), tmp_path / "other.json", tmp_path / "broken.json"))
    assert "contains no known results" in page
    assert "2 parts could not be read" in page


def test_nothing_to_show_is_an_error(write, tmp_path):
    with pytest.raises(ValueError, match="must hold results"):
        write(tmp_path)
    with pytest.raises(ValueError, match="existing file or folder"):
        write(tmp_path / "nowhere")


def test_links_lead_to_the_runs(write, make_comparison, tmp_path):
    page = text_of(write(make_comparison()))
    links = re.findall(r'href="(runs/[^"]*)"', page)
    assert "runs/rel-0" in links
    assert all((tmp_path / link).is_dir() for link in links)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere every name is text")
def test_a_folder_whose_name_is_no_text_is_shown(write, make_run, tmp_path):
    page = text_of(write(make_run("lstm-0").rename(tmp_path / "runs" / "b\udc80x")))
    assert "b\\udc80x" in page
    assert 'href="runs/b%80x"' in page


def test_a_folder_can_be_moved(write, make_comparison, tmp_path):
    shutil.move(make_comparison(), tmp_path / "elsewhere")
    assert "keeps 99.5 % at T = 5,000" in text_of(write(tmp_path / "elsewhere"))


def test_times_that_disagree_with_the_operations_get_no_law(write, make_run):
    run = make_run("noisy")
    table = json.loads((run / "probes.json").read_text())
    table["cost"]["growth"]["seconds"]["order"] = "quadratic"
    (run / "probes.json").write_text(json.dumps(table), encoding="utf-8")
    page = text_of(write(run))
    assert "LSTM, T = 100: too noisy to say" in page
    assert "LSTM, T = 100: linear" in page  # of the memory


def test_what_was_not_learnt_is_not_said_to_be_lost(write, make_comparison):
    page = text_of(write(make_comparison()))
    assert "its best run falls" not in page


def test_very_long_names_are_cut_in_sentences_and_whole_in_tables(write, make_run):
    name = "W" * 300
    page = text_of(write(make_run("long", model=name)))
    assert f"<h1><bdi>{'W' * 59}… does not solve" in page
    assert f"<bdi>{name}</bdi>" in page


def test_variants_that_fare_alike_have_one_name_in_the_headline(write, make_run):
    runs = [make_run("small", best=0.2, options={"hidden_size": 4}), make_run("large", best=0.3)]
    runs += [make_run("other", model="RelRNN", best=1.0)]
    page = text_of(write(*runs))
    assert "<h1><bdi>RelRNN solves Denoise at T = 100; LSTM does not</bdi></h1>" in page
    assert "LSTM (hidden size 4)" in page


def test_stored_information_curves_are_drawn(write, tmp_path):
    curve = {**tag(KEPT_CURVE), "lags": [1, 2], "values": [0.5, 0.25], "floor": [0.1, 0.1], "bias": [0.0, 0.0]}
    curve |= {name: [None, None] for name in ("low", "high", "error")}
    curve |= {"best": "power", "fits": {"power": {"gamma": 1.0, "amplitude": 0.5}}}
    results = {"models": [{"label": "RNN 8", "curve": curve}], "data": {"training set": {"curve": curve}}}
    record = Record("mine/bits", "", "bits", "run it", "", (), "mine", {}, results)
    page = text_of(write(write_result(tmp_path / "binary.json", record)))
    assert 'data-model="RNN 8"' in page
    assert 'data-model="training set"' in page
    assert "power law, gamma = 1" in page


def test_a_task_without_an_end_is_not_said_to_be_solved(write, make_run):
    for seed in (0, 1):
        run = make_run(f"text-{seed}", task="ptb-char", seed=seed, best=0.4, aims=False)
        line = {"kind": "validation", "update": 1001, "loss": 1.0, "accuracy": 0.4, "best": True}
        with (run / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({**line, "bits_per_character": 1.5 + seed / 10}) + "\n")
    page = text_of(write(run.parent))
    assert "LSTM on Ptb-char at T = 100 reaches 1.55 (1.5 to 1.6) bits per character over 2 seeds" in page
    assert "solve" not in page
    assert "not reached" not in page


@pytest.mark.parametrize(("unit", "words"), [("rmse", "an RMSE of 1.25"), ("perplexity", "a perplexity of 1.25")])
def test_a_measure_that_is_no_unit_is_named_before_its_number(write, make_run, unit, words):
    run = make_run("series", task="ptb-char", best=0.4, aims=False)
    line = {"kind": "validation", "update": 1001, "loss": 1.0, "accuracy": 0.4, "best": True, unit: 1.25}
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    assert f"reaches {words} in one run" in text_of(write(run))


def test_a_run_that_was_never_evaluated_counts_as_not_solved(write, make_run):
    make_run("good", model="RelRNN", best=1.0)
    bare = make_run("bare", model="RelRNN", seed=1, status="new")
    (bare / "metrics.jsonl").unlink()
    page = text_of(write(bare.parent))
    assert "RelRNN solves Denoise at T = 100 in 1 of 2 runs" in page
    assert "<h1><bdi>RelRNN solves Denoise at T = 100 in some runs</bdi></h1>" in page


def test_models_that_fare_alike_share_a_sentence(write, make_run):
    for model, best in (("GRU", 0.3), ("LSTM", 0.2), ("RNN", 0.1)):
        runs = make_run(model, model=model, best=best).parent
    page = text_of(write(runs))
    together = "GRU (30.0 %), LSTM (20.0 %) and RNN (10.0 %) do not solve Denoise at T = 100 within 1,000 updates"
    assert f"{together}, in one run each; a guess gets 12.5 %." in page
    assert "LSTM does not solve" not in page


def test_what_is_alike_for_all_models_is_noted_once(write, make_run):
    for model in ("GRU", "LSTM", "RNN"):
        runs = make_run(model, model=model, probes=False).parent
    page = text_of(write(runs))
    assert page.count("weights have not been measured") == 1
    assert "All 3 models: weights have not been measured." in page


def test_a_link_in_place_of_the_page_is_replaced_and_not_followed(make_comparison, tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    (tmp_path / "page.html").symlink_to(precious)
    write_report([make_comparison()], tmp_path / "page.html", measure=False)
    assert precious.read_text() == "mine"
    assert not (tmp_path / "page.html").is_symlink()


def write_policy(folder, model="GRU", frames=2048):
    """The folder of a policy's run, with three updates."""
    folder.mkdir(parents=True)
    settings = f'environment = "Maze-v0"\nseed = 1\nframes = {frames}\n[model]\nname = {json.dumps(model)}\n'
    (folder / "policy.toml").write_text(settings, encoding="utf-8")
    lines = [
        {"kind": "train", "update": n, "frames": 1024 * n, "mean_return": n / 4, "frames_per_second": 900.0}
        for n in (1, 2)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (folder / "status.json").write_text(json.dumps({"status": "done", "update": 2}), encoding="utf-8")
    return folder


def test_runs_of_policies_have_a_section_with_their_learning_curve(write, tmp_path):
    write_policy(tmp_path / "runs" / "policy")
    path = write(tmp_path / "runs")
    page = text_of(path)
    assert '<section id="policies-1">' in page
    assert "GRU, seed 1: mean return 0.5 after 2,048 frames." in page
    assert "Mean return" in page
    assert '"y":[0.25,0.5]' in path.read_text(encoding="utf-8")
    assert "could not be read" not in page


def test_seeds_of_a_policy_share_a_sentence(write, tmp_path):
    for seed in (1, 2):
        folder = write_policy(tmp_path / "runs" / f"policy{seed}")
        settings = folder / "policy.toml"
        settings.write_text(
            settings.read_text(encoding="utf-8").replace("seed = 1", f"seed = {seed}"), encoding="utf-8"
        )
    page = text_of(write(tmp_path / "runs"))
    assert "GRU, 2 seeds: mean return 0.5 (0.5 to 0.5) after 2,048 frames." in page
    assert "GRU, seed 1:" not in page


def test_the_film_of_a_policy_stands_in_the_page(write, tmp_path):
    folder = write_policy(tmp_path / "policy")
    (folder / "film.gif").write_bytes(b"GIF89a of a maze")
    page = write(folder).read_text(encoding="utf-8")
    assert '<img src="data:image/gif;base64,R0lGODlhIG9mIGEgbWF6ZQ==" alt="GRU, seed 1">' in page


def test_a_film_that_is_far_too_large_is_not_read(write, tmp_path):
    folder = write_policy(tmp_path / "policy")
    with (folder / "film.gif").open("wb") as film:
        film.write(b"GIF89a")
        film.truncate(2**40)
    assert "is not a GIF of at most 20 MB" in text_of(write(folder))


def test_what_is_no_film_is_a_problem(write, tmp_path):
    folder = write_policy(tmp_path / "policy")
    (folder / "film.gif").write_bytes(b"<script>")
    page = write(folder)
    assert "is not a GIF of at most 20 MB" in text_of(page)
    assert "data:image/gif" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_policies_are_text(write, tmp_path, name):
    whole = write(write_policy(tmp_path / "policy", model=name)).read_text(encoding="utf-8")
    assert "<script>window.hurt" not in whole
    assert whole.count("<script") == 3


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_of_blocks_shows_every_text_as_text(text):
    figure = Figure(text, text, (Curve(text, [1], [1.0], group=text),), Axis(text), Axis(text))
    blocks = [
        Text(text),
        Text(text, "note"),
        Heading(text),
        Code(text),
        Facts([(text, text)]),
        Details(text, [Code(text), Facts([(text, text)])]),
        Table((Column(text, text),), [[Entry(text, text, link=text, colour="#000", note=text)]], text),
        Table((Column(text),), [[Entry(text)]], text, filters=[{"kind": text}]),
        Switches({text: Look()}),
        Figures([figure]),
    ]
    page = Page([Section("all", text, blocks, text, [Finding(text)])], [Problem(text, text)]).render()
    assert page.count("<script") == 3
    assert "<img" not in page.partition("<script")[0]
    assert "<script>window.hurt" not in page


def test_a_percentage_in_a_verdict_stays_on_one_line():
    found = NotMeasured("stability", "falls to 3 % of 5")
    section = probes_section([ProbeFinding("mine", "stability", found)])
    assert "3\N{NO-BREAK SPACE}% of 5" in section.findings[0].text


def test_results_that_do_not_fit_together_are_named(write, make_comparison, tmp_path):
    gap = {**tag("truncation_gap"), "ks": [], "output": [], "loss": [], "full_loss": 1.0, "gradient": []}
    (tmp_path / "probe.json").write_text(json.dumps({"truncation_gap": gap}), encoding="utf-8")
    page = text_of(write(make_comparison(), tmp_path / "probe.json"))
    assert "its truncation_gap cannot be read: its numbers do not fit together" in page
    assert "RelRNN solves Denoise" in page
