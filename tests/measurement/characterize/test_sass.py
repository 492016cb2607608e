"""Machine code: loops are found in nvdisasm's text, and benchmarks compile to what they expect."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from eatss.cards import load_profile
from eatss.measurement.characterize.benchmark import (
    KERNEL,
    Benchmark,
    Buffer,
    disassembled,
    find_disassembler,
    machine_code,
    missing,
)
from eatss.measurement.characterize.run import suite
from tests.measurement.characterize.scripted_bench import chip_of

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
    assert dict(code) == INNER


def test_a_kernel_without_a_loop_counts_as_one() -> None:
    code = machine_code(TEXT, "straight")
    assert dict(code) == {"LDC": 1, "FMUL": 2, "BRA": 1, "EXIT": 1}


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
    every = suite(chip_of(load_profile("h200")))
    one = next(one for one in every if one.name == name)
    source, cubin = tmp_path / "benchmark.cu", tmp_path / "benchmark.cubin"
    source.write_text(one.text)
    subprocess.run(
        [compiler, "-arch=sm_90", "--std=c++17", "-O3", "-cubin", "-o", str(cubin), str(source)],
        check=True,
        timeout=120,
        env=os.environ,
    )
    code = machine_code(disassembled(disassembler, cubin), KERNEL)
    assert missing(one, code) == ()
    assert sum(n for _, n in code) >= sum(one.expected.values())
