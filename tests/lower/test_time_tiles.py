"""Several steps of time in registers: the same as the loop, and what would not be is found."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import eatss
from eatss.analysis.layout import TimeTile
from eatss.base.diagnostics import InternalError
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.choose.selection import Selection
from eatss.frontend.options import Reading
from eatss.lower import time_tile_builder
from eatss.lower.kernel.nodes import Compute, If, Kernel, Nodes
from eatss.lower.kernel.uses import mapped_of
from eatss.lower.pieces import own_pieces
from eatss.lower.recipe import CodeRequest
from eatss.lower.time_tile_checks import tile_faults
from eatss.lower.time_tiles import chains_of
from eatss.lower.transform.chain import synchronised
from eatss.plan.time_tiles import Source, TimeTilePlan, shuffles_of, time_tile_plan
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.time_chains import TimeChain, time_chains
from eatss.program import Program
from eatss.session.session import Session
from eatss.verify.run import verify
from tests.examples import examples
from tests.lower.checking import FOUND, broken, is_kept_by_its_recipe, right

H200 = load_profile("h200")


def loop(body: str, arrays: str, first: int = 0) -> str:
    return (
        f"void f(int n, int steps, {arrays})\n{{\n#pragma scop\n"
        f"for (int t = {first}; t < steps; t++) {{\n{body}\n}}\n#pragma endscop\n}}\n"
    )


def nest(counters: str, statement: str, low: int = 1, high: int = 1) -> str:
    loops = (f"for (int {c} = {low}; {c} < n - {high}; {c}++)" for c in counters)
    return f"{' '.join(loops)} {statement}"


def cells(statement: str) -> str:
    return nest("ij", f"for (int k = 1; k < m - 1; k++) {statement}")


PLANES = loop(
    nest(
        "ij",
        "A[(t + 1) % 2][i][j] = (A[t % 2][i - 1][j] + 2 * A[t % 2][i][j - 1] + 15 * A[t % 2][i][j]"
        " + 12 * A[t % 2][i][j + 1] + 5 * A[t % 2][i + 1][j]) / 118;",
    ),
    "float A[2][n][n]",
)
WAVE = loop(
    nest(
        "ij",
        "u[(t + 1) % 3][i][j] = 2 * u[t % 3][i][j] - u[(t + 2) % 3][i][j] + c[i][j]"
        " * (u[t % 3][i - 2][j] + u[t % 3][i + 1][j] + u[t % 3][i][j - 1] - u[t % 3][i][j + 2]);",
        2,
        2,
    ),
    "double u[3][n][n], double c[n][n]",
    first=1,
)
FIELDS = loop(
    "for (int j = 0; j < n; j++) e[0][j] = s[t];\n"
    "for (int i = 1; i < n; i++) for (int j = 0; j < n; j++) e[i][j] -= h[i][j] - h[i - 1][j];\n"
    "for (int i = 0; i < n; i++) for (int j = 1; j < n; j++) x[i][j] -= h[i][j] - h[i][j - 1];\n"
    "for (int i = 0; i < n - 1; i++) for (int j = 0; j < n - 1; j++)\n"
    "    h[i][j] -= 0.7 * (x[i][j + 1] - x[i][j] + e[i + 1][j] - e[i][j]);",
    "double e[n][n], double x[n][n], double h[n][n], double s[steps]",
)
CUBE = loop(
    cells("b[i][j][k] = 0.1 * (a[i - 1][j][k] + a[i + 1][j][k] + a[i][j - 1][k]"
          " + a[i][j + 1][k] + a[i][j][k - 1] + a[i][j][k + 1]) + a[i][j][k];")
    + cells("a[i][j][k] = 0.2 * (b[i - 1][j][k] + b[i + 1][j + 1][k - 1]"
            " + b[i][j - 1][k + 1]) + b[i][j][k];"),
    "int m, double a[n][n][m], double b[n][n][m]",
)  # fmt: skip
ODD = (
    "void f(int steps, float A[2][301][301])\n{\n#pragma scop\nfor (int t = 0; t < steps; t++)\n"
    "for (int i = 1; i < 300; i++) for (int j = 1; j < 300; j++)\n    A[(t + 1) % 2][i][j] = 0.2f *"
    " (A[t % 2][i - 1][j] + A[t % 2][i + 1][j] + A[t % 2][i][j - 1] + A[t % 2][i][j + 1]);\n"
    "#pragma endscop\n}\n"
)
SMALLER = loop(
    "for (int i = 0; i < n - 1; i++) e[i][0] = s[t] + h[i][0];\n"
    "for (int i = 0; i < n - 1; i++) e[i][1] = s[t] + h[i][1];\n"
    "for (int i = 1; i < n - 1; i++) for (int j = 6; j < n; j++)\n"
    "    g[i][j] = 0.25 * (h[i - 1][j] + h[i + 1][j] + h[i][j - 1]) + e[i][j - 6];\n"
    "for (int i = 1; i < n - 1; i++) for (int j = 6; j < n; j++) h[i][j] = g[i][j];",
    "double e[n - 1][n - 6], double g[n][n], double h[n][n], double s[steps]",
)
FRESH = loop(
    nest("ij", "b[i][j] = c[i][j] * s[t];", 0, 0)
    + nest(
        "ij",
        "a[(t + 1) % 2][i][j] = 0.4 * (a[t % 2][i - 1][j] + a[t % 2][i + 1][j])"
        " + b[i - 1][j - 4] + b[i + 1][j + 3];",
        4,
        4,
    ),
    "double a[2][n][n], double b[n][n], double c[n][n], double s[steps]",
)
TILES: Mapping[str, tuple[str, dict[str, int]]] = {
    "planes in turns, and quotients": (
        PLANES, {"depth": 4, "columns": 4, "length": 8, "prefetch": 3},
    ),
    "three planes, and another array": (WAVE, {"depth": 3, "columns": 2, "length": 16}),
    "fields in place": (FIELDS, {"depth": 3, "columns": 1, "length": 8, "prefetch": 2}),
    "what comes of other arrays": (FRESH, {"depth": 2, "columns": 2, "length": 8}),
    "rows of an odd number": (ODD, {"depth": 4, "columns": 4, "length": 16}),
    "a smaller array of which edges are written": (
        SMALLER, {"depth": 1, "columns": 1, "length": 8},
    ),
    "warps that share lines": (
        CUBE, {"depth": 1, "columns": 1, "length": 4, "rows": 2, "warps": 4, "prefetch": 2},
    ),
}  # fmt: skip


def with_whole_tiles(text: str, tile: Mapping[str, int]) -> dict[str, int]:
    """Return sizes of which some tiles are in the middle, a multiple of vectors or not."""
    columns, steps = 68 * tile["columns"], {"steps": 2 * tile["depth"] + 1}
    if text is ODD:
        return steps
    if text is SMALLER:  # tiles end where rows do
        return steps | {"n": 156}
    return steps | ({"n": 28, "m": columns} if text is CUBE else {"n": columns})


@cache
def apart(text: str) -> tuple[Session, Selection]:
    session = Session(text, code=True)
    return session, session.select(H200, SelectOptions(target="cuda"), fuse_rows=False)


def tiled(text: str, tile: Mapping[str, int], folder: Path | None = None) -> Program:
    """Generate a program whose steps are tiled so, into a folder where one is given."""
    session, selection = apart(text)
    names = tuple(kernel.name for kernel in selection.kernels)
    first, *others = selection.kernels
    first = replace(first, time_tile=TimeTile(kernels=names, **tile))
    recipe = session.recipe(replace(selection, kernels=(first, *others)), H200, CodeRequest())
    program = session.generate(recipe, H200)
    if folder is not None:
        session.write(program, folder)
    return program


@pytest.mark.parametrize("what", TILES)
def test_tiles_equal_the_loop_in_every_bit(what: str, tmp_path: Path) -> None:
    text, tile = TILES[what]
    program = tiled(text, tile, tmp_path / "out")
    both = [one for one in program.kernels if any("time tile: " in note for note in one.notes)]
    assert len(both) == 2
    assert all(one.bit_exact for one in both)
    twice = 2 * tile["depth"]
    small = [{"n": 21, "steps": 2 * twice + 2}, {"n": 5, "steps": twice}, {"n": 3, "steps": 1}]
    whole = with_whole_tiles(text, tile)
    odd = {name: size + (name != "steps") for name, size in whole.items()}
    sizes = [*([] if text is SMALLER else small), whole, odd]
    names = {one.name for one in program.parameters}
    own = [{name: n for name, n in ({"m": 33} | one).items() if name in names} for one in sizes]
    right(verify(tmp_path / "out", device="cpu", sizes=own))


@pytest.mark.parametrize("what", TILES)
def test_the_plan_has_the_shuffles_of_the_code(what: str) -> None:
    text, tile = TILES[what]
    _, chain, plan = planned(text, tile["depth"])
    rows, columns = tile.get("rows", 1), tile["columns"]
    each = sum(shuffles_of(one, chain.dims, rows, columns) for one in plan.levels)
    made = tiled(text, tile).text.partition("#ifdef EATSS_MAIN")[0]
    # with tests, without, and by divisions
    often = 1 + (text != SMALLER) + ("eatss_quotient" in made)
    both = 2  # there and back
    assert len(re.findall(r" = eatss_of_lane\(", made)) == often * both * each


@st.composite
def chains(draw: st.DrawFn) -> tuple[str, dict[str, int], int]:
    """Draw a loop over time, a tile of it, and after how many steps its planes come back."""
    dims = draw(st.sampled_from([1, 2, 2, 3]))
    counters, period = "ijk"[:dims], draw(st.sampled_from([1, 2, 3]))
    kind = draw(st.sampled_from(["float", "double"]))
    around = [one for one in product((-1, 0, 1), repeat=dims) if one != (0,) * dims]

    def at(name: str, offset: tuple[int, ...], turn: int) -> str:
        plane = f"[(t + {turn}) % {period}]" if period > 1 else ""
        places = (f"[{c} + {o}]" for c, o in zip(counters, offset, strict=True))
        return f"{name}{plane}{''.join(places)}"

    def value(name: str, turn: int) -> str:
        near = [one for one in around if sum(map(abs, one)) == 1]
        more = draw(st.lists(st.sampled_from(around), max_size=3, unique=True))
        terms = [f"0.1f * {at(name, one, turn)}" for one in [*near, *more]]
        old = draw(st.sampled_from(range(period - 1))) if period > 1 else 0
        if draw(st.booleans()):
            terms.append(f"c{''.join(f'[{c}]' for c in counters)} * {at(name, (0,) * dims, old)}")
        return " + ".join(terms)

    margins = [draw(st.integers(1, 3)) for _ in range(2)]
    if period > 1:
        names, target = "a", at("a", (0,) * dims, period - 1)
        body = nest(counters, f"{target} = {value('a', period - 2)};", *margins)
    else:
        names, here = "ab", "".join(f"[{c}]" for c in counters)
        back = draw(st.sampled_from([f"b{here}", f"{value('b', 0)} + a{here}"]))
        body = nest(counters, f"b{here} = {value('a', 0)};", *margins)
        body += nest(counters, f"a{here} = {back};", *margins)
    planes = f"[{period}]" if period > 1 else ""
    arrays = ", ".join(f"{kind} {name}{planes}{'[n]' * dims}" for name in names)
    arrays += f", {kind} c{'[n]' * dims}"
    tile = {
        "depth": period * draw(st.integers(1, 3 if dims < 3 else 1)),
        "columns": draw(st.sampled_from([1, 2, 4])),
        "length": draw(st.sampled_from([3, 8])) if dims > 1 else 1,
    }
    if dims > 2:
        tile |= {"rows": draw(st.integers(1, 3)), "warps": 8}
    return loop(body, arrays), tile, dims


@settings(
    max_examples=examples(3), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(drawn=chains())
def test_random_chains_equal_the_original(
    drawn: tuple[str, dict[str, int], int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text, tile, dims = drawn
    folder = tmp_path_factory.mktemp("chain") / "out"
    scheduled, _, plan = planned(text, tile["depth"])
    assume([*chains_of(scheduled, own_pieces(scheduled)[0])])  # else cells run one by one
    tile["prefetch"] = plan.prefetches[-1]
    tiled(text, tile, folder)
    small, whole = (14, 64) if dims > 2 else (30, 72 * tile["columns"] + 1)
    sizes = [{"n": n, "steps": 2 * tile["depth"] + 1} for n in (small, whole)]
    right(verify(folder, device="cpu", sizes=sizes[: 1 if dims > 2 and tile["columns"] > 1 else 2]))


# -- what would be wrong is found ----------------------------------------------------------------


def planned(text: str, depth: int) -> tuple[ScheduledScop, TimeChain, TimeTilePlan]:
    session, _ = apart(text)
    (region,) = session.symbolic.regions
    scheduled = region.scheduled
    (chain,) = time_chains(scheduled.scop, scheduled.dependences)
    return scheduled, chain, time_tile_plan(chain, depth)


def faults(text: str, depth: int, change: Callable[[TimeTilePlan], TimeTilePlan]) -> list[str]:
    scheduled, chain, plan = planned(text, depth)
    plan = change(plan)
    tile = TimeTile(kernels=(), depth=depth, columns=1, length=16, rows=4, warps=4)
    return [*tile_faults(chain, plan, tile, scheduled.scop, scheduled.dependences)]


Change: TypeAlias = Callable[[Any], Any]


def part(parts: str, number: int, **changed: Change) -> Callable[[TimeTilePlan], TimeTilePlan]:
    """Return what changes fields of one of the versions or levels of a plan."""

    def change(plan: TimeTilePlan) -> TimeTilePlan:
        own = list(getattr(plan, parts))
        new = {name: how(getattr(own[number], name)) for name, how in changed.items()}
        own[number] = replace(own[number], **new)
        return replace(plan, **{parts: tuple(own)})

    return change


version, level = partial(part, "versions"), partial(part, "levels")


def less(pairs: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    return tuple((front - 1, back) for front, back in pairs)


def one_less(number: int) -> int:
    return number - 1


def older(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """Return sources of which the first is what the field was an update before."""
    return (replace(sources[0], version=sources[0].version - 1), *sources[1:])


WRONG: Mapping[str, tuple[str, int, Callable[[TimeTilePlan], TimeTilePlan], str]] = {
    "a halo too small": (PLANES, 4, version(0, halo=less), "does not know"),
    "a slot too few": (PLANES, 4, version(1, slots=one_less), "too late"),
    "a row too early": (PLANES, 4, version(2, lag=one_less), "too late"),
    "an edge kept too short": (CUBE, 1, version(1, shared_slots=lambda _: 1), "too late"),
    "operands of another step": (PLANES, 4, level(2, sources=older), "other operands"),
    "a step of another plane": (PLANES, 4, level(1, step=lambda _: 2), "other operands"),
    "stored twice": (
        PLANES, 4, lambda plan: replace(plan, stored=(*plan.stored, plan.left[0])), "hand on",
    ),
    "not stored at last": (PLANES, 4, lambda plan: replace(plan, left=()), "hand on"),
    "stored before the last update": (
        PLANES, 4, lambda plan: replace(plan, stored=(2,)), "hand on",
    ),
    "edges of a field from memory": (
        FIELDS, 2, level(1, before=lambda _: None), "where steps write it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_plan_is_found(what: str) -> None:
    text, depth, change, words = WRONG[what]
    assert not faults(text, depth, lambda plan: plan)
    assert any(words in one for one in faults(text, depth, change))


BROKEN = {
    "a tile at an edge that is taken for a whole one": (
        "column_from + 127 + 2 <= n",
        "column_from + 28 <= n",
    ),
    "what is not exact is not computed again": ("if (exact_in_all == 0)", "if (n == 1)"),
    "a whole tile's row a slot off": (
        "A_3[turn % 3][0] = value_3[0];",
        "A_3[(turn + 1) % 3][0] = value_3[0];",
    ),
    "a lane too far": ("[3], -1)", "[3], -2)"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_verification_finds_a_broken_tile(what: str, tmp_path: Path) -> None:
    _, tile = TILES["planes in turns, and quotients"]
    program = tiled(PLANES, tile, tmp_path / "out")
    sizes = None if "exact" in what else [{"n": 269, "steps": 17}]
    assert broken(program, tmp_path / "out", *BROKEN[what], sizes) in FOUND


def without_the_last(nodes: Nodes) -> Nodes:
    return nodes[:-1]


def still_flagged(nodes: Nodes) -> Nodes:
    return mapped_of(nodes, Compute, lambda one: replace(one, flag="exact"))


def stored_elsewhere(nodes: Nodes) -> Nodes:
    *first, last = nodes
    assert isinstance(last, If)
    return (*first, replace(last, body=last.body[:-1]))


@pytest.mark.parametrize(
    ("way", "fault"),
    [
        (without_the_last, "is not computed again"),
        (stored_elsewhere, "is not computed again"),
        (still_flagged, "cleared behind the vote"),
    ],
)
def test_a_vote_that_changes_nothing_is_a_fault_of_ours(
    way: Callable[[Nodes], Nodes], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(kernel: Kernel, sizes: Collection[str]) -> Kernel:
        return synchronised(replace(kernel, body=way(kernel.body)), sizes)

    monkeypatch.setattr(time_tile_builder, "synchronised", changed)
    with pytest.raises(InternalError, match=fault):
        tiled(*TILES["planes in turns, and quotients"])


# -- what is no chain, and what is chosen --------------------------------------------------------

NO_CHAINS = {
    "cells of one step need one another": loop(
        nest("ij", "a[i][j] = a[i - 1][j] + a[i][j + 1];"), "double a[n][n]"
    ),
    "a cell on the other side": loop(
        nest("i", "b[i] = a[n - 1 - i];") + nest("i", "a[i] = b[i];"), "double a[n], double b[n]"
    ),
    "whole numbers": loop(
        nest("i", "b[i] = a[i - 1] + a[i + 1];") + nest("i", "a[i] = b[i];"), "int a[n], int b[n]"
    ),
    "planes that sizes choose": loop(
        nest("ij", "a[(t + n + 1) % 2][i][j] = a[(t + n) % 2][i - 1][j + 1];"),
        "double a[2][n][n]",
    ),
    "a step that is left out": loop(
        "if (t != 6) {" + nest("i", "b[i] = a[i - 1] + a[i + 1];") + nest("i", "a[i] = b[i];")
        + "}", "double a[n], double b[n]",
    ),
    "a product": loop(nest("ij", "c[i][j] += a[i][t] * b[t][j];"), "double c[n][n], double a[n][n],"
                      " double b[n][n]"),
}  # fmt: skip


@pytest.mark.parametrize("what", NO_CHAINS)
def test_other_loops_are_no_chains(what: str) -> None:
    for region in Session(NO_CHAINS[what], code=True).symbolic.regions:
        assert not [*chains_of(region.scheduled, own_pieces(region.scheduled)[0])]


def chosen(source: Path | str, *defines: str, **parameters: int) -> Selection:
    reading = Reading(defines=defines, parameters=parameters or None)
    session = Session(source, reading, code=True)
    return session.select(H200, SelectOptions(target="cuda"), tile_time=True)


def test_stencils_are_tiled_unless_told_not_to_or_laid_out_by_hand() -> None:
    source = data_directory("kernels") / "jacobi-2d.c"
    tile = chosen(source).kernels[0].time_tile
    assert tile is not None
    assert tile.kernels == ("kernel0", "kernel1")
    both = {f"time tile: {tile.depth} steps of t, {tile.cells} cells in registers"}
    for wanted, tiles in (
        ({}, both), ({"tile_time": False}, set()), ({"tiles": {"i": 16}}, set()),
    ):  # fmt: skip
        program = eatss.codegen(source, gpu="h200", **wanted)
        found = {note for one in program.kernels for note in one.notes}
        assert {one for one in found if one.startswith("time tile: ")} == tiles


def test_few_steps_run_one_by_one() -> None:
    selection = chosen(data_directory("kernels") / "jacobi-2d.c", "TSTEPS=1")
    assert all(one.time_tile is None for one in selection.kernels)


def test_a_recipe_keeps_tiles_and_is_refused_where_they_cannot_be() -> None:
    wrong = (
        ("depth", 3), ("depth", 32), ("columns", 0), ("warps", 64), ("kernels", ["kernel1"]),
        ("prefetch", 0), ("prefetch", 2),
    )  # fmt: skip
    program = tiled(PLANES, {"depth": 4, "columns": 2, "length": 8})
    is_kept_by_its_recipe(program, PLANES, "time_tile", *wrong)


def test_sizes_that_are_parameters_are_tiled_at_their_values() -> None:
    selection = chosen(PLANES, n=4096, steps=100)
    assert selection.kernels[0].time_tile is not None


def test_a_second_copy_needs_room_in_memory() -> None:
    text = PLANES.replace("int n, int steps, float A[2][n][n]", "float A[2][N][N]")
    text = "#define N 100000\n#define steps 100\n" + text.replace("n - 1", "N - 1")
    assert chosen(text).kernels[0].time_tile is not None
    assert chosen(text.replace("100000", "120000")).kernels[0].time_tile is None
