"""``eatss --version``: a line for scripts, and what a report of a fault needs."""

from __future__ import annotations

import pytest

from eatss import __version__
from eatss.cards.environment import requirements
from tests.end_to_end.in_process import eatss


def test_the_version_is_all_of_the_only_line() -> None:
    done = eatss("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"eatss {__version__}\n", "")


@pytest.mark.parametrize("words", [("--version", "--verbose"), ("-v", "--version")])
def test_in_full_it_has_what_a_report_needs(words: tuple[str, str]) -> None:
    done = eatss(*words)
    first, *lines = done.stdout.splitlines()
    assert (done.returncode, first, done.stderr) == (0, f"eatss {__version__}", "")
    names = [line.split("  ")[0] for line in lines]
    assert names[:3] == ["installed", "Python", "platform"]
    needed = [one.name for one in requirements() if not one.extra]
    assert {"z3-solver", "islpy", "libclang", "numpy"} <= set(needed)
    assert names[3:-5] == needed
    assert names[-5:] == ["nvidia-ml-py", "CuPy", "NVIDIA driver", "cards", "nvcc"]


def test_our_own_fault_points_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr("eatss.report.cards.render_profiles", broken)
    done = eatss("profiles")
    assert done.returncode == 70
    assert "eatss --version --verbose" in done.stderr
