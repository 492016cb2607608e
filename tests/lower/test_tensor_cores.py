"""Products by tensor cores: right at every size, in TF32 within a bound, also of differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eatss
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.cards.profile import Tf32
from eatss.lower.instructions.products import MMAS_OF_BYTES
from eatss.lower.products import warp_instructions
from eatss.lower.recipe import CodegenOptions
from eatss.lower.variants import kernel_variants_for
from eatss.polyhedral.expression import (
    Binary,
    Cast,
    ElementType,
    Expression,
    Literal,
    Read,
    Unary,
    added_to,
)
from eatss.program import KernelCode, Program
from eatss.verify.result import Verification
from tests.lower.checking import checked
from tests.lower.test_products import computed
from tests.lower.test_stream_k import MMA

pytestmark = pytest.mark.usefixtures("analysed_once")

Generate = Callable[..., Program]
Check = Callable[..., Verification]

SMALL = CodegenOptions(
    tile_sizes=(("", (("i", 32), ("j", 32), ("k", 16))),),
    block=(("", (16, 8)),),
    instructions=("mma_f64_16x8x16",),
    stages=3,
)
SIZES = [
    {"NI": 37, "NJ": 35, "NK": 21},
    {"NI": 64, "NJ": 32, "NK": 48},
    {"NI": 33, "NJ": 70, "NK": 82},
    {"NI": 5, "NJ": 3, "NK": 1},
    {"NI": 40, "NJ": 40, "NK": 0},
]


def test_a_product_is_right_at_sizes_that_fit_and_at_others(
    generate: Generate, verify_kernel: Check
) -> None:
    program = generate("gemm", options=SMALL)
    assert verify_kernel(program, SIZES).ok
    (kernel,) = program.kernels
    assert "mma_f64_16x8x16: computes S1" in kernel.notes
    assert "C_r[ri][rj] +=" not in program.text
    assert "sum_C_r" in program.text


BROKEN = {
    "a wait that ends too early": ("wait_for_copies<1>", "wait_for_copies<2>", "shared memory"),
    "copies into boxes that are in use": ("? 2 : stage - 1", "? 2 : stage", "shared memory"),
    "what is beside the array is not zero": (
        "x1 < NK && x0 < NI);",
        "true);",
        "out of bounds",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_fault_is_seen(name: str, generate: Generate, broken: Callable[..., str]) -> None:
    program = generate("gemm", options=SMALL)
    before, after, *kinds = BROKEN[name]
    assert broken(program, before, after, SIZES) in kinds


def test_copies_run_ahead_only_where_a_card_can() -> None:
    source = data_directory("kernels") / "gemm.c"
    old, new = (eatss.codegen(source, gpu=gpu, stages=3) for gpu in ("v100", "h200"))
    assert "eatss_copy_ahead(" not in old.text
    assert "eatss_copy_ahead(" in new.text


GEMM = data_directory("kernels") / "gemm.c"
INSTRUCTIONS: dict[Tf32, str] = {"on": "mma_tf32_16x8x8", "split": "mma_3xtf32_16x8x8"}
TF32_SIZES = [{"NI": 37, "NJ": 70, "NK": 21}, {"NI": 64, "NJ": 64, "NK": 48}]
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
    found = verify_kernel(program, TF32_SIZES)
    assert (found.status, found.message) == ("ok", "")
    assert not found.bit_equal
    (bound,) = only(program).rounded_sums
    assert str(bound) in only(program).notes
    assert (bound.statements, bound.element_type) == (("S1",), "float")


def test_factors_of_eight_bits_are_beyond_the_bound(
    generate: Generate, broken: Callable[..., str]
) -> None:
    before, after = "value), 0xffffe000u)", "value), 0xffff0000u)"
    assert broken(small("on", generate), before, after, TF32_SIZES) == "wrong result"


def test_a_plan_that_says_nothing_of_rounding_does_not_pass(
    generate: Generate, verify_kernel: Check
) -> None:
    program = small("on", generate)
    silent = replace(only(program), rounded_sums=())
    found = verify_kernel(replace(program, kernels=(silent,)), FEW_STEPS)
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


def test_the_model_chooses_sizes_for_it() -> None:
    defines: dict[str, str | int] = {"DATA_TYPE": "float", "NI": 2000, "NJ": 2000, "NK": 2000}
    (kernel,) = eatss.select(GEMM, gpu="h200", target="cuda", defines=defines, tf32="on").kernels
    assert kernel.warps is not None
    assert kernel.warps.instruction == INSTRUCTIONS["on"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"gpu": "h200", "tf32": "on", "strict_fp": True}, "EATSS-K019"),
        ({"gpu": "v100", "tf32": "on"}, "EATSS-M001"),
        ({"gpu": "h200", "tf32": "yes"}, "EATSS-C004"),
        ({"gpu": "h200", "tf32": "on", "objective": "paper"}, "EATSS-C004"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, object], code: str) -> None:
    with pytest.raises(eatss.InputError) as raised:
        eatss.codegen(GEMM, defines={"DATA_TYPE": "float"}, **options)  # type: ignore[arg-type]
    assert raised.value.code == code


TYPES = [ElementType.DOUBLE, ElementType.FLOAT, ElementType.INT32, ElementType.UINT32]
TARGET = 0


def minus(value: Expression) -> Expression:
    return Binary(operator="-", left=Read(access=TARGET), right=value)


def times(*parts: Expression) -> Expression:
    first, *others = parts
    for one in others:
        first = Binary(operator="*", left=first, right=one)
    return first


def added(value: Expression, types: Sequence[ElementType]) -> Expression | None:
    return added_to(value, lambda one: one == Read(access=TARGET), lambda access: types[access])


def value_of(value: Expression, numbers: Sequence[float]) -> float:
    match value:
        case Read(access=at):
            return numbers[at]
        case Unary(operand=inner):
            return -value_of(inner, numbers)
    assert isinstance(value, Binary)
    left, right = value_of(value.left, numbers), value_of(value.right, numbers)
    return left * right if value.operator == "*" else left - right


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=5), st.booleans())
def test_what_is_added_is_what_was_subtracted_in_every_bit(
    numbers: list[float], transposed: bool
) -> None:
    reads = [Read(access=at) for at in range(1, len(numbers))]
    subtracted = times(*reads)
    if transposed:  # a * (b * c)
        subtracted = reads[-1]
        for one in reads[:-1]:
            subtracted = Binary(operator="*", left=one, right=subtracted)
    found = added(minus(subtracted), [ElementType.DOUBLE] * len(numbers))
    assert found is not None
    wanted = value_of(minus(subtracted), numbers)
    got = numbers[TARGET] + value_of(found, numbers)
    if math.isnan(wanted):
        assert math.isnan(got)
    else:
        assert (got, math.copysign(1.0, got)) == (wanted, math.copysign(1.0, wanted))


@pytest.mark.parametrize(
    ("factors", "found"),
    [
        ([Read(access=1), Read(access=1)], True),
        ([Read(access=2), Read(access=1)], True),  # an int times a float
        ([Read(access=1), Read(access=2)], False),
        ([Read(access=3)], False),  # its negation is another number
        ([Cast(element_type=ElementType.FLOAT, operand=Read(access=3))], True),
        ([Literal(text="2.0f", element_type=ElementType.FLOAT)], True),
    ],
)
def test_only_floating_point_numbers_are_negated(factors: list[Expression], found: bool) -> None:
    assert (added(minus(times(*factors)), TYPES) is not None) == found
    transposed = Binary(operator="-", left=times(*factors), right=Read(access=TARGET))
    assert added(transposed, TYPES) is None


CARD = load_profile("h200")
SCATTER = """
#ifndef NI
#define NI 1000
#endif
#ifndef NK
#define NK 1100
#endif
void scatter(double S[NI][NI], double X[NK][NI], double m[NI])
{
#pragma scop
  for (int i = 0; i < NI; i++)
    for (int j = 0; j < NI; j++)
      for (int k = 0; k < NK; k++)
        S[i][j] += VALUE;
#pragma endscop
}
"""
CENTRED = "(X[k][i] - m[i]) * (X[k][j] - m[j])"
DIFFERENCES_IN_TILES: dict[str, Any] = {
    "tiles": {"i": 32, "j": 32, "k": 16},
    "block": {"i": 16, "j": 8},
}
DIFFERENCES_SIZES = [
    {"NI": 41, "NK": 45},  # tiles that all bounds cut
    {"NI": 64, "NK": 32},
    {"NI": 5, "NK": 1},
    {"NI": 38, "NK": 0},
]


def source_of(value: str) -> str:
    return SCATTER.replace("VALUE", value)


def test_products_of_them_are_right(tmp_path: Path) -> None:
    program = checked(
        source_of(CENTRED),
        tmp_path,
        DIFFERENCES_SIZES,
        instructions=[MMA],
        stages=1,
        **DIFFERENCES_IN_TILES,
    )
    assert computed(program, MMA) == {"S0"}


def test_the_prediction_knows_the_last_turn() -> None:
    for value, whole in ((CENTRED, False), ("(X[k][i] - m[i]) * X[k][j]", True)):
        program = eatss.inspect(source_of(value), cut="eatss")
        (found,) = kernel_variants_for(program, CARD).values()
        products = [own for one in found for own in one.products]
        assert products
        assert all(own.ends_whole == whole for own in products)
