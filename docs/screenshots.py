"""Takes the pictures of a report that README and documentation show: python docs/screenshots.py PAGE FOLDER."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main(path: Path, folder: Path) -> None:
    """Writes four pictures into the folder."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is installed")
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        desktop = opened(browser, path, 1280, "light")
        desktop.screenshot(path=folder / "report.png", clip={"x": 0, "y": 0, "width": 1280, "height": 860})
        heading(desktop, "Attention", folder / "report-attention.png", 520)
        heading(opened(browser, path, 1280, "dark"), "Learning", folder / "report-dark.png", 480)
        opened(browser, path, 390, "dark").screenshot(path=folder / "report-phone.png")
        browser.close()


def opened(browser: Browser, path: Path, width: int, theme: str) -> Page:
    """The page, drawn."""
    context = browser.new_context(viewport={"width": width, "height": 860}, color_scheme=theme, offline=True)
    page = context.new_page()
    page.goto(path.resolve().as_uri())
    page.wait_for_function("document.documentElement.dataset.drawn")
    return page


def heading(page: Page, text: str, path: Path, height: int) -> None:
    """What stands below a heading; nothing where there is no such heading."""
    box = page.locator("h3", has_text=text).first.bounding_box() if page.locator("h3", has_text=text).count() else None
    if box is not None:
        clip = {"x": 0, "y": box["y"] - 16, "width": 1280, "height": height}
        page.screenshot(path=path, clip=clip, full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
