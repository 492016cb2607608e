"""Chosen sizes hit nothing, one, partial and full tiles, and stay cheap and allowed.

Which places of a kernel some sizes come to, read off its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.program import Apply, Argument, Assumption, Constant, Name, Operator, Parameter, Program
from eatss.verify.conditions import Conditions
from eatss.verify.instrumentation import instrumented_text
from eatss.verify.run import verify
from eatss.verify.sizes import WORK_LIMIT, choose_sizes, estimated_work, parse_sizes, refused_sizes
from tests.plans import kernel_code, one_launch, plan
from tests.refusals import refusing
from tests.verify.conftest import HEAD, MATMUL_C


def nest(tiles: tuple[int, ...], assumptions: tuple[Assumption, ...] = ()) -> Program:
    """Return a program of one nest of as many loops as there are tiles, over one array."""
    names = tuple(f"N{k}" for k in range(len(tiles)))
    array = Argument(
        name="A",
        role="array",
        element_type="double",
        shape=tuple(Name(name) for name in names[:2]),
        reads=True,
        writes=True,
        source="parameter",
        source_name="A",
        position=0,
    )
    found = tuple((f"i{k}", tile) for k, tile in enumerate(tiles))
    return plan(
        "f",
        parameters=tuple(
            Parameter(name=name, kind="macro", default=None, tile=tile)
            for name, tile in zip(names, tiles, strict=True)
        ),
        kernels=(kernel_code("k0", block=(32, 1, 1), arguments=("A",), tile_sizes=found),),
        entries=(one_launch("f", "k0", (array,), assumptions=assumptions),),
    )


@settings(max_examples=40, deadline=None)
@given(tiles=st.lists(st.sampled_from((0, 1, 2, 8, 16, 32, 96, 384, 1024)), min_size=1, max_size=4))
def test_chosen_sizes_are_cheap_and_hit_nothing_and_one(tiles: list[int]) -> None:
    program = nest(tuple(tiles))
    chosen = choose_sizes(program)
    names = [parameter.name for parameter in program.parameters]
    assert all(estimated_work(program, sizes) <= WORK_LIMIT for sizes in chosen)
    for name in names:
        values = {sizes[name] for sizes in chosen}
        assert {0, 1} <= values
        assert len(values) >= 4
    assert len({tuple(sizes.items()) for sizes in chosen}) == len(chosen)


@pytest.mark.parametrize("tiles", [(16, 16, 16), (16, 384, 16), (384,), (1024,), (32, 320, 32)])
def test_tiles_that_fit_are_hit_whole_in_part_and_both(tiles: tuple[int, ...]) -> None:
    program = nest(tiles)
    chosen = choose_sizes(program)
    for parameter in program.parameters:
        values = {sizes[parameter.name] for sizes in chosen}
        assert any(1 < value < parameter.tile for value in values)
        assert parameter.tile in values
        assert any(parameter.tile < value < 2 * parameter.tile for value in values)
        assert any(value > 2 * parameter.tile and value % parameter.tile for value in values)


def at_least(name: str, value: int) -> Assumption:
    condition = Apply(Operator.GE, (Name(name), Constant(value)))
    return Assumption(condition=condition, message=f"{name} is at least {value}")


@pytest.mark.parametrize(
    ("kind", "values"), [("_Bool", range(2)), ("signed char", range(-128, 128))]
)
def test_sizes_are_values_of_their_type(kind: str, values: range) -> None:
    program = nest((16, 16))
    flag = Argument(
        name="N1", role="parameter", element_type=kind, shape=(), reads=True, writes=False,
        source="parameter", source_name="N1", position=1,
    )  # fmt: skip
    entry = program.entries[0]
    program = replace(program, entries=(replace(entry, arguments=(*entry.arguments, flag)),))
    chosen = {sizes["N1"] for sizes in choose_sizes(program)}
    assert chosen <= set(values)
    assert {0, 1} <= chosen


def test_no_chosen_size_violates_an_assumption() -> None:
    ordered = Assumption(
        condition=Apply(Operator.GE, (Name("N0"), Name("N1"))), message="N0 is at least N1"
    )
    program = nest((16, 32), (at_least("N1", 3), ordered))
    chosen = choose_sizes(program)
    assert len(chosen) >= 5
    assert all(sizes["N1"] >= 3 and sizes["N0"] >= sizes["N1"] for sizes in chosen)


def test_every_assumption_that_can_fail_is_probed_with_its_code() -> None:
    small = Assumption(
        condition=Apply(
            Operator.LE,
            (Apply(Operator.MUL, (Name("N0"), Name("N1"))), Constant(2**31 - 1)),
        ),
        message="indices are 32 bits wide",
    )
    always = Assumption(condition=Constant(1), message="true")
    found = refused_sizes(nest((16, 16), (at_least("N0", 2), always, small)))
    assert [code for _, code, _ in found] == [-1, -3]
    assert found[0][2]["N0"] < 2
    assert found[1][2]["N0"] * found[1][2]["N1"] >= 2**31


def test_fixed_sizes_that_take_too_long_are_refused_with_a_hint(
    folder: Callable[..., Path],
) -> None:
    program = nest((1024, 1024, 1024, 1024))
    entry = replace(program.entries[0], arguments=())
    kernel = replace(program.kernels[0], arguments=())
    text = f"{entry.launcher} {kernel.name}"
    fixed = replace(program, parameters=(), kernels=(kernel,), entries=(entry,), text=text)
    with refusing("EATSS-V005") as caught:
        verify(folder(fixed, ""), device="cpu")
    assert "between #ifndef and #endif" in (caught.value.diagnostics[0].hint or "")


def test_sizes_are_read_from_text() -> None:
    assert parse_sizes(["N=37,M=5", "N=1"]) == ({"N": 37, "M": 5}, {"N": 1})
    assert parse_sizes([]) is None
    for text in ("N", "N=", "N=x", "=3=4"):
        with refusing("EATSS-C004"):
            parse_sizes([text])


TEXT = (
    HEAD
    + """
extern "C" __global__ void matmul_k0(double *C, const double *A)
{
    const bool wide_A = eatss_is_aligned(A) && K % 2 == 0;
    const int i0 = 16 * (int)blockIdx.x;
    const int i = i0 + (int)threadIdx.x;
    const int plain = wide_A && i0 % 2 == 0;
    for (int k0 = 0, stage = 0; k0 < K; k0 += 16, stage = stage == 1 ? 0 : stage + 1) {
        if (plain && k0 + 16 < K && k0 + 16 + 16 <= K) {
            C[stage == 0 ? 1 : 0] = 1;
        } else {
            if (k0 + 16 + 16 <= K) C[2] = 1;
            if (wide_A && k0 + 16 + 16 <= K) C[3] = 1;
        }
        if (i < M) C[4] = 1;
        if (i0 + 16 <= M && C[k0] < A[k0]) C[5] = 1;
    }
}
"""
)
PLACES = {
    "plain && k0 + 16 < K && k0 + 16 + 16 <= K": True,
    "stage == 0": False,
    "k0 + 16 + 16 <= K": True,
    "wide_A && k0 + 16 + 16 <= K": True,
    "i < M": True,
    "i0 + 16 <= M && C[k0] < A[k0]": True,
}


@pytest.mark.parametrize(
    ("sizes", "shifted", "reached"),
    [
        ({"M": 1, "N": 1, "K": 31}, (), "never never never never surely never"),
        ({"M": 1, "N": 1, "K": 32}, (), "surely never never never surely never"),
        ({"M": 1, "N": 1, "K": 48}, (), "surely surely never never surely never"),
        ({"M": 1, "N": 1, "K": 33}, (), "never never surely never surely never"),
        ({"M": 16, "N": 1, "K": 32}, ("A",), "never never surely never surely perhaps"),
        ({"M": 0, "N": 1, "K": 16}, (), "never never never never never never"),
    ],
)
def test_sizes_and_starts_of_arrays_tell_which_places_run(
    sizes: Mapping[str, int], shifted: tuple[str, ...], reached: str, matmul: Program
) -> None:
    program = replace(matmul, text=TEXT)
    branches = instrumented_text(program)[1]
    conditions = Conditions(program, branches)
    known = {one.condition: k for k, one in enumerate(branches) if one.kind != "part"}
    found = [
        conditions.reached(known[condition], way, tuple(sizes.items()), frozenset(shifted))
        for condition, way in PLACES.items()
    ]
    assert " ".join(found) == reached
    assert conditions.asks_where_arrays_start(known["stage == 0"])
    assert not conditions.asks_where_arrays_start(known["i < M"])


def test_each_of_several_conditions_counts_where_it_alone_does_not_hold(matmul: Program) -> None:
    text, branches = instrumented_text(replace(matmul, text=TEXT))
    parts = [one for one in branches if one.kind == "part"]
    assert [one.condition for one in parts] == ["plain", "k0 + 16 < K", "k0 + 16 + 16 <= K"]
    assert all(one.ways == (False,) for one in parts)
    first = branches.index(parts[0])
    assert parts[0].inside[-2:] == ((first + 1, True), (first + 2, True))
    assert f"eatss::all_hold({first}, plain, k0 + 16 < K, k0 + 16 + 16 <= K)" in text


def test_an_element_beside_its_row_is_out_of_bounds(
    matmul: Program, folder: Callable[..., Path]
) -> None:
    sizes = [{"M": 20, "N": 37, "K": 33}]
    beyond = ("k + ty < K && j < N)", "k + ty < K && (j < N || k + ty + 1 < K))")
    found = verify(folder(matmul, MATMUL_C, beyond), device="cpu", sizes=sizes)
    assert found.status == "out of bounds", found.message
    assert "reads beside a row of B" in found.message
