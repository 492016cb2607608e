"""Loops over neighbouring dimensions: which become one, and that nothing else changes."""

from __future__ import annotations

from itertools import product as every
from math import prod

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.frontend.options import FrontendOptions
from eatss.frontend.parse import parse_file
from eatss.polyhedral.collapsed_loops import has_collapsed_loops, with_collapsed_loops
from eatss.polyhedral.expression import AffineValue, preorder
from eatss.polyhedral.scop import Scop, SizeProduct
from eatss.session.session import Session
from tests.examples import examples


def source(loops: str, arguments: str) -> str:
    return f"void f({arguments}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"


def region(loops: str, arguments: str, **sizes: int) -> Scop:
    """Return the region of a function with sizes by number."""
    defines = tuple(f"{name}={value}" for name, value in sizes.items())
    text = source(loops, arguments)
    (scop,) = parse_file(text, options=FrontendOptions(defines=defines)).scops
    return scop


def loops_of(scop: Scop) -> list[tuple[str, ...]]:
    return [statement.loops for statement in scop.statements]


def nest(*names: str) -> str:
    """Return loops, ``a`` from 0 to ``NA`` and so on."""
    return "".join(f"for (int {n} = 0; {n} < N{n.upper()}; {n}++)\n" for n in names)


TWO = "double C[NA][NB][NC][ND], double A[NA][NB][NE][NF], double B[NE][NF][NC][ND]"
TWO_BODY = "C[a][b][c][d] += A[a][b][e][f] * B[e][f][c][d];"
SIZES = {"NA": 3, "NB": 4, "NC": 5, "ND": 6, "NE": 7, "NF": 8}

COLLAPSED = {
    "two indices are summed over": (nest(*"abcdef") + TWO_BODY, TWO, [("a_b", "c_d", "e_f")]),
    "three indices follow each other": (
        nest(*"abcdef") + "C[a][b][c][d] += A[a][b][c][e][f] * B[e][f][d];",
        "double C[NA][NB][NC][ND], double A[NA][NB][NC][NE][NF], double B[NE][NF][ND]",
        [("a_b_c", "d", "e_f")],
    ),
    "a sum begins and ends": (
        nest(*"abcd") + "{ C[a][b][c][d] *= 2;\n" + nest(*"ef") + TWO_BODY + "}",
        TWO,
        [("a_b", "c_d"), ("a_b", "c_d", "e_f")],
    ),
    "the outer half runs over a part": (
        nest(*"abcdef") + TWO_BODY,
        TWO.replace("C[NA]", "C[NA + 2]").replace("A[NA]", "A[NA + 1]"),
        [("a_b", "c_d", "e_f")],
    ),
}


@pytest.mark.parametrize("which", COLLAPSED)
def test_loops_side_by_side_are_one(which: str) -> None:
    body, arguments, loops = COLLAPSED[which]
    scop = region(body, arguments, **SIZES)
    after = with_collapsed_loops(scop)
    assert loops_of(after) == loops
    assert has_collapsed_loops(after)
    assert not has_collapsed_loops(scop)


PAIR = "double C[NC][ND], double A[NC][NA][NB], double B[NA][NB][ND]"
PAIR_BODY = "C[c][d] += A[c][a][b] * B[a][b][d];"

APART = {
    "one operand has an index alone": (
        nest(*"abcd") + "C[c][d] += A[c][a][b] * B[a][d];",
        "double C[NC][ND], double A[NC][NA][NB], double B[NA][ND]",
    ),
    "the inner half runs over a part": (
        nest(*"abcd") + PAIR_BODY,
        PAIR.replace("[NB]", "[NB + 1]"),
    ),
    "a neighbour is read": (
        nest(*"abcd") + "C[c][d] += A[c][a][b] * A[c][a][b + 1] * B[a][b][d];",
        PAIR.replace("A[NC][NA][NB]", "A[NC][NA][NB + 1]"),
    ),
    "a triangle": (
        "for (int a = 0; a < NA; a++) for (int b = 0; b <= a; b++)\n" + nest(*"cd") + PAIR_BODY,
        PAIR.replace("[NB]", "[NA]"),
    ),
    "a statement stands between the loops": (
        nest("a") + "{ x[a] = 0;\n" + nest(*"bcd") + PAIR_BODY + " }",
        PAIR + ", double x[NA]",
    ),
    "a counter is a value": (nest(*"abcd") + "C[c][d] += A[c][a][b] * B[a][b][d] * (a + 1);", PAIR),
    "nothing is summed": (
        nest(*"abcd") + "C[a][b][c][d] = 2 * A[a][b][c][d];",
        "double C[NA][NB][NC][ND], double A[NA][NB][NC][ND]",
    ),
    "sums are over one loop as they are": (
        nest(*"abcd") + "C[a][b][c] += A[a][b][d] * B[d][c];",
        "double C[NA][NB][NC], double A[NA][NB][ND], double B[ND][NC]",
    ),
    "a product of matrices": (
        nest(*"abc") + "C[a][b] += A[a][c] * B[c][b];",
        "double C[NA][NB], double A[NA][NC], double B[NC][NB]",
    ),
    "the array has no first extent": (
        nest(*"abcd") + "C[c][d] += A[a][b][c] * B[a][b][d];",
        "double C[NC][ND], double A[][NB][NC], double B[NA][NB][ND]",
    ),
}


@pytest.mark.parametrize("which", APART)
def test_loops_that_something_tells_apart_stay(which: str) -> None:
    body, arguments = APART[which]
    scop = region(body, arguments, **SIZES)
    assert with_collapsed_loops(scop) is scop


def test_two_nests_share_an_array_only_as_both_can() -> None:
    body = nest(*"abcd") + PAIR_BODY + nest(*"ad") + "B[a][0][d] = 0;"
    scop = region(body, PAIR, **SIZES)
    assert with_collapsed_loops(scop) is scop


def trace(scop: Scop) -> list[tuple[str, tuple[int, ...]]]:
    """Return the statements a region of numbers runs, in order, with the addresses they touch."""
    found = []
    for statement in scop.statements:
        points: list[isl.Point] = []
        statement.domain.foreach_point(points.append)
        for point in points:
            at = isl.Set.from_point(point)
            moment = numbers(statement.schedule.intersect_domain(at).range())
            addresses = tuple(
                address(scop, access.array, access.relation.intersect_domain(at).range())
                for access in statement.accesses
            )
            found.append((moment, statement.name, addresses))
    return [(name, addresses) for _, name, addresses in sorted(found)]


def numbers(single: isl.Set) -> tuple[int, ...]:
    point = single.sample_point()
    count = single.dim(isl.dim_type.set)
    return tuple(point.get_coordinate_val(isl.dim_type.set, at).to_python() for at in range(count))


def address(scop: Scop, array: str, element: isl.Set) -> int:
    """Return the place of an element in its array, row by row."""
    extent = scop.array(array).extent
    sizes = [extent.dim_max_val(at).to_python() + 1 for at in range(extent.dim(isl.dim_type.set))]
    found = 0
    for size, at in zip(sizes, numbers(element), strict=True):
        found = found * size + at
    return found


@settings(max_examples=examples(5), deadline=None)
@given(
    which=st.sampled_from(sorted(COLLAPSED)),
    lengths=st.tuples(*[st.integers(2, 3)] * 6),
)
def test_the_same_elements_are_touched_in_the_same_order(
    which: str, lengths: tuple[int, ...]
) -> None:
    body, arguments, _ = COLLAPSED[which]
    sizes = dict(zip(SIZES, lengths, strict=True))
    scop = region(body, arguments, **sizes)
    after = with_collapsed_loops(scop)
    assert after is not scop
    assert trace(after) == trace(scop)


@settings(max_examples=examples(12), deadline=None)
@given(data=st.data())
def test_any_contraction_keeps_its_order(data: st.DataObject) -> None:
    """Subscripts are any of the counters, in any order; loops as well."""
    counters = data.draw(st.permutations("abcd"))
    pair = "".join(data.draw(st.permutations("ab")))
    subscripts = {
        name: [*data.draw(st.permutations((pair, own)))] if name != "C" else ["c", "d"]
        for name, own in (("C", ""), ("A", "c"), ("B", "d"))
    }
    arrays = {name: "".join(own) for name, own in subscripts.items()}
    refs = {name: name + "".join(f"[{one}]" for one in own) for name, own in arrays.items()}
    body = nest(*counters) + f"{refs['C']} += {refs['A']} * {refs['B']};"
    arguments = ", ".join(
        f"double {name}" + "".join(f"[N{one.upper()}]" for one in own)
        for name, own in arrays.items()
    )
    lengths = {f"N{one.upper()}": data.draw(st.integers(2, 3)) for one in counters}
    scop = region(body, arguments, **lengths)
    after = with_collapsed_loops(scop)
    assert (after is not scop) == (pair in "".join(counters))
    assert trace(after) == trace(scop)


def test_a_size_that_is_no_number_gets_a_product() -> None:
    arguments = f"int NA, int NB, int NC, int ND, {PAIR}"
    (scop,) = parse_file(source(nest(*"abcd") + PAIR_BODY, arguments)).scops
    after = with_collapsed_loops(scop)
    assert after.products == (SizeProduct(name="NA_NB", factors=("NA", "NB")),)
    assert after.sizes == scop.parameters
    assert after.with_products({"NA": 3, "NB": 5})["NA_NB"] == 15
    assert after.with_products({"NA": -3, "NB": -5})["NA_NB"] == 0
    assert after.products[0].value({"NA": 3}) is None
    for values in every(range(3), repeat=4):
        sizes = dict(zip(("NA", "NB", "NC", "ND"), values, strict=True))
        fixed = after.statements[0].domain
        for name, value in after.with_products(sizes).items():
            fixed = fixed.fix_val(
                isl.dim_type.param,
                fixed.find_dim_by_name(isl.dim_type.param, name),
                isl.Val(value, fixed.get_ctx()),
            )
        assert fixed.count_val().to_python() == prod(values)


def test_values_of_sizes_and_other_counters_keep_loops_apart_no_more_than_numbers_do() -> None:
    body = nest(*"cd") + "{ C[c][d] = d;\n" + nest(*"ab") + PAIR_BODY + "C[c][d] /= NA * NB + c; }"
    (scop,) = parse_file(source(body, f"int NA, int NB, int NC, int ND, {PAIR}")).scops
    after = with_collapsed_loops(scop)
    assert loops_of(after) == [("c", "d"), ("c", "d", "a_b"), ("c", "d")]
    body = nest(*"abef") + "C[a][b] += A[a][b][e][f] * NE;"
    arrays = "double C[NA][NB], double A[NA][NB][NE][NF]"
    (scop,) = parse_file(source(body, f"int NA, int NB, int NE, int NF, {arrays}")).scops
    after = with_collapsed_loops(scop)
    assert loops_of(after) == [("a_b", "e_f")]
    values = [one for one in preorder(after.statements[0].value) if isinstance(one, AffineValue)]
    assert [one.value.get_space().dim(isl.dim_type.in_) for one in values] == [2]


def test_code_is_for_any_size_and_sizes_for_ppcg_know_the_loops_of_the_source() -> None:
    macros = "".join(f"#ifndef N{one}\n#define N{one} 24\n#endif\n" for one in "ABCD")
    text = macros + source(nest(*"abcd") + PAIR_BODY, PAIR)
    symbolic = Session(text, code=True).symbolic
    (own,) = symbolic.regions
    assert own.generic
    assert [one.name for one in own.scheduled.scop.products] == ["NA_NB"]
    assert [loop.name for loop in symbolic.program.facts[0].loops] == ["c", "d", "a_b"]
    ppcg = Session(text, cut="ppcg").analysed
    loops = (*ppcg.facts[0].loops, *ppcg.facts[0].inner_loops)
    assert {loop.name for loop in loops} == {"a", "b", "c", "d"}
