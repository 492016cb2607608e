"""The recorded sweeps that come with eatss, by name wherever a store is read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.base.shipped import (
    data_directory,
    kernel_names,
    sweep_names,
)
from eatss.tune.store import Store
from tests.end_to_end.in_process import eatss as command

SWEEPS = data_directory("sweeps")


def test_each_is_named_for_the_kernel_that_it_is_of() -> None:
    assert "gemm" in sweep_names()
    assert set(sweep_names()) <= set(kernel_names())
    for name in sweep_names():
        sweep = eatss.read_sweep(f"@{name}", measurements=False)
        assert sweep.identity.program == name
        assert sweep == Store.read(SWEEPS / f"{name}.db", measurements=False)


def test_a_name_does_wherever_a_store_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    by_path = str(SWEEPS / "gemm.db")
    for words in (
        ("report", "{}"),
        ("results", "show", "{}", "--top", "3"),
        ("results", "export", "{}", "-o", "-"),
        ("sweep", "--replay", "{}", "--strategy", "model", "--seeds", "1", "--budget", "3"),
    ):
        by_name = command(*(word.format("@gemm") for word in words))
        assert by_name.returncode == 0, by_name.stderr
        assert by_name.stdout == command(*(word.format(by_path) for word in words)).stdout
    assert command("results", "ls", "@gemm").stdout.startswith("@gemm\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("results", "merge", "@gemm", "-o", "@gemm"),
        ("sweep", "@gemm", "--gpu", "h200", "-o", "@gemm"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_none_is_written(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = (SWEEPS / "gemm.db").read_bytes()
    done = command(*words)
    assert done.returncode == 2
    assert "EATSS-D012" in done.stderr
    assert "Traceback" not in done.stderr
    assert (SWEEPS / "gemm.db").read_bytes() == before
    assert list(tmp_path.iterdir()) == []


def test_eatss_sweep_writes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="EATSS-D012"):
        eatss.sweep("@gemm", output="@gemm")


def test_a_file_whose_name_begins_with_the_mark_is_reached_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(SWEEPS / "gemm.db", tmp_path / "@mine.db")
    monkeypatch.chdir(tmp_path)
    assert command("results", "ls", "./@mine.db").returncode == 0
    assert command("results", "ls", "@mine.db").returncode == 2
    assert eatss.read_sweep(Path("@mine.db")) == eatss.read_sweep("@gemm")
