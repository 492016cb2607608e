"""``eatss --version``: a line for scripts, and what a report of a fault needs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import eatss.cards.environment as versions
from eatss import __version__
from eatss.cards.environment import requirements
from eatss.version import package_revision
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


def test_a_checkout_names_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(versions, "__file__", str(tmp_path / "eatss/cards/environment.py"))
    assert versions._installation() == f"from the sources in {tmp_path}"
    (tmp_path / ".git").mkdir()
    told = SimpleNamespace(stdout="0123456789abcdef-dirty\n")
    package_revision.cache_clear()
    monkeypatch.setattr("subprocess.run", lambda *_, **__: told)
    assert versions._installation() == (
        f"from the sources in {tmp_path}, commit 0123456789ab with changes"
    )


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (None, "as a wheel in {}"),
        (
            '{"url": "https://example.org/eatss", "vcs_info": {"commit_id": "0123456789abcdef"}}',
            "from https://example.org/eatss, commit 0123456789ab",
        ),
    ],
)
def test_a_wheel_tells_where_it_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str | None, said: str
) -> None:
    one = SimpleNamespace(read_text=lambda name: told)
    monkeypatch.setattr(versions, "__file__", str(tmp_path / "eatss/cards/environment.py"))
    monkeypatch.setattr("importlib.metadata.distributions", lambda name: [one])
    assert versions._installation() == said.format(tmp_path)


def test_our_own_fault_points_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr("eatss.report.cards.render_profiles", broken)
    done = eatss("profiles")
    assert done.returncode == 70
    assert "eatss --version --verbose" in done.stderr
