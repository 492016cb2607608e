"""Of a test with many cases some run by default, the others where long ones are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled import kept_of

CASES = """
import pytest

@pytest.mark.samples(2)
@pytest.mark.parametrize("one", [*"abc", pytest.param("d", marks=pytest.mark.long), "e"])
def test_sampled(one): ...

class TestOthers:
    @pytest.mark.samples(1)
    @pytest.mark.parametrize("one", "ab")
    def test_sampled(self, one): ...

@pytest.mark.parametrize("one", "ab")
def test_all(one): ...
"""

CONFTEST = """
import pytest
from tests.sampled import make_others_long

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    make_others_long(items)
"""

INI = """
[pytest]
addopts = --strict-markers -p no:cacheprovider
markers =
    samples(n): some
    long: the others
"""


class _Collected:
    """What a run collects, by the names of its cases."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.names = [item.nodeid.partition("::")[2] for item in session.items]


@pytest.mark.parametrize(
    ("count", "wanted", "kept"),
    [
        (1, 1, [0]),
        (2, 1, [0]),
        (3, 2, [0, 2]),
        (5, 3, [0, 2, 4]),
        (10, 4, [0, 3, 6, 9]),
        (21, 7, [0, 3, 6, 10, 13, 16, 20]),
        (2, 2, [0, 1]),
        (2, 9, [0, 1]),
        (0, 1, []),
    ],
)
def test_cases_are_spread_over_all(count: int, wanted: int, kept: list[int]) -> None:
    assert kept_of(count, wanted) == kept


def test_as_many_are_kept_as_are_wanted() -> None:
    for count in range(2, 40):
        for wanted in range(2, count + 1):
            kept = kept_of(count, wanted)
            assert len(set(kept)) == wanted
            assert (min(kept), max(kept)) == (0, count - 1)


def test_none_cannot_be_wanted() -> None:
    with pytest.raises(ValueError, match="at least one case is kept, not 0"):
        kept_of(3, 0)


@pytest.mark.parametrize(
    ("selected", "names"),
    [
        (
            ["-m", "not long"],
            [
                "test_sampled[a]",
                "test_sampled[e]",
                "TestOthers::test_sampled[a]",
                "test_all[a]",
                "test_all[b]",
            ],
        ),
        (
            ["-m", "long"],
            [
                "test_sampled[b]",
                "test_sampled[c]",
                "test_sampled[d]",
                "TestOthers::test_sampled[b]",
            ],
        ),
    ],
    ids=["by default", "long"],
)
def test_others_are_long(tmp_path: Path, selected: list[str], names: list[str]) -> None:
    assert collected(tmp_path, [str(tmp_path), *selected]) == names


def test_a_case_that_is_selected_alone_runs(tmp_path: Path) -> None:
    names = ["test_sampled[b]", "TestOthers::test_sampled[b]"]
    ids = [f"{tmp_path / 'test_cases.py'}::{name}" for name in names]
    assert collected(tmp_path, [*ids, "-m", "not long"]) == names


def collected(folder: Path, arguments: list[str]) -> list[str]:
    """Return which cases a run of pytest with these arguments collects in a folder."""
    (folder / "pytest.ini").write_text(INI)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_cases.py").write_text(CASES)
    found = _Collected()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTEST_XDIST_WORKER", raising=False)
        options = ["--collect-only", "-q", "--import-mode=importlib", "-c", folder / "pytest.ini"]
        pytest.main([*map(str, options), f"--rootdir={folder}", *arguments], [found])
    return found.names
