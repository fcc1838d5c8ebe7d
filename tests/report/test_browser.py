"""The page in a real browser: opened from disk, without a network."""

import json
import shutil
from pathlib import Path

import pytest

from remanence.report import write_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser(require_or_skip):
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        require_or_skip("browser", f"none of {', '.join(BROWSERS)} is installed")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        require_or_skip("browser", "playwright is not installed (pip install 'remanence[e2e]')")
    pytest.importorskip("plotly")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


class Shown:
    """A page that was opened and drawn, and what the browser complained of."""

    def __init__(self, browser, path: Path) -> None:
        self.complaints: list[str] = []
        context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light", offline=True)
        self.page = context.new_page()
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._note_request)
        self.page.goto(path.as_uri())
        self.page.wait_for_function("document.documentElement.dataset.drawn", timeout=60_000)

    def _note_request(self, request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.complaints.append(request.url)


@pytest.fixture(scope="module")
def shown(browser, everything):
    """The page about results of every kind, opened once for all tests."""
    return Shown(browser, write_report([everything], everything / "page.html", measure=False))


@pytest.fixture
def page(shown):
    yield shown.page
    assert shown.complaints == []


def drawn_marks(page):
    """For every picture its title, and how many paths, bars and images are drawn inside its axes."""
    return page.evaluate(
        """() => [...document.querySelectorAll("figure")].map((figure) => [figure.querySelector("h4").textContent,
             figure.querySelectorAll(".plot .js-line, .plot .point, .plot .points path, .plot .hm image").length])"""
    )


def test_every_picture_is_really_drawn(page):
    found = drawn_marks(page)
    assert len(found) > 15
    assert [title for title, marks in found if marks == 0] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_sticks_out_at_any_width(page, width, theme):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # The page hears of the new colours a moment later.
    page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
    wider = """() => [...document.querySelectorAll("figure, h1, h2, p, li, dl, .legend, .filters")]
        .filter((part) => part.getBoundingClientRect().right > innerWidth + 1)
        .map((part) => part.outerHTML.slice(0, 80))"""
    assert page.evaluate(wider) == []
    if width < 900:  # rows of tables are cards there; elsewhere they scroll
        clipped = """() => [...document.querySelectorAll("td bdi, tbody th bdi")]
            .filter((part) => part.getBoundingClientRect().right > innerWidth + 1).length"""
        assert page.evaluate(clipped) == 0


def test_hostile_names_are_inert_and_shown(page, hostile_name):
    assert page.evaluate("window.hurt") is None
    assert page.locator("body img, h4 b, table b").count() == 0
    assert page.locator(".legend bdi", has_text=hostile_name).count() == 1
    assert page.locator(".plot text a, .plot text tspan[style*=bold]").count() == 0


def column(page, table, heading):
    """Entries of a column, from top to bottom, of the rows that are shown."""
    return page.evaluate(
        """([table, heading]) => {
          const found = document.querySelector(table);
          const place = [...found.tHead.rows[0].cells].findIndex((cell) => cell.textContent.startsWith(heading));
          return [...found.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[place].dataset.value);
        }""",
        [table, heading],
    )


def test_headings_sort_both_ways_and_by_keyboard(page):
    heading = page.locator("table.cells thead button", has_text="accuracy").first
    heading.click()
    rising = [float(value) for value in column(page, "table.cells", "accuracy")]
    assert rising == sorted(rising)
    assert page.locator("table.cells th[aria-sort=ascending]").count() == 1
    heading.focus()
    page.keyboard.press("Enter")
    assert [float(value) for value in column(page, "table.cells", "accuracy")] == sorted(rising, reverse=True)


def test_cells_equal_the_files(page, everything):
    page.locator("table.runs thead button", has_text="seed").first.click()
    runs = column(page, "table.runs", "run")
    for name, shown in zip(runs, column(page, "table.runs", "accuracy"), strict=True):
        lines = (everything / "runs" / name / "metrics.jsonl").read_text().splitlines()
        assert float(shown) == json.loads(lines[-1])["accuracy"]


def test_claims_are_chosen_by_document_verdict_and_words(page):
    assert column(page, "table.claims", "claim") == ["kerg2020/1", "miller2018/1"]
    page.select_option("[data-filter=paper]", "miller2018")
    assert column(page, "table.claims", "claim") == ["miller2018/1"]
    assert page.locator(".filters output").text_content() == "1 of 2"
    page.select_option("[data-filter=paper]", "")
    page.select_option("[data-filter=verdict]", "holds")
    assert column(page, "table.claims", "claim") == ["kerg2020/1"]
    page.select_option("[data-filter=verdict]", "")
    page.fill("[data-search]", "FACTOR")
    assert column(page, "table.claims", "claim") == ["miller2018/1"]


def test_a_switch_hides_a_model_in_all_pictures(page):
    count = """() => [...document.querySelectorAll("#comparison-1 .plot")].flatMap((plot) => plot.data)
        .filter((trace) => trace.meta?.model === "LSTM" && trace.visible !== false).length"""
    before = page.evaluate(count)
    switch = page.locator("#comparison-1 .legend button", has_text="LSTM").first
    switch.click()
    assert before > 5
    assert page.evaluate(count) == 0
    assert switch.get_attribute("aria-pressed") == "false"
    switch.press("Enter")
    assert page.evaluate(count) == before


def test_the_theme_switches_with_its_pictures(page):
    page.emulate_media(color_scheme="light")
    # The pictures follow a moment later, each with the colour of rules in the theme.
    follows = """(theme) => document.documentElement.dataset.theme === theme && [...document.querySelectorAll(".plot")]
        .every((plot) => plot.layout.xaxis.gridcolor ===
                         getComputedStyle(document.documentElement).getPropertyValue("--rule").trim())"""
    page.wait_for_function(follows, arg="light")
    for theme in ("dark", "light"):
        page.click("#theme")
        page.wait_for_function(follows, arg=theme)


def test_one_model_has_one_colour(page):
    colours = page.evaluate(
        """() => [...new Set([...document.querySelectorAll(".plot")].flatMap((plot) => plot.data)
             .filter((trace) => trace.meta?.model === "RelRNN").map((trace) => trace.line.color))]"""
    )
    assert len(colours) == 1


def test_every_picture_has_words_and_every_control_a_name(page):
    assert page.evaluate(
        "[...document.querySelectorAll('.plot')].every((plot) => plot.getAttribute('aria-label').length > 20)"
    )
    nameless = """[...document.querySelectorAll("button, select, input, a[href]")]
        .filter((part) => !part.closest(".plot") && !(part.textContent || part.getAttribute("aria-label")
                          || part.closest("label"))).length"""
    assert page.evaluate(nameless) == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_letters_stand_out_from_the_paper(page, theme):
    """Contrast of all text at least 4.5 to 1, by the rule of WCAG 2."""
    page.emulate_media(color_scheme=theme)
    worst = page.evaluate(
        """() => {
          const light = (text) => { const [r, g, b] = text.match(/[\\d.]+/g).map(Number)
            .map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const paper = (part) => { for (let p = part; p; p = p.parentElement) {
            const c = getComputedStyle(p).backgroundColor; if (!/, 0\\)$/.test(c) && c !== "transparent") return c; }
            return "rgb(255, 255, 255)"; };
          const leaves = [...document.querySelectorAll("body *:not(script):not(option)")]
            .filter((part) => !part.closest(".plot"))
            .filter((part) => [...part.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
          return Math.min(...leaves.map((part) => {
            const a = light(getComputedStyle(part).color), b = light(paper(part));
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          }));
        }"""
    )
    assert worst >= 4.5


def test_it_prints_light_and_without_controls(page):
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("#theme, nav, .legend, .filters").locator("visible=true").count() == 0
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="screen", color_scheme="light")


@pytest.mark.slow
def test_a_hundred_runs_are_small_and_quick(browser, make_run, tmp_path):
    """Under 15 MB, and under two seconds of work for the browser, from opening the file to the last picture."""
    for model in ("LSTM", "OrthRNN", "MemRNN", "RelRNN", "RelLSTM"):
        for length in (100, 300):
            for seed in range(10):
                what = {"model": model, "length": length, "seed": seed, "best": 0.1 * seed, "probes": seed == 9}
                make_run(f"{model}-{length}-{seed}", **what, updates=20_000, every=50, steps=length + 20)
    path = write_report([tmp_path], tmp_path / "page.html", measure=False)
    assert path.stat().st_size < 15e6
    shown = Shown(browser, path)
    session = shown.page.context.new_cdp_session(shown.page)
    session.send("Performance.enable")
    shown.page.reload()
    shown.page.wait_for_function("document.documentElement.dataset.drawn", timeout=60_000)
    measured = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
    drawn = shown.page.evaluate("document.documentElement.dataset.drawn")
    print(f"{path.stat().st_size / 1e6:.1f} MB, {drawn} ms to draw, {measured['ThreadTime']:.2f} s of the main thread")
    # Time of the main thread on a core, so that other work on the machine does not count.
    assert 0 < measured["ThreadTime"] < 2
    assert shown.complaints == []
