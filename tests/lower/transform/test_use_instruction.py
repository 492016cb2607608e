"""Where an instruction takes the place of a statement, and where it must not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.lower.instructions import INSTRUCTIONS
from eatss.lower.kernel.instruction import Instruction, Operand

C = """
#define N 64
void f(float D[N], float A[N], float B[N], float C[N])
{{
#pragma scop
    for (int i = 0; i < N; i++)
        {statement}
#pragma endscop
}}
"""

Offer = Callable[..., str]


@pytest.fixture
def offer() -> Iterator[Offer]:
    """Return what registers an instruction of single values and tells its name."""
    names = []

    def put(operands: str, value: str, **more: Any) -> str:
        written = Operand(name="d", role=more.pop("role", "inout"))
        own = Instruction(
            name="own",
            what="own",
            operands=(written, *(Operand(name=name) for name in operands)),
            target="d",
            value=value,
            cuda=f"own({{d}}, {', '.join(f'{{{name}}}' for name in operands)});",
            **more,
        )
        INSTRUCTIONS.register("own", own)
        names.append("own")
        return "own"

    yield put
    for name in names:
        INSTRUCTIONS.remove(name)


def text(statement: str, *instructions: str, **more: Any) -> str:
    program = eatss.codegen(
        C.format(statement=statement), gpu="h200", instructions=instructions, **more
    )
    return program.text.partition("__global__")[2].partition("#ifndef")[0]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("D[i] = A[i] * B[i] + C[i];", "own(D[i], A[i], B[i], C[i]);"),
        ("D[i] = C[i] + A[i] * (B[i] - 1.0f);", "own(D[i], A[i], (B[i] - 1.0f), C[i]);"),
        ("D[i] = A[i] - B[i];", None),
        ("D[i] = A[i] * B[i] + (float) (int) C[i];", "own(D[i], A[i], B[i], ((float)(int)C[i]));"),
        ("D[i] = A[i] * B[i] + D[i];", None),  # what is written may not be an operand too
    ],
)
def test_the_value_decides(statement: str, said: str | None, offer: Offer) -> None:
    found = text(statement, offer("abc", "a * b + c", role="out"))
    assert ("own(" in found) == (said is not None)
    assert said is None or said in found


@pytest.mark.parametrize(
    ("statement", "fits"),
    [("D[i] = A[i] * B[i] + D[i];", True), ("D[i] = A[i] * B[i] + C[i];", False)],
)
def test_a_target_in_the_value_is_what_is_written(statement: str, fits: bool, offer: Offer) -> None:
    found = text(statement, offer("ab", "a * b + d"))
    assert ("own(D[i], A[i], B[i]);" in found) == fits


def test_what_reads_the_target_is_left_alone(offer: Offer) -> None:
    assert "own(" not in text("D[i] += D[i] * B[i];", offer("ab", "a * b", adds=True))


def test_atomic_and_collective_instructions_are_placed_and_do_not_fit() -> None:
    assert "eatss_atomic_add" not in text("D[i] += A[i];", "atomic_add")
    assert "eatss_shuffle_down" not in text("D[i] += A[i];", "shuffle_down_add")


def test_numbers_are_those_of_c(offer: Offer) -> None:
    name = offer("a", "a * 8")
    assert "own(" in text("D[i] = A[i] * 8.0f;", name)
    assert "own(" not in text("D[i] = A[i] * 9.0f;", name)


def test_rounding_is_kept_where_it_is_asked_for(offer: Offer) -> None:
    with pytest.raises(InputError, match="fma may round otherwise") as raised:
        text("D[i] += A[i] * B[i];", "fma", strict_fp=True)
    assert raised.value.code == "EATSS-K019"
    assert "fma" not in text("D[i] = A[i];", "fma", strict_fp=True)  # it fits nowhere
    name = offer("ab", "a * b", adds=True, exact=True)
    assert "own(" in text("D[i] += A[i] * B[i];", name, strict_fp=True)


def test_definitions_that_instructions_share_stand_once(offer: Offer) -> None:
    own = offer("ab", "a - b", definitions=INSTRUCTIONS.get("fma").definitions)
    program = eatss.codegen(
        C.format(statement="{ D[i] += A[i] * B[i]; C[i] = A[i] - B[i]; }"),
        gpu="h200",
        instructions=("fma", own),
    )
    assert program.text.count("float eatss_fma(float a, float b, float c)") == 2  # GPU and CPU


@pytest.mark.parametrize("given", ["fma", [3]])
def test_names_come_in_a_list(given: Any) -> None:
    with pytest.raises(InputError) as raised:
        eatss.codegen(C.format(statement="D[i] = 0;"), gpu="h200", instructions=given)
    assert raised.value.code == "EATSS-C004"


def test_a_text_with_an_unknown_operand_is_refused() -> None:
    with pytest.raises(ValueError, match="its text has 'x'"):
        Instruction(
            name="own", what="own", operands=(Operand(name="d", role="out"), Operand(name="a")),
            target="d", value="a", cuda="{d} = {x};",
        )  # fmt: skip
