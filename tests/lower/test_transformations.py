"""Transformations keep what a kernel computes, and what breaks a kernel is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from eatss.base.diagnostics import InputError
from eatss.lower.kernel.nodes import Kernel, Let
from eatss.lower.recipe import CodegenOptions
from eatss.lower.transform import TRANSFORMATIONS
from eatss.program import Name, Program
from eatss.verify import Verification

Generate = Callable[..., Program]
Verify = Callable[..., Verification]

SIZES = {"NI": 70, "NJ": 37, "NK": 45}


@pytest.mark.long
def test_swizzled_boxes_need_no_padding(generate: Generate, verify_kernel: Verify) -> None:
    padded = generate("gemm", options=CodegenOptions(placements=(("A", "shared"),)))
    program = generate(
        "gemm",
        options=CodegenOptions(placements=(("A", "shared"),), transformations=("swizzle",)),
    )
    assert " ^ " in program.text
    assert program.kernels[0].shared_bytes < padded.kernels[0].shared_bytes
    found = verify_kernel(program, [SIZES])
    assert found.ok, found.message


@pytest.mark.samples(1)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_an_instruction_takes_the_place_of_what_it_computes(
    dtype: str, generate: Generate, verify_kernel: Verify
) -> None:
    options = CodegenOptions(instructions=("fma",))
    program = generate("gemm", dtype=dtype, options=options)
    assert "C_r[ri][rj] = eatss_fma((alpha * " in program.text.replace("rk", "ri")
    assert "C_r[ri][rj] +=" not in program.text
    assert "// fma: computes S1\n" in program.text
    found = verify_kernel(program, [SIZES])
    assert found.ok, found.message


def test_an_instruction_that_fits_nowhere_changes_nothing(generate: Generate) -> None:
    options = CodegenOptions(instructions=("shuffle_down_add",))
    program, plain = generate("gemm", options=options), generate("gemm")
    note = "// shuffle_down_add: fits no statement\n"
    assert note in program.text
    assert program.text.replace(note, "") == plain.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (CodegenOptions(transformations=("swizle",)), "no transformation 'swizle'"),
        (CodegenOptions(instructions=("fms",)), "no instruction 'fms'"),
    ],
)
def test_unknown_names_are_refused(options: CodegenOptions, said: str, generate: Generate) -> None:
    with pytest.raises(InputError, match=said) as raised:
        generate("gemm", options=options)
    assert raised.value.code == "EATSS-X005"


@pytest.fixture
def breaks() -> Iterator[str]:
    def changed(kernel: Kernel) -> Kernel:
        return replace(kernel, body=(Let(name="x", value=Name("nowhere")), *kernel.body))

    TRANSFORMATIONS.register("breaks", changed)
    yield "breaks"
    TRANSFORMATIONS.remove("breaks")


def test_what_breaks_a_kernel_is_found(breaks: str, generate: Generate) -> None:
    with pytest.raises(
        InputError, match="of this program fails on kernel_gemm_k0: nothing is"
    ) as e:
        generate("gemm", options=CodegenOptions(transformations=(breaks,)))
    assert e.value.code == "EATSS-X006"
