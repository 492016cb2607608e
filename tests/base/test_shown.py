"""Results in a line or two, and as HTML for notebooks."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.base.diagnostics import Diagnostic
from eatss.base.shipped import data_directory
from eatss.base.shown import Shown, in_lines
from eatss.building import PpcgBuild
from eatss.choose.expectation import ProgramExpectation
from eatss.measurement.energy_meter import EnergyMeter
from eatss.report.pages import html_of
from eatss.tune.evaluation import evaluate
from eatss.verify.result import SizeResult, Verification
from tests.measurement.meters.conftest import FakeNvml
from tests.report.measurements import comparison, failed
from tests.report.measurements import measured as measurement
from tests.synthetic_sweeps import sweep

pytestmark = pytest.mark.usefixtures("analysed_once")

KERNELS = data_directory("kernels")


@cache
def selected() -> eatss.Selection:
    return eatss.select(KERNELS / "mvt.c", gpu="h200", target="cuda")


@cache
def selected_for_ppcg() -> eatss.Selection:
    return eatss.select(KERNELS / "mvt.c", gpu="h200")


@cache
def expected() -> ProgramExpectation:
    return eatss.predict(KERNELS / "mvt.c", gpu="h200", target="cuda")


@cache
def metered() -> eatss.EnergyMeasurement:
    with EnergyMeter(gpus=[0, 1], module=FakeNvml(), margin_s=0.02) as meter:
        sum(range(200_000))
    return meter.result


def verified() -> Verification:
    sizes = SizeResult(launcher="gemm", sizes=(("N", 9),), status="ok", compared=81)
    return Verification(
        program="gemm", device="cpu", status="ok", message="", bit_equal=True, results=(sizes,),
    )  # fmt: skip


def built() -> PpcgBuild:
    return PpcgBuild(
        files=(Path("gemm_host.cu"),), program=None, selection=selected_for_ppcg(),
        commands=(("ppcg", "gemm.c"),), said="",
        warnings=(Diagnostic(code="EATSS-R031", message="not <understood>"),),
    )  # fmt: skip


RESULTS: dict[str, Callable[[], object]] = {
    "selection": selected,
    "kernel": lambda: eatss.select(KERNELS / "mvt.c", gpu="h200", model="paper").kernels[0],
    "kernel of ppcg": lambda: selected_for_ppcg().kernels[0],
    "program": lambda: eatss.codegen(KERNELS / "mvt.c", gpu="h200"),
    "prediction": expected,
    "profile": lambda: eatss.load_profile("h200"),
    "callable": lambda: eatss.jit(KERNELS / "gemm.c"),
    "measurement": measurement,
    "comparison": comparison,
    "energy": metered,
    "sweep": lambda: sweep(variants=40, cards=2),
    "evaluation": lambda: evaluate(sweep(variants=40)).evaluation,
    "verification": verified,
    "build": built,
}


@pytest.fixture(scope="module", params=RESULTS)
def result(request: pytest.FixtureRequest) -> Any:
    return RESULTS[request.param]()


def test_a_result_is_a_few_lines(result: Any) -> None:
    lines = repr(result).splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 200
    assert lines[0].startswith("<")
    assert lines[-1].endswith(">")


class Elements(HTMLParser):
    """The text of a page, which raises where elements do not close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)
        assert {name for name, _ in attrs} <= {"style"}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Elements:
    page = Elements()
    page.feed(html)
    page.close()
    assert page.open == []
    return page


def test_a_notebook_gets_one_element_that_needs_nothing_else(result: Any) -> None:
    if not isinstance(result, Shown):  # no command prints it
        return
    html = result._repr_html_()
    page = parsed(html)
    assert html.startswith("<pre")
    assert page.seen == {"pre"}
    assert len(page.text.splitlines()) >= 2


def test_results_are_pickled_as_before() -> None:
    found = measurement()
    assert pickle.loads(pickle.dumps(found)) == found


def test_what_a_user_named_is_escaped() -> None:
    html = html_of(replace(measurement(), program="<script>alert(1)</script> & \x1b[2J"))
    assert "<script" not in html
    assert "\x1b" not in html
    assert parsed(html).text.startswith("<script>alert(1)</script> & \\x1b[2J")


def test_many_parts_are_cut() -> None:
    text = in_lines("Selection", [f"k{number}" for number in range(40)])
    assert text.splitlines()[-1] == "  … 32 more>"


def test_a_callable_of_a_missing_file_still_prints() -> None:
    assert "EATSS-F001" in repr(eatss.jit("no-such-file.c"))


def test_a_failure_prints_its_reason() -> None:
    found = failed("32,32", "timeout", "it took too long")
    assert repr(found).endswith(": timeout, it took too long>")
