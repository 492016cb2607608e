"""Products of floats on tensor cores: only on request, within a bound, and faults are beyond it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.cards.profile import Tf32
from eatss.lower.instructions.products import MMAS_OF_BYTES
from eatss.lower.products import warp_instructions
from eatss.lower.recipe import CodegenOptions
from eatss.program import KernelCode, Program
from eatss.verify import Verification

pytestmark = pytest.mark.usefixtures("analysed_once")

Generate = Callable[..., Program]
Check = Callable[..., Verification]

GEMM = data_directory("kernels") / "gemm.c"
INSTRUCTIONS: dict[Tf32, str] = {"on": "mma_tf32_16x8x8", "split": "mma_3xtf32_16x8x8"}
SIZES = [{"NI": 37, "NJ": 70, "NK": 21}, {"NI": 64, "NJ": 64, "NK": 48}]
FEW_STEPS = [{"NI": 64, "NJ": 64, "NK": 16}]


def small(choice: Tf32, generate: Generate) -> Program:
    options = CodegenOptions(
        tile_sizes=(("", (("i", 32), ("j", 64), ("k", 16))),),
        block=(("", (16, 8)),),
        placements=(("A", "shared"), ("B", "shared")),
        instructions=(INSTRUCTIONS[choice],),
        stages=3,
    )
    return generate("gemm", dtype="float", options=options)


def only(program: Program) -> KernelCode:
    (kernel,) = program.kernels
    return kernel


@pytest.mark.parametrize("choice", INSTRUCTIONS)
def test_a_product_is_within_its_bound(
    choice: Tf32, generate: Generate, verify_kernel: Check
) -> None:
    program = small(choice, generate)
    assert f"{INSTRUCTIONS[choice]}: computes S1" in only(program).notes
    found = verify_kernel(program, SIZES)
    assert (found.status, found.message) == ("ok", "")
    assert not found.bit_equal
    (bound,) = only(program).rounded_sums
    assert str(bound) in only(program).notes
    assert (bound.statements, bound.element_type) == (("S1",), "float")


BROKEN: dict[str, tuple[Tf32, str, str, list[dict[str, int]]]] = {
    "factors of eight bits": (
        "on", "value), 0xffffe000u)", "value), 0xffff0000u)", SIZES,
    ),
    "what is left of the first factor is dropped": (
        "split", "part == 0 ? eatss_tf32_rest(a)", "part == 0 ? 0", FEW_STEPS,
    ),
    "what is left of the second factor is dropped": (
        "split", "part == 1 ? eatss_tf32_rest(b)", "part == 1 ? 0", FEW_STEPS,
    ),
    "the other half of the steps": ("on", "k % 2) + slot / 2", "1 - k % 2) + slot / 2", SIZES),
    "columns of another matrix": ("on", "4 * (lane_i % 2)", "4 * (1 - lane_i % 2)", SIZES),
}  # fmt: skip


@pytest.mark.parametrize("name", ["the other half of the steps", "columns of another matrix"])
def test_a_fault_is_beyond_the_bound(name: str, generate: Generate, broken: Check) -> None:
    choice, before, after, sizes = BROKEN[name]
    assert broken(small(choice, generate), before, after, sizes).status == "wrong result"


def test_a_plan_that_says_nothing_of_rounding_does_not_pass(
    generate: Generate, verify_kernel: Check
) -> None:
    program = small("on", generate)
    silent = replace(only(program), rounded_sums=())
    text = program.text.replace("*/", " */", 1) + "\n"  # it is verified apart from the other one
    found = verify_kernel(replace(program, kernels=(silent,), text=text), FEW_STEPS)
    assert found.status == "wrong result"


def test_only_a_request_makes_tensor_cores_multiply_floats() -> None:
    card = load_profile("h200")
    bytes_ = [one.name for one in MMAS_OF_BYTES]
    names = {
        choice: [one.name for one in warp_instructions(card, choice) if one.name not in bytes_]
        for choice in ("off", "on", "split")
    }
    assert names == {
        "off": ["mma_f64_16x8x4", "mma_f16_16x8x16"],
        "on": ["mma_f64_16x8x4", "mma_tf32_16x8x8", "mma_f16_16x8x16"],
        "split": ["mma_f64_16x8x4", "mma_3xtf32_16x8x8", "mma_f16_16x8x16"],
    }
    # FP32 units of this card are as fast as its tensor cores are with floats
    halves, *others = (one.name for one in warp_instructions(load_profile("rtx4090"), "on"))
    assert (halves, others) == ("mma_f16_16x8x16", bytes_)


@pytest.mark.parametrize("choice", ["on"])
def test_the_model_chooses_sizes_for_it(choice: Tf32) -> None:
    defines: dict[str, str | int] = {"DATA_TYPE": "float", "NI": 2000, "NJ": 2000, "NK": 2000}
    (kernel,) = eatss.select(GEMM, gpu="h200", target="cuda", defines=defines, tf32=choice).kernels
    (plain,) = eatss.select(GEMM, gpu="h200", target="cuda", defines=defines).kernels
    assert plain.warps is None
    assert kernel.warps is not None
    assert kernel.warps.instruction == INSTRUCTIONS[choice]
    assert kernel.predicted is not None
    assert plain.predicted is not None
    assert kernel.predicted.energy_j < plain.predicted.energy_j
    program = eatss.codegen(GEMM, gpu="h200", defines=defines, tf32=choice)
    assert f"{INSTRUCTIONS[choice]}: computes S1" in only(program).notes


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"gpu": "h200", "tf32": "on", "strict_fp": True}, "EATSS-K019"),
        ({"gpu": "h200", "tf32": "split", "strict_fp": True}, "EATSS-K019"),
        ({"gpu": "v100", "tf32": "on"}, "EATSS-M001"),
        ({"gpu": "h200", "tf32": "yes"}, "EATSS-C004"),
        ({"gpu": "h200", "tf32": "on", "objective": "paper"}, "EATSS-M001"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, object], code: str) -> None:
    with pytest.raises(eatss.InputError) as raised:
        eatss.codegen(GEMM, defines={"DATA_TYPE": "float"}, **options)  # type: ignore[arg-type]
    assert raised.value.code == code
