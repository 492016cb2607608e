"""Compilers by name, and what a verification tells while it works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from eatss.cli.verify import doing
from eatss.program import Program
from eatss.verify import verify
from eatss.verify.job import Compilers, Progress


def wrapper(path: Path, command: str) -> Path:
    path.write_text(f'#!/bin/sh\necho called >> "{path}.log"\n{command} "$@"\n')
    path.chmod(0o755)
    return path


def test_progress_tells_each_run_and_how_many_there_are(
    matmul: Program, matmul_c: str, folder: Callable[..., Path]
) -> None:
    told: list[Progress] = []
    names = [parameter.name for parameter in matmul.parameters]
    sizes = [dict.fromkeys(names, size) for size in (3, 5, 8)]
    found = verify(folder(matmul, matmul_c), device="cpu", sizes=sizes, progress=told.append)
    assert found.ok
    runs = sorted({(one.done, one.launcher, one.sizes, one.total) for one in told})
    assert runs == [
        (number, result.launcher, result.sizes, 3) for number, result in enumerate(found.results)
    ]
    assert {one.stage for one in told} >= {"compile", "original", "generated"}
    assert doing(told[0]).endswith("=3: compiling")


def test_the_compilers_that_are_named_are_used(
    matmul: Program, matmul_c: str, folder: Callable[..., Path], tmp_path: Path
) -> None:
    cc, cxx = wrapper(tmp_path / "my-cc", "gcc"), wrapper(tmp_path / "my-cxx", "g++")
    sizes = [{parameter.name: 3 for parameter in matmul.parameters}]
    compilers = Compilers(cc=str(cc), cxx=str(cxx))
    place = folder(matmul, matmul_c)
    assert verify(place, device="cpu", sizes=sizes, compilers=compilers).ok
    assert (tmp_path / "my-cc.log").exists()
    assert (tmp_path / "my-cxx.log").exists()

    nvcc = wrapper(tmp_path / "my-nvcc", "echo 'my-nvcc: fatal error: no such card' >&2; false")
    compilers = Compilers(nvcc=str(nvcc))
    found = verify(place, device="gpu", sizes=sizes, compilers=compilers)
    assert found.status == "compile error"
    assert "my-nvcc: fatal error: no such card" in found.message
