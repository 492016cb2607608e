"""Compiling: options, what is kept, what compilers say, and the time they may take."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from eatss.base.cache import Cache
from eatss.base.diagnostics import InputError, input_error
from eatss.measurement import compile as compiling
from eatss.measurement import nvrtc
from eatss.measurement.card import CompileError
from eatss.measurement.compile import CompileTarget, Toolchain, compile_target
from eatss.program import Program, load_program

LU = Path(__file__).parent / "programs" / "lu"
SIZES = {"N": 300}


def lu() -> Program:
    return load_program(LU)


def target(toolchain: Toolchain, cache: Path, capability: int = 90) -> CompileTarget:
    return CompileTarget(capability=capability, toolchain=toolchain, cache=str(cache))


def stand_in(folder: Path, body: str, version: str = "1.0") -> Toolchain:
    """Return a compiler that is a Python script; ``sys.argv[-1]`` is the file to make."""
    script = folder / "compiler.py"
    script.write_text(f"import sys, time, pathlib\n{body}\n")
    return Toolchain(name="nvcc", version=version, command=(sys.executable, str(script)))


COUNTING = """
count = pathlib.Path(sys.argv[0]).with_name("count")
count.write_text(count.read_text() + "x" if count.exists() else "x")
pathlib.Path(sys.argv[-1]).write_bytes(" ".join(sys.argv[1:]).encode())
"""


def test_what_was_compiled_is_kept(tmp_path: Path) -> None:
    compiler = stand_in(tmp_path, COUNTING)
    cache = tmp_path / "cache"
    first = target(compiler, cache).compile(lu(), SIZES)
    assert first == target(compiler, cache).compile(lu(), SIZES)
    assert (tmp_path / "count").read_text() == "x"
    assert len(Cache(cache).files("cubin")) == 1


def test_whatever_decides_the_code_is_part_of_the_key(tmp_path: Path) -> None:
    compiler = stand_in(tmp_path, COUNTING)
    cache = tmp_path / "cache"
    other = replace(lu(), text=lu().text + "\n")
    strict = replace(lu(), flags=("-fmad=false",))
    newer = replace(compiler, version="1.1")
    made = {
        target(chosen, cache, capability).compile(program, sizes)
        for chosen, program, sizes, capability in (
            (compiler, lu(), SIZES, 90),
            (compiler, other, SIZES, 90),
            (compiler, strict, SIZES, 90),
            (compiler, lu(), {"N": 301}, 90),
            (compiler, lu(), SIZES, 80),
            (newer, lu(), SIZES, 90),
        )
    }
    assert len(made) == 6


def test_a_compiler_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eatss.measurement.compile.COMPILE_LIMIT_S", 0.1)
    body = "import subprocess; subprocess.run(['sleep', '60'])"
    with pytest.raises(CompileError, match=r"did not finish within 0.1 s"):
        target(stand_in(tmp_path, body), tmp_path).compile(lu(), SIZES)


def test_no_compiler_is_a_sentence_and_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise ImportError("No module named 'cupy'")

    def none(named: str | None) -> Toolchain:
        raise input_error("EATSS-V010", "there is no nvcc")

    monkeypatch.setattr(nvrtc, "version", missing)
    monkeypatch.setattr(compiling, "find_nvcc", none)
    with pytest.raises(InputError) as caught:
        compile_target(90)
    found = caught.value.diagnostics[0]
    assert found.code == "EATSS-E020"
    assert "cupy" in found.message
    assert "nvcc" in found.message
    assert found.hint is not None


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the path")
def test_nvcc_makes_machine_code(tmp_path: Path) -> None:
    made = compile_target(90, "nvcc", cache=tmp_path).compile(lu(), SIZES)
    assert made.read_bytes()[:4] == b"\x7fELF"


def test_nvrtc_makes_machine_code_and_says_what_is_wrong(tmp_path: Path) -> None:
    try:
        nvrtc.version()
    except Exception as error:
        pytest.skip(f"NVRTC does not load: {error}")
    nvrtc_target = compile_target(90, "nvrtc", cache=tmp_path)
    assert nvrtc_target.compile(lu(), SIZES).read_bytes()[:4] == b"\x7fELF"
    wrong = replace(lu(), text=lu().text.replace("const int tj", "const int other"))
    with pytest.raises(CompileError, match=r'lu.cu\(\d+\): error: identifier "tj" is undefined'):
        nvrtc_target.compile(wrong, SIZES)


def test_a_compiler_that_says_nothing_is_told_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="it failed and said nothing"):
        target(stand_in(tmp_path, "raise SystemExit(1)"), tmp_path).compile(lu(), SIZES)
