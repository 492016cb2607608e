"""Tiles of rows that threads write are right, and found where they are wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import islpy as isl
import pytest

import eatss
from eatss.base.diagnostics import InternalError
from eatss.base.frozen import Names
from eatss.lower import planning
from eatss.lower.kernel.nodes import If, Kernel, Nodes, Scope
from eatss.lower.kernel.uses import mapped_of
from eatss.lower.pieces import Part
from eatss.lower.promotion import SharedTile
from eatss.lower.promotion_builder import PromotionBuilder
from eatss.lower.storage import StoragePlan, _Planner
from eatss.lower.transform import chain
from eatss.lower.transform.row_windows import with_row_windows
from eatss.polyhedral.expression import Array
from eatss.program import Program, names_in, save_program
from eatss.verify.run import verify
from tests.lower.checking import broken, checked

SIZES = (
    {"M": 0, "N": 5}, {"M": 1, "N": 1}, {"M": 33, "N": 2}, {"M": 40, "N": 37}, {"M": 70, "N": 200}
)  # fmt: skip


def program(body: str) -> str:
    arrays = ", ".join(f"double {name}[M + N][M + N + 2]" for name in "XYAB")
    body = f"#pragma scop\n{body}\n#pragma endscop\n"
    return f"void f(int M, int N, {arrays})\n{{\ndouble s;\n{body}}}\n"


ROWS, FORWARD, BACKWARD = (
    "for (int i = 0; i < M; i++) ",
    "for (int j = 1; j < N; j++) ",
    "for (int j = N - 1; j >= 0; j--) ",
)
BODIES = {
    "forward": ROWS + FORWARD + "X[i][j] = 0.5 * X[i][j - 1] + A[i][j];",
    "backward": ROWS + BACKWARD + "X[i][j] = (X[i][j] - 0.5 * X[i][j + 1]) / (2 + A[i][j + 1]);",
    "columns": ROWS + FORWARD + "X[j][i] = 0.5 * X[j - 1][i] + A[j][i] * X[j][i];",
    "second order": ROWS
    + "for (int j = 2; j < N; j++) X[i][j] = 0.5 * X[i][j - 1] - 0.25 * X[i][j - 2] + A[i][j];",
    "both sides": ROWS + FORWARD + "X[i][j] = 0.25 * (X[i][j - 1] + X[i][j] + X[i][j + 1]);",
    "two arrays": ROWS + FORWARD + "{ X[i][j] -= X[i][j - 1] * A[i][j] / (2 + B[i][j - 1]); "
    "B[i][j] -= A[i][j] * A[i][j] / (2 + B[i][j - 1]); }",
    "in front and behind": ROWS + "{ X[i][0] = A[i][0]; "
    + FORWARD + "X[i][j] = 0.5 * X[i][j - 1] + A[i][j]; X[i][N] *= 2; "
    + BACKWARD + "Y[i][j] = 0.5 * Y[i][j + 1] + X[i][j]; }",
    "what the iteration wrote": ROWS + "{ s = 0; " + BACKWARD
    + "{ Y[i][j] = 0.5 * s + A[i][j]; s = Y[i][j]; } }",
    "not all of a tile": ROWS + "for (int j = 1; j < N; j++) "
    "if (i + j < N) X[i][j] = 0.5 * X[i][j - 1] + A[i][j];",
    "a sum that stays": "for (int t = 0; t < M; t++) for (int j = 0; j < N; j++) "
    "for (int i = 0; i < M; i++) { X[i][j] = 0.5 * X[i][j] + A[t][i]; Y[t][j] += X[i][j]; }",
    "in place": ROWS + "{ s = 0; for (int j = 0; j < N; j++) "
    "{ s = 0.5 * s + X[i][j]; Y[i][j] = s; X[i][j] = s - X[i][j] * B[i][j]; } }",
    "a triangle": ROWS + "for (int j = 1; j < i; j++) X[i][j] = 0.5 * X[i][j - 1] + A[i][j];",
}  # fmt: skip


def asked(body: str, **more: Any) -> dict[str, Any]:
    """Return what is asked of a program: tiles of all that it uses."""
    return {"placements": {name: "shared" for name in "XYAB" if f"{name}[" in body}, **more}


def made(body: str, folder: Path) -> Program:
    return eatss.codegen(program(body), gpu="h200", output=folder, **asked(body))


def right(body: str, folder: Path, **more: Any) -> Program:
    """Return a program that is right, and as it was predicted."""
    found = checked(program(body), folder, SIZES, **asked(body, **more))
    assert not any("not as predicted" in note for one in found.kernels for note in one.notes)
    return found


def stored(program: Program) -> int:
    """Return how many copies go from tiles to arrays."""
    return program.text.count("] = sh.")


@pytest.mark.parametrize(("what", "stages"), [(o, 1 + at % 2) for at, o in enumerate(BODIES)])
def test_rows_that_threads_write_come_and_go_through_tiles(
    what: str, stages: int, tmp_path: Path
) -> None:
    assert stored(right(BODIES[what], tmp_path, stages=stages))


@pytest.mark.parametrize(
    ("what", "threads"), [("forward", 128), ("two arrays", 40), ("columns", 64)]
)
def test_threads_beyond_the_points_of_a_tile_copy(what: str, threads: int, tmp_path: Path) -> None:
    found = right(BODIES[what], tmp_path, stages=2, tiles={"i": 16}, block={"i": threads})
    assert [one.block for one in found.kernels] == [(threads, 1, 1)]
    assert "if (ti < 16" in found.text


@pytest.mark.parametrize("threads", [None, 128])
def test_threads_that_copy_are_predicted(threads: int | None) -> None:
    text = program(BODIES["forward"])
    (chosen,) = eatss.select(text, gpu="h200", target="cuda").kernels
    block = {"i": threads or chosen.block[0][1]}
    wanted: dict[str, Any] = {} if threads is None else {"block": block}
    (found,) = eatss.predict(text, gpu="h200", target="cuda", **wanted).kernels
    assert chosen.predicted is not None
    assert dict(found.block) == block
    assert found.block[0][1] > found.tile_sizes[0][1]
    assert (found.predicted == chosen.predicted) == (chosen.block == found.block)


def test_what_the_same_iteration_wrote_is_not_loaded(tmp_path: Path) -> None:
    found = made(BODIES["what the iteration wrote"], tmp_path)
    assert "sh.A[" in found.text
    assert not re.search(r"sh\.Y\S* = Y\[", found.text)


@pytest.mark.parametrize("stages", [2, 3])
def test_tiles_that_are_written_in_place_are_filled_ahead(stages: int, tmp_path: Path) -> None:
    found = right(BODIES["in place"], tmp_path, stages=stages, tiles={"i": 4, "j": 8})
    (turns,) = {*re.findall(r"sh\.X\[\(stage == 0 \? (\d)", found.text)} or {""}
    assert re.search(rf" X\[{stages}\]\[4\]\[", found.text), turns
    assert re.search(r" Y\[4\]\[", found.text)  # nothing of it is read


@pytest.mark.parametrize(
    ("body", "ahead"),
    [
        ("X[i][j] = 0.5 * X[i][j] + s;", True),
        ("X[i][j] = 0.5 * X[i][j - 1] + s;", False),  # of the tile before
        ("X[i][j] = 0.5 * X[i][j] + s; X[i][j - 1] += X[i][j];", False),
    ],
)
def test_what_other_tiles_write_is_not_filled_ahead(
    body: str, *, ahead: bool, tmp_path: Path
) -> None:
    text = f"{ROWS}{{ s = 0; {FORWARD}{{ s = 0.5 * s + B[i][j]; {body} s = X[i][j]; }} }}"
    found = right(text, tmp_path, stages=2, tiles={"i": 4, "j": 8})
    assert bool(re.search(r" X\[2\]\[4\]\[", found.text)) == ahead


STEP = (
    "{{ s = 0; for (int j = 0; j < N; j++) "
    "{{ Y[i][j] = 0.5 * s + A[i][j]; X[i][j] = {}; s = X[i][j]; }} }}"
)
AGAIN = "for (int j = {}; j < N; j++) for (int i = 0; i < M; i++) Y[i][j] = A[j][i];"


@pytest.mark.parametrize(
    ("use", "again", "alone"),
    [
        ("Y[i][j] + B[i][j]", AGAIN.format(0), True),
        ("Y[i][j] + B[i][j]", AGAIN.format(1), False),  # one stays for callers
        ("Y[i][j] + B[i][j]", "", False),
        ("Y[i][j]", ROWS + "B[i][0] = Y[i][0];" + AGAIN.format(0), False),
        ("Y[i][j] * Y[i][0]", AGAIN.format(0), False),
    ],
)
def test_what_is_overwritten_before_it_is_read_is_never_stored(
    use: str, again: str, *, alone: bool, tmp_path: Path
) -> None:
    body = ROWS + STEP.format(use) + again
    found = eatss.codegen(program(body), gpu="h200", output=tmp_path, recompute="none")
    first = found.kernels[0]
    assert any(note.startswith("Y: registers") for note in first.notes) == alone
    assert ("Y[" not in kernel_text(found, 0)) == alone
    assert not any("not as predicted" in note for one in found.kernels for note in one.notes)
    assert verify(tmp_path, device="cpu", sizes=SIZES).status == "ok"


def kernel_text(program: Program, number: int) -> str:
    """Return the code of a kernel without comments."""
    body = program.text.split(f"{program.kernels[number].name}(", 1)[1].split("\n}}\n")[0]
    body = body.split("\nextern ")[0]
    return re.sub(r"//.*", "", body)


def test_elements_that_the_loop_reads_through_other_references_stay(tmp_path: Path) -> None:
    assert not stored(right(ROWS + FORWARD + "X[i][j] = 0.5 * X[i][j - 1] + X[i][1];", tmp_path))


def test_rows_are_chosen_by_price() -> None:
    found = eatss.codegen(Path("kernels/adi.c"), gpu="h200")
    first = found.kernels[0]
    assert any("X[i][j]: shared memory, 16 x 65 elements" in note for note in first.notes)
    assert first.block == (64, 1, 1)
    there_and_back = 2 * found.text.count("__global__ void __launch_bounds__")
    assert found.text.count("eatss_wait_for_copies<0>();") == there_and_back
    assert found.text.count("if (exact") == there_and_back
    assert "double *X, const double *__restrict__ A, double *B" in found.text


@pytest.mark.parametrize(
    ("what", "window"), [("two arrays", 17), ("backward", 17), ("second order", 18)]
)
def test_steps_along_rows_are_in_registers(what: str, window: int, tmp_path: Path) -> None:
    text = made(BODIES[what], tmp_path).text
    assert f"double X_w[{window}];" in text
    assert (
        ("eatss_divided<double>(" in text) == ("if (exact == 0)" in text) == ("/" in BODIES[what])
    )


def test_rows_of_statements_that_lag_behind_others_are_in_registers() -> None:
    (_, found, _) = eatss.codegen(
        """void f(int T, int n, double a[n][n], double b[n][n], double s[T])
{
#pragma scop
    for (int t = 0; t < T; t++) {
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++) b[i][j] = 0.25 * (a[i-1][j] + a[i+1][j]);
        s[t] = 0;
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++) s[t] += b[i][j] - a[i][j];
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++) a[i][j] = b[i][j];
    }
#pragma endscop
}
""",
        gpu="h200",
    ).kernels
    assert any("shared memory" in note for note in found.notes)
    assert not any("not as predicted" in note for note in found.notes)


APART = """
void f(int M, int K, int N, double A[M][N], double X[M][N], double B[K][N], double Y[K][N])
{
#pragma scop
    for (int i = 0; i < M; i++)
        for (int j = 1; j < N; j++)
            X[i][j] = (X[i][j] - 0.5 * X[i][j - 1]) / (2 + A[i][j]);
    for (int i = 0; i < K; i++)
        for (int j = N - 2; j >= 0; j--)
            Y[i][j] = 0.25 * Y[i][j + 1] + B[i][j] * Y[i][j];
#pragma endscop
}
"""


def test_recurrences_side_by_side_have_blocks_of_their_own(tmp_path: Path) -> None:
    edges = ({"M": 0, "K": 3, "N": 9}, {"M": 33, "K": 0, "N": 40}, {"M": 33, "K": 70, "N": 100})
    (kernel,) = checked(APART, tmp_path, edges).kernels
    assert any(note.startswith("one kernel of 2") for note in kernel.notes)
    assert not any("not as predicted" in note for note in kernel.notes)
    (chosen,) = eatss.select(APART, gpu="h200", target="cuda").kernels
    assert chosen.predicted is not None
    assert chosen.predicted.blocks == 2 * 4096 // chosen.tile_sizes[0][1]


# -- what is wrong is found ---------------------------------------------------------------------


def test_steps_whose_quotients_are_not_exact_are_done_again(tmp_path: Path) -> None:
    found = made(BODIES["backward"], tmp_path)
    for old, new in (
        ("if (exact == 0)", "if (false)"),
        ("exact &= fabs(quotient) >= least || (x == 0 && reciprocal > 0);", ""),
    ):
        assert broken(found, tmp_path, old, new) == "wrong result"


def stored_anyway(one: If) -> Nodes:
    return (replace(one, orelse=()), *one.orelse)


def done_in_part(one: If) -> Nodes:
    return (replace(one, body=one.orelse[:1]),)


@pytest.mark.parametrize("way", [stored_anyway, done_in_part])
def test_steps_that_are_not_done_again_are_a_fault_of_ours(
    way: Callable[[If], Nodes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(kernel: Kernel, taken: set[str]) -> Kernel:
        found = with_row_windows(kernel, taken)
        return replace(
            found,
            body=mapped_of(
                found.body, If, lambda o: way(o) if "exact" in names_in(*o.conditions) else o
            ),
        )

    monkeypatch.setattr(chain, "with_row_windows", changed)
    with pytest.raises(InternalError, match="is not computed again"):
        made(BODIES["two arrays"], tmp_path)


@pytest.mark.parametrize("what", ["store", "load", "what lies beside the tile"])
def test_tiles_that_are_not_copied_are_found(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phase, loads = PromotionBuilder._phase, SharedTile.loads

    def empty(self: PromotionBuilder, nodes: Nodes, name: str) -> Scope:
        return phase(self, () if name.startswith(what) else nodes, name)

    def first_only(self: SharedTile, at: Names) -> list[SharedTile]:
        return [*loads(self, at)][: 1 if what.startswith("what") else None]

    monkeypatch.setattr(PromotionBuilder, "_phase", empty)
    monkeypatch.setattr(SharedTile, "loads", first_only)
    made(BODIES["forward"], tmp_path)
    assert verify(tmp_path, device="cpu", sizes=SIZES, first_failure=True).status != "ok"


def test_tiles_of_another_part_hold_nothing_of_it(tmp_path: Path) -> None:
    first = "for (int j = 0; j < N; j++) { s = 0.5 * s + A[i][j]; X[i][j] = s; }"
    behind = FORWARD + "Y[i][j] = 0.5 * Y[i][j - 1] + X[i][j];"
    assert "sh.X_1[" in right(f"{ROWS}{{ s = 0; {first} {behind} }}", tmp_path).text


SWEEPS = """
#ifndef M
#define M 4096
#endif
#ifndef N
#define N 2048
#endif
void both(double A[M][N], double Y[M][N], double B[M][N])
{
    double s;
#pragma scop
    for (int i = 0; i < M; i++) {
        s = 0;
        for (int j = N - 1; j >= 0; j--) { Y[i][j] = 0.25 * s + A[i][j]; s = Y[i][j]; }
    }
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) B[i][j] = A[i][j] - Y[i][j];
    for (int j = 0; j < N; j++) {
        s = 0;
        for (int i = M - 1; i >= 0; i--) { Y[i][j] = 0.25 * s + B[i][j]; s = Y[i][j]; }
    }
#pragma endscop
}
"""
EDGES = ({"M": 0, "N": 3}, {"M": 1, "N": 0}, {"M": 17, "N": 1}, {"M": 35, "N": 131})


def test_what_uses_a_sweep_is_in_its_steps_where_that_is_cheaper(tmp_path: Path) -> None:
    found = eatss.codegen(SWEEPS, gpu="h200", output=tmp_path)
    joined, last = found.kernels
    assert any(note.startswith("one kernel of 2") for note in joined.notes)
    assert any(note.startswith("Y: registers") for note in joined.notes)
    assert not any(note.startswith("Y: registers") for note in last.notes)
    assert not any("not as predicted" in note for one in found.kernels for note in one.notes)
    assert verify(tmp_path, device="cpu", sizes=EDGES).status == "ok"
    whole = eatss.codegen(SWEEPS, gpu="h200", fuse_rows=False)
    assert found.expected is not None
    assert whole.expected is not None
    assert found.expected.energy_j < whole.expected.energy_j
    assert 1.2 * found.expected.time_s < whole.expected.time_s


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("sh.B[i - i0]", "if (false) sh.B[i - i0]"),
        ("= 0.25 * s", "= 0.5 * s"),
    ],
)
def test_what_a_step_does_not_make_is_found(text: str, broken: str, tmp_path: Path) -> None:
    found = eatss.codegen(SWEEPS, gpu="h200", output=tmp_path)
    assert text in found.text
    save_program(replace(found, text=found.text.replace(text, broken)), tmp_path)
    assert verify(tmp_path, device="cpu", sizes=EDGES, first_failure=True).status != "ok"


def test_a_store_that_is_dropped_though_a_launch_reads_it_is_a_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(self: _Planner, _array: Array, name: str) -> isl.Set:
        return isl.Set.empty(self._tied[name].get_space())

    monkeypatch.setattr(_Planner, "_escaping", nothing)
    later = ROWS + "B[i][0] = Y[i][0];"
    with pytest.raises(InternalError, match="registers do not have all that is read of 'Y'"):
        eatss.codegen(program(ROWS + STEP.format("Y[i][j]") + later), gpu="h200", recompute="none")


def test_a_register_that_the_next_step_overwrites_is_a_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = StoragePlan.with_rows

    def in_any_part(self: StoragePlan, parts: Sequence[Part]) -> StoragePlan:
        names = tuple(name for part in parts for name in part.statements)
        long = [replace(part, statements=names) for part in parts if part.serial]
        return every(self, long[:1] or parts)

    monkeypatch.setattr(planning, "rows_together", lambda _piece, parts, _storage: tuple(parts))
    monkeypatch.setattr(StoragePlan, "with_rows", in_any_part)
    with pytest.raises(InternalError, match="registers do not have all that is read of 'Y'"):
        eatss.codegen(SWEEPS, gpu="h200")
