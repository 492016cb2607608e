"""Versions of packages: those eatss needs, and the CuPy that fits a driver."""

from __future__ import annotations

import pytest

from eatss.cards.environment import (
    Requirement,
    cupy_verdict,
    install_command,
    requirement,
    requirements,
)

NAMED = (
    Requirement(name="cupy-cuda13x", versions=">=13.6,<15", extra="gpu"),
    Requirement(name="cupy-cuda13x", versions=">=13.6,<15", extra="all"),
)


def test_requirements_are_those_of_the_package_itself() -> None:
    found = {one.name: one for one in requirements()}
    assert found["numpy"] == Requirement(name="numpy", versions=">=1.26,<3")
    assert str(found["numpy"]) == "numpy>=1.26,<3"
    assert {one.extra for one in requirements() if one.name == "nvidia-ml-py"} == {
        "cuda12",
        "cuda13",
    }
    assert requirements("no-such-distribution", "eatss") == requirements()
    assert requirements("no-such-distribution") == ()
    assert requirement("no-such-package").takes("0.1")


def test_what_everybody_needs_goes_before_what_an_extra_asks_for() -> None:
    among = (
        Requirement(name="numpy", versions=">=2", extra="dev"),
        Requirement(name="numpy", versions=">=1.26"),
    )
    assert requirement("NumPy", among).versions == ">=1.26"


@pytest.mark.parametrize(
    ("versions", "version", "takes"),
    [
        (">=1.26,<3", "1.26.0", True),
        (">=1.26,<3", "1.26", True),
        (">=1.26,<3", "1.9.9", False),
        (">=1.26,<3", "3.0", False),
        (">=1.26,<3", "3.0.0rc1", False),
        ("==2.4.1", "2.4.1", True),
        ("==2.4", "2.4.0", True),
        ("!=2.4", "2.4.0", False),
        ("~=2.4", "2.9", True),
        ("~=2.4", "3.0", False),
        (">=4.13", "4.9", False),
        ("<=4.13", "4.13.1", False),
        ("==2.*", "2.5", True),
        ("==2.*", "3.0", False),
        (">=2", "2.0rc1", False),
        (">=2", "2.1rc1", True),
        (">=2", "2.0.post1+cu12", True),
        ("", "anything", True),
        (">=4", "importable, of unknown version", True),
    ],
)
def test_versions_are_compared_as_numbers(versions: str, version: str, takes: bool) -> None:
    assert Requirement(name="some", versions=versions).takes(version) is takes


def test_cupy_of_the_driver_or_an_older_one_does() -> None:
    assert cupy_verdict({"cupy-cuda13x": "14.0.1"}, (13, 0), NAMED).good
    assert cupy_verdict({"cupy-cuda12x": "13.6.0"}, (13, 0), NAMED).good
    assert cupy_verdict({"cupy": "14.0.1"}, (12, 4), NAMED).good
    assert cupy_verdict({"cupy-cuda13x": "14.0.1"}, None, NAMED).good


def test_cupy_that_is_newer_than_the_driver_is_told_with_the_one_that_does() -> None:
    verdict = cupy_verdict({"cupy-cuda13x": "14.0.1"}, (12, 4), NAMED)
    assert verdict.found == (
        "cupy-cuda13x 14.0.1 is for CUDA 13, and the driver runs CUDA up to 12.4"
    )
    assert verdict.command == (
        "pip uninstall -y cupy-cuda13x && pip install 'cupy-cuda12x>=13.6,<15'"
    )


def test_two_packages_of_cupy_spoil_each_other() -> None:
    verdict = cupy_verdict({"cupy-cuda13x": "14.0", "cupy-cuda12x": "14.0"}, (13, 0), NAMED)
    assert not verdict.good
    assert verdict.command == (
        "pip uninstall -y cupy-cuda12x cupy-cuda13x && pip install 'eatss[gpu]'"
    )


def test_cupy_that_is_too_old_is_told_with_the_versions_that_do() -> None:
    verdict = cupy_verdict({"cupy-cuda12x": "12.0"}, (13, 0), NAMED)
    assert verdict.found == "cupy-cuda12x 12.0, and eatss needs >=13.6,<15"
    assert verdict.command == "pip install 'cupy-cuda12x>=13.6,<15'"


@pytest.mark.parametrize(
    ("cuda", "command"),
    [((13, 1), "eatss[gpu]"), (None, "eatss[gpu]"), ((12, 8), "cupy-cuda12x>=13.6,<15")],
)
def test_what_is_missing_is_installed_for_the_driver(
    cuda: tuple[int, int] | None, command: str
) -> None:
    verdict = cupy_verdict({}, cuda, NAMED)
    assert (verdict.good, verdict.found) == (False, "not installed")
    assert verdict.command == f"pip install '{command}'"
    assert install_command(cuda[0] if cuda else 13, NAMED) == verdict.command
