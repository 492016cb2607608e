"""The page in a browser: it sorts, downloads, fits a telephone, and asks nobody for anything."""

from __future__ import annotations

import csv
import json
import shutil
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from eatss.report import sweep_page as pages
from eatss.report.sweep_figures import sweep_figures
from eatss.report.sweep_page import html_page
from eatss.report.sweep_tables import variants_table
from eatss.tune.evaluation.sweep_evaluation import evaluate, summed_up
from tests.synthetic_sweeps import sweep

webdriver = pytest.importorskip(
    "selenium.webdriver", reason="needs selenium: pip install 'eatss[browser]'"
)
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="needs a browser: chromium and chromedriver"
)

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SWEEP = sweep(variants=60, cards=2, sizes=(2000, 500), careful=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def driver(folder: Path) -> Iterator[Any]:
    """Return a browser at a page of a made-up sweep."""
    found = [evaluate(SWEEP)]
    page = folder / "page.html"
    with pytest.MonkeyPatch.context() as patch:  # others are drawn by tests of their own
        patch.setattr(pages, "sweep_figures", lambda one: sweep_figures(one)[8:12])
        page.write_text(html_page(found, summed_up(found)), encoding="utf-8")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    browser = webdriver.Chrome(options=options, service=service)
    try:
        browser.execute_cdp_cmd(
            "Browser.setDownloadBehavior",
            {"behavior": "allow", "downloadPath": str(folder / "downloads")},
        )
        browser.get(page.as_uri())
        yield browser
    finally:
        browser.quit()


def header(driver: Any, column: str) -> Any:
    """Return the header of a column of the table of variants."""
    return driver.execute_script(
        "const table = document.getElementById('1-gemm-variants').parentElement;"
        "return [...table.querySelectorAll('th')].find(h => h.textContent === arguments[0]);",
        column,
    )


def column(driver: Any, name: str) -> list[str]:
    found: list[str] = driver.execute_script(
        "const table = document.getElementById('1-gemm-variants').parentElement;"
        "const place = [...table.querySelectorAll('th')]"
        ".findIndex(h => h.textContent === arguments[0]);"
        "return [...table.querySelectorAll('tbody tr')].map(r => r.cells[place].textContent);",
        name,
    )
    return found


def test_a_click_sorts_and_a_second_one_reverses(driver: Any) -> None:
    before = [float(cell) for cell in column(driver, "time in ms")]
    assert before != sorted(before)
    button = header(driver, "time in ms").find_element("tag name", "button")
    driver.execute_script("arguments[0].scrollIntoView()", button)
    button.click()
    assert [float(cell) for cell in column(driver, "time in ms")] == sorted(before)
    assert header(driver, "time in ms").get_attribute("aria-sort") == "ascending"
    button.click()
    assert [float(cell) for cell in column(driver, "time in ms")] == sorted(before, reverse=True)
    assert header(driver, "time in ms").get_attribute("aria-sort") == "descending"


def test_the_keyboard_sorts_too_and_only_one_column_says_so(driver: Any) -> None:
    button = header(driver, "tile_i").find_element("tag name", "button")
    driver.execute_script("arguments[0].focus()", button)
    assert driver.switch_to.active_element == button
    button.send_keys(" ")
    found = [int(cell) for cell in column(driver, "tile_i")]
    assert found == sorted(found)
    states = driver.execute_script(
        "const table = document.getElementById('1-gemm-variants').parentElement;"
        "return [...table.querySelectorAll('th')].map(h => h.getAttribute('aria-sort'));"
    )
    assert states.count("ascending") == 1
    assert states.count("none") == len(states) - 1


def test_a_download_is_the_table(driver: Any, folder: Path) -> None:
    link = driver.find_element("css selector", "a[download='1-gemm-variants.csv']")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", link)
    link.click()
    file = folder / "downloads" / "1-gemm-variants.csv"
    deadline = time.monotonic() + 10
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    rows = list(csv.reader(StringIO(file.read_text(encoding="utf-8"))))
    table = variants_table(evaluate(SWEEP))
    assert rows[0] == list(table.columns)
    assert len(rows) == len(table.rows) + 1
    assert rows == list(csv.reader(StringIO(table.csv)))


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_does_not_scroll_sideways(driver: Any, width: int) -> None:
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        inner, wide = driver.execute_script(
            "return [window.innerWidth, document.documentElement.scrollWidth]"
        )
        tables = driver.execute_script(
            "return [...document.querySelectorAll('.scroll')]"
            ".some(one => one.scrollWidth > one.clientWidth)"
        )
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert inner == width
    assert wide <= width
    assert tables  # what is wider scrolls inside itself


def test_every_figure_is_there_and_has_a_text(driver: Any) -> None:
    driver.execute_script("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not driver.execute_script(
        "return [...document.images].every(one => one.complete)"
    ):
        time.sleep(0.05)
    images = driver.execute_script(
        "return [...document.images].map(one => [one.naturalWidth, one.alt])"
    )
    assert len(images) == 4
    assert all(width > 300 and text for width, text in images)


def test_no_request_leaves_and_nothing_is_refused(driver: Any) -> None:
    """Comes last: it sees what all tests before made the page do."""
    events = [json.loads(one["message"])["message"] for one in driver.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert any(url.startswith("file:") for url in asked)
    own = ("file:", "data:", "chrome:")  # the last are parts of the browser itself
    assert not [url for url in asked if not url.startswith(own)]
    assert not [one for one in driver.get_log("browser") if one["level"] == "SEVERE"]
