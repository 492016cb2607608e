"""Output formats of ``eatss select``: those built in, and one of somebody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from eatss.base.shipped import data_directory
from eatss.report.formats import FORMATS
from tests import offered
from tests.end_to_end.in_process import eatss

GEMM = str(data_directory("kernels") / "gemm.c")
OWN = """
def names(found):
    lines = [f"{k.name} {dict(k.tile_sizes)} {found.profile.name}" for k in found.selection.kernels]
    return "\\n".join(lines) + "\\n"
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a package that offers a format where Python finds it."""
    files = {"offered_format.py": OWN}
    entry = "names = offered_format:names"
    offered.install(tmp_path, monkeypatch, FORMATS, entry=entry, files=files)


@pytest.mark.usefixtures("package")
def test_a_package_adds_a_format() -> None:
    done = eatss("select", GEMM, "--gpu", "h200", "--format", "names")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kernel0 {'i': ")
    assert done.stdout.endswith(" h200\n")
    wrong = eatss("select", GEMM, "--gpu", "h200", "--format", "xml")
    assert wrong.returncode == 2
    assert "there is no format 'xml' [EATSS-X005]" in wrong.stderr
    assert "table, json, ppcg, ppcg-args, names" in " ".join(wrong.stderr.split())


def test_a_program_adds_a_format() -> None:
    FORMATS.register("names", lambda found: f"{found.selection.gpu}\n")
    try:
        assert eatss("select", GEMM, "--gpu", "h200", "--format", "names").stdout == "h200\n"
    finally:
        FORMATS.remove("names")


def test_help_lists_the_formats_that_are_built_in() -> None:
    shown = eatss("select", "--help").stdout
    assert all(name in shown for name in FORMATS.names())
