"""Requirements of comparisons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eatss.base.diagnostics import InputError
from eatss.measurement.requirement import judge, parse_requirements
from tests.report.measurements import comparison, failed_row, row

BETTER = comparison(row("64", 1.5, 0.9), row("selected", 2.0, 0.5))


def message(text: str) -> tuple[bool, str]:
    (verdict,) = judge(BETTER, parse_requirements([text]))
    return verdict.met, verdict.message


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("energy<=0.5", True),
        ("energy<0.5", False),
        ("time<=0.5", True),
        ("time <= .4", False),
        ("ppw>=2", True),
        ("ppw>2", False),
        ("speedup>1.9", True),
        ("speedup>=2.1", False),
    ],
)
def test_the_mean_decides(text: str, met: bool) -> None:
    assert message(text)[0] is met


def test_selected_is_judged_else_the_first_that_is_not_the_baseline() -> None:
    asked = parse_requirements(["energy<=1"])
    transposed = replace(comparison(row("64"), row("selected")), baseline="selected")
    for sides, variant in ((BETTER, "selected"), (transposed, "64")):
        assert judge(sides, asked)[0].variant == variant


def test_the_message_names_the_interval() -> None:
    assert message("energy<=0.4")[1] == (
        "selected: energy over the baseline's is 0.5 [0.495, 0.505], which does not meet <= 0.4"
    )


def test_a_bound_inside_the_interval_is_pointed_out() -> None:
    assert message("energy<=0.498")[1].endswith("; the interval lies on both sides of the bound")


def test_the_interval_of_time_is_that_of_the_speed_up_turned_over() -> None:
    (verdict,) = judge(BETTER, parse_requirements(["time<=1"]))
    assert verdict.ratio is not None
    assert verdict.ratio.low == pytest.approx(1 / 2.02)
    assert verdict.ratio.high == pytest.approx(1 / 1.98)


def test_what_failed_does_not_meet_anything_and_the_reason_is_given() -> None:
    (verdict,) = judge(comparison(failed_row("selected")), parse_requirements(["energy<=9"]))
    assert not verdict.met
    assert verdict.message == (
        "selected: energy over the baseline's was not measured, so <= 9 is not met: "
        "wrong result; C differs"
    )


def test_a_ratio_without_interval_says_so() -> None:
    single = row("selected")
    assert single.energy_ratio is not None
    single = replace(single, energy_ratio=replace(single.energy_ratio, low=None, high=None))
    (verdict,) = judge(comparison(single), parse_requirements(["energy<=1"]))
    assert (verdict.met, verdict.message[-20:]) == (True, "no interval is known")


def test_several_requirements_may_stand_in_one_text() -> None:
    found = parse_requirements(["energy<=1.0,time<=0.95", "ppw>=1"])
    assert list(map(str, found)) == ["energy<=1", "time<=0.95", "ppw>=1"]


def test_the_baseline_is_never_judged_against_itself() -> None:
    alone = comparison()
    (verdict,) = judge(alone, parse_requirements(["energy<=1"]))
    assert not verdict.met
    assert "nothing but the baseline was measured" in verdict.message


@pytest.mark.parametrize("text", ["", "energy", "energy=1", "energy<=", "power<=1", "energy<=1,"])
def test_what_is_no_requirement_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_requirements([text])
    assert caught.value.code == "EATSS-E044"
