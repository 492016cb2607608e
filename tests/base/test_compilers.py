"""nvcc by name: found, or told what the named thing is instead."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss.base.compilers
from eatss.base.compilers import find_nvcc
from eatss.base.diagnostics import InputError

NVCC = """echo 'nvcc: NVIDIA (R) Cuda compiler driver'
echo 'Cuda compilation tools, release 12.8, V12.8.93'"""


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_an_nvcc_is_taken_by_its_path_or_from_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = script(tmp_path / "nvcc", NVCC)
    assert (find_nvcc(str(named)).path, find_nvcc(str(named)).version) == (str(named), "12.8.93")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert find_nvcc().path == str(named)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(eatss.base.compilers, "USUAL", str(named))
    assert find_nvcc().path == str(named)
    with pytest.raises(InputError, match="there is no CUDA compiler 'nvcc-9'"):
        find_nvcc("nvcc-9")  # a name that is given is not replaced by another


@pytest.mark.parametrize("text", ["echo 'gcc (Debian) 12'", "exit 3"])
def test_what_is_no_nvcc_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="there is no CUDA compiler"):
        find_nvcc(str(script(tmp_path / "tool", text)))


def test_what_does_not_run_is_no_nvcc(tmp_path: Path) -> None:
    broken = script(tmp_path / "broken", "")
    broken.write_text("no program", encoding="utf-8")
    for path in (tmp_path, broken):
        with pytest.raises(InputError, match="there is no CUDA compiler"):
            find_nvcc(str(path))
