"""Recurrences in chunks: the same values, exactly, and mutants of chunks are found."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InternalError
from eatss.frontend.parse import parse_file
from eatss.plan.shares import scan_chunks
from eatss.polyhedral.chunked_scans import (
    _Chunks,
    _Ends,
    check_chunks,
    recurrences,
    with_chunked_scans,
)
from eatss.polyhedral.isl_names import IN
from eatss.polyhedral.parts import New
from eatss.polyhedral.schedule import schedule_scop
from eatss.polyhedral.scop import Access, Scop, Statement
from eatss.polyhedral.split_sets import frees_parts
from tests.examples import examples
from tests.polyhedral.executing import Element, exact_values, region_of


def region(loops: str, kind: str = "double") -> Scop:
    arguments = f"{kind} y[14], {kind} x[14], {kind} Y[6][14], {kind} X[6][14]"
    return region_of(loops, arguments, "#include <math.h>\n")


def values_of(scop: Scop) -> dict[Element, Any]:
    def first(element: Element) -> Any:
        number = hash(element) % 97 - 40
        return Fraction(number, 7) if scop.types[element[0]].is_floating else number

    return exact_values(scop, first, {})


def cut(scop: Scop, length: int, name: str = "S0") -> Scop:
    found = with_chunked_scans(scop, {name: length})
    assert found is not None
    return found


ALONG = (
    "for (int i = 1; i < {n}; i++) y[i] = {value};",
    "for (int i = {n} - 2; i >= 0; i--) y[i] = {value};",
    "for (int j = 0; j < 3; j++) for (int i = 2; i < {n}; i++) Y[j][i] = {value};",
    "for (int i = 1; i < 6; i++) for (int j = 0; j < {n}; j++) Y[i][j] = {value};",
    "for (int j = 0; j < 5; j++) for (int i = j + 1; i < {n}; i++) Y[j][i] = {value};",
    "for (int t = 0; t < 2; t++) for (int i = 1; i < {n}; i++) y[i] = {value};",
)
BEFORE = ("y[i - 1]", "y[i + 1]", "Y[j][i - 1]", "Y[i - 1][j]", "Y[j][i - 1]", "y[i - 1]")
VALUES = (
    "{before} + x[i]",
    "{before} * 2 - x[i] * i",
    "x[i] - {before} / 3",
    "{own} + {before} * x[2]",
    "{before} * x[i]",
    "-({before} + 1) * 2",
    "x[i] > {before} ? x[i] : {before}",
    "x[i] < {before} ? x[i] : {before}",
    "fmax({before}, x[i])",
    "0.5 * {before} + 0.5 * ({before} - x[i])",
)


def recurrence(way: int, n: int, value: str) -> Scop:
    own = re.sub(r" [+-] 1", "", BEFORE[way])
    text = value.format(before=BEFORE[way], own=own)
    return region(ALONG[way].format(n=n, value=text))


@given(
    st.integers(0, len(ALONG) - 1),
    st.integers(4, 14),
    st.sampled_from(VALUES),
    st.integers(2, 6),
)
@settings(max_examples=examples(12), deadline=None)
def test_chunks_leave_the_same_values(way: int, n: int, value: str, length: int) -> None:
    scop = recurrence(way, n, value)
    chunks = with_chunked_scans(scop, {"S0": length})
    assert chunks is None or values_of(chunks) == values_of(scop)
    assert chunks is not None or n < 2 * length + 2


FURTHER = (
    "2 * {1} - {2} / 3 + x[i]",
    "{2} + x[i]",  # every second element
    "x[i] * {1} - ({2} - x[2]) / 3",
    "x[i] - ({2} - 2 * {1}) * x[i] + {2}",
    "-{3} / 2 + x[i]",
    "{3} * x[i] + {1} - 2 * {2} + i",
)


@given(
    st.integers(0, len(ALONG) - 1), st.sampled_from(FURTHER), st.integers(1, 2), st.integers(2, 3)
)
@settings(max_examples=examples(8), deadline=None)
def test_elements_further_back_leave_the_same_values(
    way: int, value: str, more: int, room: int
) -> None:
    order = max(k for k in (1, 2, 3) if f"{{{k}}}" in value)
    length = (more + 1) * order
    before = [re.sub("1(?=])", str(k), BEFORE[way]) for k in range(4)]
    loops = ALONG[way].replace("{value}", value.format(*before))
    loops = re.sub(r"int (\w) = (j \+ )?[12];", rf"int \1 = \g<2>{order};", loops)
    rows = loops.replace("{n} - 2", "{n} - 1 - " + str(order)).format(n=room * length + order + 1)
    wide = rows.replace("i < 6", "i < 14").replace("j < 5", "j < 3")
    arguments = "double y[24], double x[24], double Y[24][24], double X[24][24]"
    scop = region_of(wide, arguments, "#include <math.h>\n")
    (found,) = recurrences(scop)
    assert found.order == order
    chunks = with_chunked_scans(scop, {"S0": length})
    assert chunks is not None
    assert values_of(chunks) == values_of(scop)


@given(st.integers(0, 1), st.integers(14, 40), st.sampled_from(FURTHER[:4]), st.integers(2, 4))
@settings(max_examples=examples(5), deadline=None)
def test_several_ends_run_in_chunks(way: int, n: int, value: str, length: int) -> None:
    text = value.format(*(f"y[i {'+' if way else '-'} {k}]" for k in range(3)))
    loop = f"int i = {n} - 3; i >= 0; i--" if way else f"int i = 2; i < {n}; i++"
    scop = region_of(f"for ({loop}) y[i] = {text};", "double y[40], double x[40]")
    chunks = with_chunked_scans(scop, {"S0": 4, "S0_ends": length})
    assert chunks is not None or n < 4 * length + 2
    assert chunks is None or values_of(chunks) == values_of(scop)


def test_chunks_have_whole_turns() -> None:
    scop = region("for (int i = 2; i < 14; i++) y[i] = y[i - 1] - y[i - 2] + x[i];")
    assert with_chunked_scans(scop, {"S0": 5}) is None
    assert with_chunked_scans(scop, {"S0": 4}) is not None


@pytest.mark.parametrize("value", ["y[i - 1] & x[i]", "y[i - 1] + x[i]", "y[i] ^ y[i - 1]"])
def test_integers_too(value: str) -> None:
    scop = region(f"for (int i = 1; i < 13; i++) y[i] = {value};", "int")
    assert values_of(cut(scop, 4)) == values_of(scop)


def test_ends_of_chunks_are_a_recurrence_themselves() -> None:
    scop = recurrence(0, 14, VALUES[1])
    twice = with_chunked_scans(scop, {"S0": 2, "S0_ends": 3})
    assert twice is not None
    assert len(twice.statements) == 11
    assert values_of(twice) == values_of(scop)


@pytest.mark.parametrize("rows", ["int t = 1; t < 300000; t++", "int t = 299998; t >= 0; t--"])
def test_chunks_of_ends_are_parallel_whichever_way_steps_run(rows: str) -> None:
    before = "t - 1" if "++" in rows else "t + 1"
    text = f"for ({rows}) y[t] = x[t] * y[{before}] + x[t];"
    head = "void f(double y[300000], double x[300000]) {\n#pragma scop\n"
    (scop,) = parse_file(f"{head}{text}\n#pragma endscop\n}}\n").scops
    chunks = with_chunked_scans(scop, {"S0": 64, "S0_ends": 64})
    assert chunks is not None
    kernels = schedule_scop(chunks).kernels
    (own,) = (one for one in kernels if one.statements == ("S0_ends",))
    assert [loop.name for loop in own.parallel_loops] == ["t_chunk_chunk"]


def test_chunks_are_parallel() -> None:
    scop = recurrence(0, 14, VALUES[0])
    before, after = schedule_scop(scop), schedule_scop(cut(scop, 4))
    assert not any(kernel.parallel_loops for kernel in before.kernels)
    assert frees_parts(before, after)
    assert not frees_parts(after, after)


@pytest.mark.parametrize(
    "loops",
    [
        "for (int i = 4; i < 14; i++) y[i] = y[i - 4] + x[i];",  # far back
        "for (int i = 2; i < 14; i++) y[i] = y[i - 1] * y[i - 2] + x[i];",
        "for (int i = 2; i < 14; i++) y[i] = fmax(y[i - 1], y[i - 2] + x[i]);",
        "for (int i = 1; i < 14; i++) { y[i] = y[i - 1] + x[i]; y[i - 1] = x[i]; }",
        "for (int i = 1; i < 14; i++) y[i] = y[i - 1] * y[i - 1] + x[i];",
        "for (int i = 1; i < 14; i++) y[i] = x[i] / y[i - 1];",
        "for (int i = 1; i < 14; i++) y[i] = (float)y[i - 1] + x[i];",  # rounds on the way
        "for (int i = 1; i < 14; i++) y[i] = y[i] + x[i - 1];",
        "for (int i = 1; i < 14; i++) { y[i] = y[i - 1] + x[i]; x[i] = y[i]; }",
        "for (int i = 1; i < 6; i++) for (int j = 1; j < 14; j++)"
        " Y[i][j] = Y[i - 1][j - 1] + X[i][j];",
        "for (int i = 1; i < 6; i++) for (int j = 1; j < 14; j++)"
        " Y[i][j] = Y[i][j - 1] + Y[i - 1][j];",
        "for (int i = 1; i < 6; i++) for (int j = i % 2; j < 14; j++)"
        " Y[i][j] = Y[i][j - 1] + X[i][j];",  # rows that begin anywhere
        "for (int i = 0; i < 13; i++) y[i] = y[i + 1] + x[i];",  # nothing runs before
    ],
)
def test_others_are_none(loops: str) -> None:
    scop = region(loops)
    assert not list(recurrences(scop))
    assert with_chunked_scans(scop, {"S0": 4}) is None


@pytest.mark.parametrize(
    ("steps", "threads", "lengths"),
    [
        (10**7, 1, (256, 256)),
        (4096, 4096, (64,)),
        (4096, 200_000, ()),  # rows keep the card busy
        (60, 1, ()),
    ],
)
def test_chunks_keep_a_card_busy(steps: int, threads: int, lengths: tuple[int, ...]) -> None:
    assert scan_chunks(steps, threads, 132 * 2048) == lengths


@pytest.mark.parametrize(("order", "length"), [(2, 256), (3, 384)])
def test_chunks_of_a_higher_order_have_whole_turns(order: int, length: int) -> None:
    assert scan_chunks(10**7, 1, 132 * 2048, order) == (length, 256)


# Mutants ------------------------------------------------------------------------------------


def _end_after(chunks: _Chunks, steps: int) -> None:
    own, loop = chunks.old, chunks.found.loop
    chunks.parts[own.name] = chunks.map(own, own.name, loop, f"0 <= {loop} < {steps}")


def _lose_a_step(chunks: _Chunks) -> None:
    _end_after(chunks, chunks.length - chunks.order - 1)


def _run_a_step_twice(chunks: _Chunks) -> None:
    _end_after(chunks, chunks.length - chunks.order + 1)


def _lose_an_end(chunks: _Chunks) -> None:
    ends = chunks.parts[chunks.ends[0]]
    zero = isl.Val.zero(ends.get_ctx())
    chunks.parts[chunks.ends[0]] = ends.subtract(ends.fix_val(IN, 0, zero))


def _begin_late(chunks: _Chunks) -> None:
    known = chunks.to_step
    setattr(chunks, "to_step", lambda name, step: known(name, step + 1))  # noqa: B010


def _change_all(chunks: _Chunks, step: str, within: str) -> None:
    loop, turns = chunks.found.loop, chunks.length // chunks.order
    for number, (_, name) in enumerate(chunks.names):
        known, at = chunks.parts[name], number % chunks.order
        turn = step.format(f"{chunks.order} * {loop} + {at}")
        changed = chunks.map(chunks.old, name, turn, within.format(loop, turns))
        chunks.parts[name] = changed.intersect_domain(known.domain())


def _leave_the_last_step_out(chunks: _Chunks) -> None:
    _change_all(chunks, "{}", "0 <= {} < {} - 1")


def _leave_the_first_step_out(chunks: _Chunks) -> None:
    _change_all(chunks, "{}", "1 <= {} < {}")


def _take_the_next_chunk(chunks: _Chunks) -> None:
    _change_all(chunks, f"{chunks.length} + {{}}", "0 <= {} < {}")


def _put_ends_in_another_order(chunks: _Chunks) -> None:
    known, last = chunks._end, chunks.order - 1
    setattr(chunks, "_end", lambda end, at: known(end, last - at))  # noqa: B010


def _take_steps_in_another_order(chunks: _Chunks) -> None:
    for by in range(0, len(chunks.names), chunks.order):
        one, *_, other = (name for _, name in chunks.names[by : by + chunks.order])
        parts = chunks.parts[one].set_tuple_name(IN, other), chunks.parts[other]
        chunks.parts[other], chunks.parts[one] = parts[0], parts[1].set_tuple_name(IN, one)


def _take_what_is_before_twice(chunks: _Chunks) -> None:
    known = chunks.before
    setattr(chunks, "before", lambda end: [known(end)[0]] * chunks.order)  # noqa: B010


WRONG = (
    _lose_a_step,
    _run_a_step_twice,
    _lose_an_end,
    _begin_late,
    _leave_the_last_step_out,
    _leave_the_first_step_out,
    _take_the_next_chunk,
)


WRONG_OF_TWO = (
    _put_ends_in_another_order,
    _take_steps_in_another_order,
    _take_what_is_before_twice,
)


@pytest.mark.parametrize(
    ("wrong", "value"),
    [
        *product(WRONG, (VALUES[0], VALUES[1], FURTHER[0])),
        *product(WRONG_OF_TWO, FURTHER[:2]),
    ],
)
def test_wrong_chunks_are_found(wrong: Callable[[_Chunks], None], value: str) -> None:
    if value in FURTHER:
        text = value.format("", "y[i - 1]", "y[i - 2]")
        scop = region(f"for (int i = 2; i < 14; i++) y[i] = {text};")
    else:
        scop = recurrence(0, 14, value)
    (found,) = recurrences(scop)
    chunks = _Chunks(scop, found, 4)
    check_chunks(scop, chunks.region(), chunks)
    wrong(chunks)
    with pytest.raises(InternalError, match="EATSS-P901"):
        check_chunks(scop, chunks.region(), chunks)


def _lose_ends(ends: _Ends) -> None:
    own = ends.every[0]
    ends.parts[own.name] = ends.map(own, own.name, ends.loop, f"0 <= {ends.loop} < 1")


def _begin_with_the_next(ends: _Ends) -> None:
    def begin(own: Statement, name: str) -> isl.Map:
        found = ends.map(own, name, "1", ends.within if name == own.name else "")
        return found.intersect_domain(ends.parts[name].domain())

    setattr(ends, "begin", begin)  # noqa: B010


def _use_ends_of_the_one_before(ends: _Ends) -> None:
    def element(number: int, new: New) -> Access:
        inside = known(number, new).text
        if new.maps.get_tuple_name(IN) not in ends.parts or "+ 1" not in inside:
            return known(number, new)
        return ends.known(number, new)

    known = ends.element
    setattr(ends, "element", element)  # noqa: B010


def _add_the_same_ends_again(ends: _Ends) -> None:
    setattr(ends, "known", ends.element)  # noqa: B010


@pytest.mark.parametrize(
    "wrong",
    [
        _lose_ends,
        _begin_with_the_next,
        _use_ends_of_the_one_before,
        _add_the_same_ends_again,
    ],
)
def test_wrong_chunks_of_ends_are_found(wrong: Callable[[_Ends], None]) -> None:
    text = FURTHER[0].format("", "y[i - 1]", "y[i - 2]")
    whole = region_of(f"for (int i = 2; i < 31; i++) y[i] = {text};", "double y[40], double x[40]")
    (found,) = recurrences(whole)
    chunks = _Chunks(whole, found, 4)
    scop = chunks.region()
    ends = _Ends(scop, chunks, 3)
    check_chunks(scop, ends.region(), ends)
    wrong(ends)
    with pytest.raises(InternalError, match="EATSS-P901"):
        check_chunks(scop, ends.region(), ends)


@pytest.mark.parametrize("late", [0, 1, 2, 3])
def test_statements_at_another_place_are_found(late: int) -> None:
    """What a chunk comes to is needed by ends, which the steps inside need."""
    scop = recurrence(0, 14, VALUES[0])
    (found,) = recurrences(scop)
    chunks = _Chunks(scop, found, 4)
    wrong = chunks.region()
    moved = list(wrong.statements)
    own = moved[late]
    place = -1 if late == 3 else 99
    time = own.schedule.eliminate(isl.dim_type.out, 0, 1).fix_val(
        isl.dim_type.out, 0, isl.Val(place, own.schedule.get_ctx())
    )
    moved[late] = replace(own, schedule=time)
    with pytest.raises(InternalError, match="EATSS-P901"):
        check_chunks(scop, replace(wrong, statements=tuple(moved)), chunks)


def test_rows_that_begin_apart_have_chunks_of_their_own() -> None:
    (found,) = recurrences(recurrence(4, 14, VALUES[0]))
    assert dict(found.start.parameters) == {"j": 1}
    assert found.start.constant == 1
