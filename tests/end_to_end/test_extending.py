"""What docs/extending.md shows works, from a package outside this repository."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from eatss.base.extensions import Registry
from eatss.choose import OBJECTIVES
from eatss.measurement.meters import METERS
from eatss.tune.strategies import STRATEGIES
from tests import offered
from tests.end_to_end.in_process import eatss

REPOSITORY = Path(__file__).resolve().parents[2]
REGISTRIES: tuple[Registry[Any], ...] = (
    OBJECTIVES, METERS, STRATEGIES,
)  # fmt: skip


def blocks(language: str) -> list[str]:
    tokens = MarkdownIt().parse((REPOSITORY / "docs" / "extending.md").read_text())
    return [token.content for token in tokens if token.type == "fence" and token.info == language]


def files() -> dict[str, str]:
    """Return what stands in the page, by the name in its first line."""
    found = {}
    for text in blocks("python") + blocks("toml"):
        name = re.match(r"# (\S+)\n", text)
        assert name is not None
        found[name[1]] = text
    return found


def commands() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines()]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install what the page shows, and go where the kernels are."""
    own = files()
    points = tomllib.loads(own.pop("pyproject.toml"))["project"]["entry-points"]
    assert set(points) == {registry.group for registry in REGISTRIES}
    folder = tmp_path / "outside"
    folder.mkdir()
    for registry in REGISTRIES:
        offered.install(folder, monkeypatch, registry, entry="", files=own)
    offers = [
        line
        for group, names in points.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in names.items()))
    ]
    (folder / "offered-1.0.dist-info" / "entry_points.txt").write_text("\n".join(offers) + "\n")
    shutil.copytree(REPOSITORY / "kernels", tmp_path / "kernels")
    with chdir(tmp_path):
        yield tmp_path


@pytest.mark.usefixtures("package")
def test_every_command_of_the_page_works() -> None:
    for command in commands():
        words = shlex.split(command)[1:]
        if words[0] == "measure":
            continue  # needs a card, see below
        eatss(*words, code=0)


def test_the_page_has_a_file_for_each_registry_and_one_that_tries_it() -> None:
    assert len(files()) == len(REGISTRIES) + 2
