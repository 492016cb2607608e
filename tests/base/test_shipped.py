"""Kernels and recorded sweeps that come with eatss, by name."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import eatss
from eatss.base.shipped import (
    ShippedKernel,
    data_directory,
    kernel_names,
    located,
    shipped_kernel,
    shipped_kernels,
    source_path,
    sweep_names,
)
from eatss.frontend.options import Reading
from eatss.measurement.options import is_program
from eatss.ppcg_build.run import ppcg_arguments
from eatss.session.session import Session
from eatss.tune.store import Store
from tests.end_to_end.in_process import eatss as command
from tests.refusals import refusing

KERNELS = data_directory("kernels")
ALL = shipped_kernels().kernels


@pytest.mark.parametrize("kernel", ALL, ids=lambda one: one.name)
def test_what_is_said_of_a_kernel_is_what_its_page_and_its_text_say(kernel: ShippedKernel) -> None:
    (row,) = re.findall(
        rf"^\| {kernel.name} \| .* \| (.*) \| .* \|$", (KERNELS / "README.md").read_text(), re.M
    )
    assert dict(kernel.sizes) == {n: int(v) for n, v in (p.split("=") for p in row.split())}
    assert kernel.title
    assert Path(kernel.file) == KERNELS / f"{kernel.name}.c"


def test_sizes_are_those_that_the_front_end_reads() -> None:
    for name in ("gemm", "conv-2d", "fdtd-apml"):
        (scop,) = Session(f"@{name}", Reading()).parsed.scops
        sizes = dict(shipped_kernel(name).sizes)
        assert dict(scop.size_macros).items() <= sizes.items()
        assert scop.size_macros


def test_all_kernels_are_listed() -> None:
    assert kernel_names() == tuple(sorted(path.stem for path in KERNELS.glob("*.c")))
    assert tuple(one.name for one in ALL) == kernel_names()


def test_a_name_is_the_path_of_a_file() -> None:
    assert located("@gemm") == source_path("@gemm") == KERNELS / "gemm.c"
    assert shipped_kernel("@gemm") == shipped_kernel("gemm")
    assert Session("@gemm", Reading()).file == str(KERNELS / "gemm.c")
    assert not is_program("@gemm")
    assert ppcg_arguments(["@gemm", "-DNI=20"]).source == KERNELS / "gemm.c"


@pytest.mark.parametrize("source", ["gemm.c", "./@gemm", Path("@gemm"), "@x\nvoid f();", 3])
def test_all_else_is_left_as_it_is(source: object) -> None:
    assert located(source) is source


@pytest.mark.parametrize(
    ("name", "meant"), [("gem", "@gemm"), ("GEMM", "@gemm"), ("2mm.c", "@2mm")]
)
def test_a_misspelt_name_is_told_with_the_nearest(name: str, meant: str) -> None:
    with refusing("EATSS-C017") as caught:
        eatss.select(f"@{name}", gpu="a100")
    hint = caught.value.diagnostics[0].hint or ""
    assert hint.startswith(f"did you mean {meant}")
    assert f"./@{name}" in hint


def test_a_kernel_is_selected_for_as_its_file_is() -> None:
    by_name = eatss.select("@mvt", gpu="a100", defines={"NI": 500})
    assert by_name == eatss.select(KERNELS / "mvt.c", gpu="a100", defines={"NI": 500})
    done = command("select", "@mvt", "--gpu", "a100", "-D", "NI=500", "--format", "ppcg")
    assert done.stdout == f"{by_name.ppcg_sizes}\n"


def test_a_file_whose_name_begins_with_the_mark_is_reached_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(KERNELS / "mvt.c", tmp_path / "@mine.c")
    monkeypatch.chdir(tmp_path)
    done = command("select", "./@mine.c", "--gpu", "a100", "--model", "paper", "--format", "ppcg")
    assert done.stdout.startswith("{ kernel[0]")
    assert command("select", "@mine.c", "--gpu", "a100").returncode == 2


def test_the_command_lists_kernels_and_prints_one() -> None:
    listed = command("kernels").stdout
    assert all(f"@{name}" in listed for name in kernel_names())
    document = json.loads(command("kernels", "--format", "json").stdout)
    assert [one["name"] for one in document["kernels"]] == list(kernel_names())
    (gemm,) = json.loads(command("kernels", "@gemm", "--format", "json").stdout)["kernels"]
    assert gemm["sizes"] == {"NI": 4000, "NJ": 4000, "NK": 4000}
    assert command("kernels", "gemm").stdout == (KERNELS / "gemm.c").read_text()
    assert command("kernels", "gem").returncode == 2


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
        ("report", "{}", "--format", "csv"),
        ("sweep", "--replay", "{}", "--strategy", "model", "--seeds", "1", "--budget", "3"),
    ):
        by_name = command(*(word.format("@gemm") for word in words), code=0)
        assert by_name.stdout == command(*(word.format(by_path) for word in words)).stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("sweep", "@gemm", "--gpu", "h200", "-o", "@gemm"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_none_is_written(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = (SWEEPS / "gemm.db").read_bytes()
    done = command(*words, code=2)
    assert "EATSS-C008" in done.stderr
    assert "Traceback" not in done.stderr
    assert (SWEEPS / "gemm.db").read_bytes() == before
    assert list(tmp_path.iterdir()) == []


def test_a_store_whose_name_begins_with_the_mark_is_reached_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(SWEEPS / "gemm.db", tmp_path / "@mine.db")
    monkeypatch.chdir(tmp_path)
    assert command("report", "./@mine.db").returncode == 0
    assert command("report", "@mine.db").returncode == 2
    assert eatss.read_sweep(Path("@mine.db")) == eatss.read_sweep("@gemm")
