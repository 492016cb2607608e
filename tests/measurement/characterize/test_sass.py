"""Machine code: loops are found in nvdisasm's text, and benchmarks compile to what they expect."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from eatss.cards import load_profile
from eatss.measurement.characterize import benchmark as sass
from eatss.measurement.characterize.benchmark import (
    Benchmark,
    Buffer,
    MachineCode,
    disassembled,
    find_disassembler,
    machine_code,
    missing,
)
from eatss.measurement.characterize.run import Chip, suite

TEXT = """\
\t.headerflags\t@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90"
\t.elftype\t@"ET_EXEC"

//--------------------- .text.other                --------------------------
\t.section\t.text.other,"ax",@progbits
\t.align\t128
        .global         other
        .type           other,@function
other:
.text.other:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/                   DADD R4, R4, R6 ;
        /*0020*/                   DADD R4, R4, R6 ;
        /*0030*/                   DADD R4, R4, R6 ;
        /*0040*/                   DADD R4, R4, R6 ;
        /*0050*/                   DADD R4, R4, R6 ;
        /*0060*/                   DADD R4, R4, R6 ;
        /*0070*/                   DADD R4, R4, R6 ;
        /*0080*/                   DADD R4, R4, R6 ;
        /*0090*/               @P0 BRA `(.L_x_0) ;
        /*00a0*/                   EXIT ;
.L_x_1:
        /*00b0*/                   BRA `(.L_x_1);
        /*00c0*/                   NOP;

//--------------------- .text.timed                --------------------------
\t.section\t.text.timed,"ax",@progbits
\t.sectionflags\t@"SHF_BARRIERS=1"
timed:
.text.timed:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   S2R R0, SR_TID.X ;
        /*0020*/                   ISETP.GE.AND P0, PT, R2, 0x1, PT ;
        /*0030*/              @!P0 BRA `(.L_x_9) ;
.L_x_2:
        /*0040*/                   IADD3 R8, R8, 0x1, RZ ;
.L_x_3:
        /*0050*/                   FADD R4, R4, R5 ;
        /*0060*/               @P1 BRA `(.L_x_3) ;
.L_x_4:
        /*0070*/                   LDG.E.128 R12, desc[UR4][R2.64] ;
        /*0080*/                   FFMA R4, R4, R5, R6 ;
        /*0090*/              @!P2 FFMA R4, R4, R5, R6 ;
        /*00a0*/             @!UP0 UIADD3 UR4, UR4, 0x1, URZ ;
        /*00b0*/             @!PT LDS RZ, [RZ] ;
        /*00c0*/               @P3 BRA `(.L_x_5) ;
        /*00d0*/                   FFMA.FTZ R4, R4, R5, R6 ;
.L_x_5:
        /*00e0*/                   NOP ;
        /*00f0*/                   BRA.U UP0, `(.L_x_4) ;
        /*0100*/                   DADD R4, R4, R6 ;
        /*0110*/                   DADD R4, R4, R6 ;
        /*0120*/                   ISETP.NE.AND P0, PT, R8, R9, PT ;
        /*0130*/               @P0 BRA `(.L_x_2) ;
.L_x_9:
        /*0140*/                   EXIT ;
.L_x_10:
        /*0150*/                   BRA `(.L_x_10);
        /*0160*/                   NOP;

//--------------------- .text.straight             --------------------------
\t.section\t.text.straight,"ax",@progbits
straight:
.text.straight:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   FMUL R4, R4, R5 ;
        /*0020*/               @P0 BRA `(.L_x_11) ;
        /*0030*/                   FMUL R4, R4, R5 ;
.L_x_11:
        /*0040*/                   EXIT ;
"""

INNER = {
    "BRA": 1, "BRA.U": 1, "FFMA": 2, "FFMA.FTZ": 1, "LDG.E.128": 1, "LDS": 1, "NOP": 1, "UIADD3": 1,
}  # fmt: skip


def benchmark(**expected: int) -> Benchmark:
    return Benchmark(
        name="x",
        group="arithmetic",
        text="",
        kernel="timed",
        blocks=1,
        threads=32,
        arguments=(Buffer(size_bytes=4), "repeat"),
        operations=1.0,
        loops=1.0,
        expected=expected,
    )


def test_the_longest_loop_that_holds_no_other_is_read() -> None:
    """The outer loop is longer, and so is the loop of another function."""
    code = machine_code(TEXT, "timed")
    assert dict(code.opcodes) == INNER
    assert code.instructions == sum(INNER.values()) == 9


def test_opcodes_stand_in_order_of_their_number_then_of_their_name() -> None:
    assert machine_code(TEXT, "timed").opcodes[:3] == (("FFMA", 2), ("BRA", 1), ("BRA.U", 1))


def test_functions_are_told_apart() -> None:
    assert dict(machine_code(TEXT, "other").opcodes) == {"DADD": 8, "BRA": 1}


def test_a_kernel_without_a_loop_counts_as_one() -> None:
    code = machine_code(TEXT, "straight")
    assert dict(code.opcodes) == {"LDC": 1, "FMUL": 2, "BRA": 1, "EXIT": 1}
    assert code.instructions == 5


def test_the_jump_to_itself_at_the_end_of_a_function_is_no_match_for_a_loop() -> None:
    assert machine_code(TEXT, "other").instructions == 9


@pytest.mark.parametrize("kernel", ["time", "timed2", "text.timed", ""])
def test_a_kernel_that_is_not_there_has_no_code(kernel: str) -> None:
    assert machine_code(TEXT, kernel) == MachineCode(opcodes=(), instructions=0)


def test_forms_match_whole_opcodes() -> None:
    code = machine_code(TEXT, "timed")
    assert code.count("FFMA") == 2
    assert code.count(r"FFMA(\.FTZ)?") == 3
    assert code.count("F") == 0
    assert code.count(r"LDG\.E") == 0
    assert code.count(r"LDG\.E\.128|LDS") == 2
    assert code.count(".*") == code.instructions


def test_what_lacks_is_named_with_both_numbers() -> None:
    code = machine_code(TEXT, "timed")
    there = {"FFMA": 2, r"LDG\.E\.128": 1}
    assert missing(benchmark(), code) == ()
    assert missing(benchmark(**there), code) == ()
    assert missing(benchmark(**there, DFMA=4), code) == ("0 instead of 4 instructions DFMA",)
    assert missing(benchmark(FFMA=3, LDS=0), code) == (
        "2 instead of 3 instructions FFMA",
        "1 instead of 0 instructions LDS",
    )


def executable(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    return place


def test_the_disassembler_is_that_of_path_before_that_of_the_toolkit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = executable(tmp_path / "path" / "nvdisasm")
    of_toolkit = executable(tmp_path / "cuda" / "bin" / "nvdisasm")
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_disassembler() == on_path
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_disassembler() == of_toolkit
    of_toolkit.chmod(0o644)
    assert find_disassembler() != of_toolkit


def test_a_disassembler_that_fails_or_hangs_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = executable(tmp_path / "nvdisasm")
    tool.write_text("#!/bin/sh\necho $1 $2\n")
    assert disassembled(tool, Path("x.cubin")) == "-c x.cubin\n"
    tool.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(subprocess.CalledProcessError):
        disassembled(tool, Path("x.cubin"))
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(sass, "_LIMIT_S", 0.1)
    with pytest.raises(subprocess.TimeoutExpired):
        disassembled(tool, Path("x.cubin"))
    with pytest.raises(OSError, match="nowhere"):
        disassembled(tmp_path / "nowhere", Path("x.cubin"))


def tools() -> tuple[str, Path]:
    compiler, disassembler = shutil.which("nvcc"), find_disassembler()
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    if disassembler is None:
        pytest.skip("nothing disassembles machine code: there is no nvdisasm")
    return compiler, disassembler


@pytest.mark.parametrize("name", ["fp32 fma", "DRAM read", "0 conflicts"])
def test_a_compiled_benchmark_holds_its_instructions(tmp_path: Path, name: str) -> None:
    compiler, disassembler = tools()
    every = suite(Chip.of(load_profile("h200")))
    one = next(one for one in every if one.name == name)
    source, cubin = tmp_path / "benchmark.cu", tmp_path / "benchmark.cubin"
    source.write_text(one.text)
    subprocess.run(
        [compiler, "-arch=sm_90", "--std=c++17", "-O3", "-cubin", "-o", str(cubin), str(source)],
        check=True,
        timeout=120,
        env=os.environ,
    )
    code = machine_code(disassembled(disassembler, cubin), one.kernel)
    assert missing(one, code) == ()
    assert code.instructions >= sum(one.expected.values())
