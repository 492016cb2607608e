"""What a point decides is what is selected, for every kernel that ships.

Variants are made and measured in threads; what fails in one is raised where it is waited for.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eatss.base.diagnostics import InputError
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.choose.selection import KernelSelection
from eatss.frontend.options import Reading
from eatss.lower.variants import kernel_variants_for
from eatss.measurement.card import CompileError
from eatss.measurement.job import Bench
from eatss.program import load_program
from eatss.session.session import Session
from eatss.tune.derived import kernel_spaces, point_of
from eatss.tune.document import space_from_text
from eatss.tune.jobs import FIRST, MakerJob, Outline, VariantJob
from eatss.tune.maker_worker import _made
from eatss.tune.makers import CudaMaker, Program, default_sizes
from eatss.tune.outline import outlined
from eatss.tune.points import variant_key
from eatss.tune.processes import MeasureJob, Runner
from eatss.tune.rows import Role
from tests.refusals import refusing

KERNELS = Path(__file__).parents[2] / "kernels"
PROFILE = load_profile("h200")


def job(name: str, folder: Path) -> MakerJob:
    return MakerJob(
        source=str(KERNELS / f"{name}.c"),
        reading=Reading(),
        target="cuda",
        profile=PROFILE,
        objective="energy",
        capability=0,
        folder=str(folder),
    )


def test_a_point_comes_back_from_the_selection_it_decides(tmp_path: Path) -> None:
    made_of = job("gemm", tmp_path)
    outline = outlined(made_of, None, rank=6)
    bound = outline.space
    maker = CudaMaker(made_of)
    maker.warm()
    program = maker.program
    refused: list[str] = []
    points = [*(outline.ranked or ())[:3], *bound.sample(8, 0)]
    for point in points:
        wanted = VariantJob(
            variant=variant_key(point),
            values=tuple(point.items()),
            decisions=tuple(bound.decisions(point).items()),
        )
        try:
            selection = maker.chosen(wanted)
        except InputError as error:
            refused.append(error.code)
            continue
        found = point_of(selection.kernels, program.spaces)
        unlike = {n: (point[n], found[n]) for n in point if point[n] != found[n]}
        spread = {n for n in unlike if n.rpartition(".")[2] == "steps"}
        assert not unlike.keys() - spread, unlike
        for n in spread:  # steps mean nothing where no sum is spread
            prefix = n.removesuffix("steps")
            assert (point[f"{prefix}lanes"], point[f"{prefix}chunks"]) == (1, 1)
    assert len(refused) < len(points)
    assert set(refused) <= {"EATSS-W010"}


def outline_of(text: str, tmp_path: Path) -> Outline:
    return outlined(job("gemm", tmp_path), space_from_text(text, "x.toml"), rank=5)


@pytest.mark.parametrize(
    ("iterators", "hint"),
    [
        ("tile_q = [8, 16]", "tile_"),
        ("tlie_i = [8, 16]\ntile_j = [16]", "tile_i"),
        ('"k7.tile_i" = [8, 16]', "tile_i"),
        ("NI = [500, 1000]\ntile_i = [16, 32]", "tile_i"),
    ],
)
def test_a_space_that_decides_what_is_not_there_is_refused(
    iterators: str, hint: str, tmp_path: Path
) -> None:
    with refusing("EATSS-W010") as caught:
        outline_of(f'name = "x"\n[iterators]\n{iterators}\n', tmp_path)
    assert hint in (caught.value.diagnostics[0].hint or "")


def test_iterators_that_only_expressions_use_are_no_mistake(tmp_path: Path) -> None:
    text = 'name = "x"\n[iterators]\nblk = [16, 32]\n[variant]\ntile_i = "blk"\n'
    assert outline_of(text, tmp_path).ranked


def chosen(decisions: dict[str, int | str], tmp_path: Path, role: Role = "") -> KernelSelection:
    """Return what decisions make of gemm, whose selection has tensor cores."""
    maker = CudaMaker(job("gemm", tmp_path))
    wanted = VariantJob(
        variant="v",
        values=tuple(decisions.items()),
        decisions=tuple(decisions.items()),
        role=role,
    )
    (kernel,) = maker.chosen(wanted).kernels
    return kernel


MMA = "mma_f64_16x8x4"


def test_tensor_cores_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with refusing("EATSS-W010", "are not those of mma_f64_16x8x4"):
        chosen({"warps": MMA, "tile_k": 2}, tmp_path)


def test_the_default_has_tiles_of_32_and_no_tensor_cores(tmp_path: Path) -> None:
    kernel = chosen({}, tmp_path, role="default")
    assert kernel.warps is None
    assert dict(kernel.tile_sizes) == {"i": 32, "j": 32, "k": 32}
    without = replace(PROFILE, peak_fp64_tensor_gflops=None)
    session = Session(KERNELS / "gemm.c", code=True)
    base = session.select(without, SelectOptions(target="cuda"))
    variants = kernel_variants_for(session.analysed, without)
    spaces = kernel_spaces(session.analysed.facts, variants, without)
    made_of = Program(session=session, base=base, spaces=spaces)
    (before,) = default_sizes(base, made_of, without).kernels
    assert (kernel.block, kernel.references) == (before.block, before.references)


ANEW = """
#ifndef N
#define N 4096
#endif
void f(double A[N][N], double B[N][N]) {
    double T[N][N];
#pragma scop
    for (int i = 0; i < N; i++) for (int j = 0; j < N - 1; j++) T[i][j] = A[i][j + 1] - A[i][j];
    for (int i = 0; i < N; i++) for (int j = 1; j < N - 1; j++) B[i][j] = T[i][j] * T[i][j - 1];
#pragma endscop
}
"""


def test_variants_are_of_the_program_that_is_selected(tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text(ANEW, encoding="utf-8")
    made_of = replace(job("gemm", tmp_path / "out"), source=str(path))
    outline = outlined(made_of, None, rank=3)
    assert outline.ranked
    (tmp_path / "out").mkdir()
    maker = CudaMaker(made_of)
    for role, decisions in (("", dict(outline.ranked[-1])), ("paper", {})):
        wanted = VariantJob(
            variant=f"{role}{len(decisions)}",
            values=tuple(decisions.items()),
            decisions=tuple(decisions.items()),
            role=role,  # type: ignore[arg-type]
        )
        built = maker.make(wanted)
        assert built.folder is not None
        kernels = load_program(Path(built.folder)).kernels
        assert [kernel.statements for kernel in kernels] == [("S1",)]


def test_ours_is_what_users_get_with_steps_of_time_in_one_launch(tmp_path: Path) -> None:
    maker = CudaMaker(job("jacobi-2d", tmp_path))
    wanted = VariantJob(variant="ours", values=(), decisions=(), role="ours")
    first, *_ = maker.chosen(wanted).kernels
    assert first.time_tile is not None
    built = maker.make(wanted)
    program = load_program(Path(built.folder or ""))
    assert any("time tile: " in note for kernel in program.kernels for note in kernel.notes)
    assert first.predicted is not None
    assert dict(built.row.metrics)["predicted_energy_j"] == first.predicted.energy_j


def test_a_lab_that_cannot_make_anything_says_why(tmp_path: Path) -> None:
    broken = replace(job("gemm", tmp_path), target="none")  # type: ignore[arg-type]
    runner = Runner(broken, 1, Bench(card="tests.tune.no_card:NoCard"))
    wanted = VariantJob(variant="v", values=(), decisions=())
    runner.submit(MeasureJob(wanted=wanted, policy=FIRST))
    try:
        with pytest.raises(InputError, match=r"the process that generates variants .* started"):
            runner.done(120.0)
    finally:
        runner.close()


def test_what_does_not_compile_still_says_what_was_decided(tmp_path: Path) -> None:
    class Refusing:
        def compile(self, *_: object) -> None:
            raise CompileError("ptxas ran out of registers")

    wanted = VariantJob(variant="v", values=(), decisions=(), role="default")
    built = _made(CudaMaker(job("gemm", tmp_path)), Refusing(), wanted)  # type: ignore[arg-type]
    assert (built.folder, built.row.status) == (None, "compile error")
    assert built.row.decided.startswith("kernel0: ")
    assert "predicted_time_s" in dict(built.row.metrics)
