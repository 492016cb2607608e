"""What is taken from the cache is what would be computed, and needs nothing that computes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.base.cache import Cache, default_cache
from eatss.base.codec import encode
from eatss.base.diagnostics import InputError, NoSolutionError
from eatss.cards import GpuProfile, load_profile
from eatss.choose.objectives import OBJECTIVES, Objective
from eatss.session.session import Session
from eatss.session.source import UnknownFilesError, read_files
from tests.end_to_end.in_process import eatss as command

KERNELS = sorted((Path(__file__).parents[2] / "kernels").glob("*.c"))
GEMM = next(path for path in KERNELS if path.stem == "gemm")
SHOWN: tuple[tuple[str, ...], ...] = (
    (),
    ("--explain",),
    ("--format", "json"),
    ("--format", "ppcg-args"),
    ("--format", "ppcg", "--diagnostics", "json"),
    ("--target", "cuda", "--explain"),
    ("--objective", "paper", "--split", "0.5", "--explain"),
    ("--dtype", "float", "--objective", "time"),
)
GENERATED: tuple[dict[str, Any], ...] = (
    {},
    {"dtype": "float", "strict_fp": True},
    {"objective": "paper", "index_bits": 64},
    {"instructions": ["mma_f64_8x8x4"], "line_info": True},
)
SMALL = """#define N 64
void scale(double A[N])
{
#pragma scop
  for (int i = 0; i < N; i++)
    A[i] = A[i] * 2.0;
#pragma endscop
}
"""
TRANSPOSED = """void f(double a[64][64][64], double b[64][64][64]) {
#pragma scop
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 64; j++)
      for (int k = 0; k < 64; k++)
        b[i][j][k] = a[k][j][i] + a[j][k][i];
#pragma endscop
}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """Return the user's cache, which is on and empty."""
    monkeypatch.setenv("EATSS_CACHE_DIR", str(tmp_path / "cache"))
    return default_cache()


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes every computation fail from now on."""

    def fails(*_: object, **__: object) -> None:
        raise AssertionError("this is computed, not taken from the cache")

    return lambda: monkeypatch.setattr(Session, "__init__", fails)


def results(cache: Cache) -> list[Path]:
    """Return what is kept but for profiles of cards, which are read once."""
    return [one for one in cache.files() if one.parent.name != "profile"]


def keys(cache: Cache, kind: str) -> set[str]:
    return {one.stem for one in cache.files(kind)}


@pytest.mark.parametrize("at", [1, 15])
def test_a_selection_of_before_is_printed_byte_for_byte(
    at: int, cache: Cache, idle: Callable[[], None]
) -> None:
    arguments = ("select", str(KERNELS[at]), "--gpu", "h200", *SHOWN[at % len(SHOWN)])
    first = command(*arguments)
    assert len(results(cache)) == (1 if first.returncode == 0 else 0)
    if first.returncode == 0:
        idle()
        again = command(*arguments, code=0)
        assert (again.stdout, again.stderr) == (first.stdout, first.stderr)


@pytest.mark.parametrize("at", [10])
def test_a_program_of_before_is_equal_in_every_field(
    at: int, cache: Cache, idle: Callable[[], None], tmp_path: Path
) -> None:
    options = GENERATED[at % len(GENERATED)]
    first = eatss.codegen(KERNELS[at], gpu="h200", output=tmp_path / "first", **options)
    idle()
    again = eatss.codegen(KERNELS[at], gpu="h200", output=tmp_path / "again", **options)
    assert again == first
    assert encode(again) == encode(first)
    assert again.text == first.text
    assert repr(again) == repr(first)
    assert contents(tmp_path / "again") == contents(tmp_path / "first")


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_no_cache_neither_takes_nor_keeps(cache: Cache, idle: Callable[[], None]) -> None:
    assert command("select", GEMM, "--gpu", "a100", "--no-cache").returncode == 0
    eatss.select(GEMM, gpu="a100", cache=False)
    eatss.codegen(GEMM, gpu="a100", cache=False)
    assert results(cache) == []
    eatss.select(GEMM, gpu="a100")
    idle()
    with pytest.raises(AssertionError, match="computed"):
        eatss.select(GEMM, gpu="a100", cache=False)


def test_a_cache_of_ones_own(tmp_path: Path, cache: Cache) -> None:
    own = Cache(tmp_path / "own")
    eatss.select(SMALL, gpu="a100", cache=own)
    assert len(results(own)) == 1
    assert results(cache) == []
    wrong: Any = "here"
    with pytest.raises(InputError, match="cache is 'here'"):
        eatss.select(SMALL, gpu="a100", cache=wrong)


def changed(profile: GpuProfile, **figures: Any) -> GpuProfile:
    from dataclasses import replace  # noqa: PLC0415

    return replace(profile, **figures)


def test_whatever_decides_is_part_of_the_key(cache: Cache, tmp_path: Path) -> None:
    source = tmp_path / "small.c"
    source.write_text(SMALL)
    card = load_profile("a100")
    different: list[Callable[[], object]] = [
        lambda: eatss.select(source, gpu=card),
        lambda: eatss.select(SMALL, gpu=card),
        lambda: eatss.select(SMALL.replace("64", "65"), gpu=card),
        lambda: eatss.select(SMALL + "\n", gpu=card),
        lambda: eatss.select(source, gpu="h200"),
        lambda: eatss.select(source, gpu=changed(card, l2_bytes=card.l2_bytes * 2)),
        lambda: eatss.select(source, gpu=card, target="cuda"),
        lambda: eatss.select(source, gpu=card, dtype="float"),
        lambda: eatss.select(source, gpu=card, objective="time"),
        lambda: eatss.select(source, gpu=card, objective="paper"),
        lambda: eatss.select(source, gpu=card, objective="paper", split=0.5),
        lambda: eatss.select(source, gpu=card, model="paper", uniform=True),
        lambda: eatss.select(source, gpu=card, model="paper", timeout_s=7),
        lambda: eatss.select(source, gpu=card, gap=0.9),
        lambda: eatss.select(source, gpu=card, shared_per_block=1000),
        lambda: eatss.select(source, gpu=card, defines=["M=1"]),
        lambda: eatss.select(source, gpu=card, include_dirs=[tmp_path]),
        lambda: eatss.select(source, gpu=card, function="scale"),
        lambda: eatss.select(source, gpu=card, scop=0),
    ]
    for count, one in enumerate(different, start=1):
        one()
        assert len(keys(cache, "select")) == count
    for one in different:
        one()
    assert len(keys(cache, "select")) == len(different)


def test_whatever_decides_the_code_is_part_of_its_key(cache: Cache) -> None:
    selection = eatss.select(SMALL, gpu="a100", target="cuda", cache=False)
    program = eatss.codegen(SMALL, gpu="a100", cache=False)
    from eatss.lower.recipe import recipe_from_dict  # noqa: PLC0415

    assert program.recipe is not None
    recipe = recipe_from_dict(program.recipe)
    different: list[Callable[[], object]] = [
        lambda: eatss.codegen(SMALL, gpu="a100"),
        lambda: eatss.codegen(SMALL, gpu="a100", selection=selection),
        lambda: eatss.codegen(SMALL, gpu="a100", recipe=recipe),
        lambda: eatss.codegen(SMALL, gpu="a100", tiles={"i": 32}),
        lambda: eatss.codegen(SMALL, gpu="a100", tiles={"kernel0": {"i": 32}}),
        lambda: eatss.codegen(SMALL, gpu="a100", block=(32,)),
        lambda: eatss.codegen(SMALL, gpu="a100", block={"i": 32}),
        lambda: eatss.codegen(SMALL, gpu="a100", placements={"A": "l1"}),
        lambda: eatss.codegen(SMALL, gpu="a100", strict_fp=True),
        lambda: eatss.codegen(SMALL, gpu="a100", index_bits=64),
        lambda: eatss.codegen(SMALL, gpu="a100", line_info=True),
        lambda: eatss.codegen(SMALL, gpu="a100", instructions=["mma_f64_8x8x4"]),
        lambda: eatss.codegen(SMALL, gpu="a100", shared_per_block="default"),
        lambda: eatss.codegen(SMALL, gpu="h200"),
    ]
    for count, one in enumerate(different, start=1):
        one()
        assert len(keys(cache, "codegen")) == count


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a C file that takes its size from a header behind a header."""
    folder = tmp_path / "project"
    (folder / "include").mkdir(parents=True)
    (folder / "sizes.h").write_text('#include "include/n.h"\n')
    (folder / "include" / "n.h").write_text("#define N 64\n")
    source = folder / "scale.c"
    source.write_text(SMALL.replace("#define N 64", '#include <math.h>\n#include "sizes.h"'))
    return source


def test_a_change_of_any_header_counts(cache: Cache, project: Path) -> None:
    first = eatss.select(project, gpu="a100")
    (project.parent / "include" / "n.h").write_text("#define N 4096\n")
    assert eatss.select(project, gpu="a100") != first
    assert eatss.select(project, gpu="a100") == eatss.select(project, gpu="a100", cache=False)
    assert len(results(cache)) == 2


def test_a_header_that_comes_to_stand_before_another_counts(cache: Cache, project: Path) -> None:
    source = project.with_name("other.c")
    source.write_text(project.read_text().replace('"sizes.h"', "<far.h>"))
    early, late = project.parent / "early", project.parent / "late"
    early.mkdir()
    late.mkdir()
    (late / "far.h").write_text("#define N 64\n")
    folders = [early, late]
    first = eatss.select(source, gpu="a100", include_dirs=folders)
    (early / "far.h").write_text("#define N 4096\n")
    second = eatss.select(source, gpu="a100", include_dirs=folders)
    assert second != first
    assert second == eatss.select(source, gpu="a100", include_dirs=folders, cache=False)


@pytest.mark.parametrize(
    "text",
    [
        '#define H "n.h"\n#include H\n',
        '#inc\\\nlude H\n#define H "x"\n',
        "# /* here */ include <n.h>\n",
        "/* here */ #include <n.h>\n",
        "%:include <n.h>\n",
        "??=include <n.h>\n",
        '#if __has_include("n.h")\n#endif\n',
        '#import "n.h"\n',
    ],
)
def test_what_only_a_compiler_can_find_is_not_kept(cache: Cache, text: str) -> None:
    with pytest.raises(UnknownFilesError):
        read_files(f"{text}{SMALL}", ())
    with pytest.raises(UnknownFilesError):
        read_files(f"{SMALL}{text}", ())


def test_plain_includes_are_all_read(project: Path) -> None:
    spliced = '#include \\\n "sizes.h"\n  #  include_next <sizes.h>\n'
    source = project.with_name("spliced.c")
    source.write_text(spliced)
    names = [Path(name).name for name, _ in read_files(source, ())]
    assert names == ["spliced.c", "sizes.h", "n.h"]
    assert [name for name, _ in read_files(SMALL, ())] == [""]


def test_a_source_that_changes_while_it_is_read_is_not_kept(
    cache: Cache, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Session.select

    def slow(self: Session, *arguments: Any, **options: Any) -> Any:
        found = before(self, *arguments, **options)
        project.write_text(project.read_text() + "\n")
        return found

    monkeypatch.setattr(Session, "select", slow)
    eatss.select(project, gpu="a100")
    assert results(cache) == []


def test_errors_are_not_kept(cache: Cache, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        eatss.select(SMALL.replace("A[i] * 2.0", "A[A[i]]"), gpu="a100")
    with pytest.raises(InputError):
        eatss.select(tmp_path / "none.c", gpu="a100")
    with pytest.raises(NoSolutionError):
        eatss.select(TRANSPOSED, gpu="xavier", split=0.25, warp_fraction=1.0)
    assert results(cache) == []


@pytest.fixture
def doubled() -> Iterator[str]:
    """Register an objective, which has no version."""
    OBJECTIVES.register(
        "doubled", Objective(cost=lambda run: run.energy_j * 2e9, unit="nJ", title="twice energy")
    )
    yield "doubled"
    OBJECTIVES.remove("doubled")


def test_what_a_program_registers_has_no_version_and_is_not_kept(
    cache: Cache, doubled: str
) -> None:
    eatss.select(SMALL, gpu="a100", objective=doubled)
    assert results(cache) == []
    assert OBJECTIVES.version(doubled) is None
    assert OBJECTIVES.version("energy") == "eatss"


@pytest.mark.parametrize("damage", ["{}", "[]", "null", '{"selection": 1, "warnings": []}', "x"])
def test_an_entry_that_is_no_selection_is_computed_anew(cache: Cache, damage: str) -> None:
    first = eatss.select(SMALL, gpu="a100")
    (key,) = keys(cache, "select")
    cache.put("select", key, damage.encode())
    assert eatss.select(SMALL, gpu="a100") == first


WARM = """
import os, sys
import eatss, eatss.base.forked
def no_fork():
    raise AssertionError("a hit forks")
os.fork = no_fork
for call in (eatss.select, eatss.codegen):
    call(sys.argv[1], gpu="h200")
heavy = {"islpy", "z3", "clang", "numpy", "networkx", "rich"} & set(sys.modules)
assert not heavy, heavy
"""

WARM_COMMAND = """
import sys
from eatss.cli import command
sys.argv = ["eatss", *sys.argv[1:]]
assert command() == 0
heavy = {"islpy", "z3", "clang", "numpy", "networkx"} & set(sys.modules)
assert not heavy, heavy
"""


def test_a_hit_loads_neither_isl_nor_a_solver_nor_a_compiler(cache: Cache, tmp_path: Path) -> None:
    eatss.select(GEMM, gpu="h200")
    eatss.codegen(GEMM, gpu="h200")
    assert len(results(cache)) == 2
    arguments = [str(GEMM), "--gpu", "h200"]
    commands = (
        ["select", *arguments],
        ["select", *arguments, "--format", "json"],
        ["codegen", *arguments, "-o", str(tmp_path / "out")],
    )
    for words in (
        [WARM, str(GEMM)],
        *([WARM_COMMAND, *words] for words in commands),
    ):
        done = subprocess.run(
            [sys.executable, "-c", *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,  # where no other eatss is found than the one that is installed
        )
        assert done.returncode == 0, done.stderr
    assert len(results(cache)) == 2


def test_a_folder_that_cannot_be_used_changes_nothing(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = eatss.select(SMALL, gpu="a100", cache=False)
    cache.folder.mkdir()
    cache.folder.chmod(0o777)
    assert eatss.select(SMALL, gpu="a100").kernels[0].tile_sizes == first.kernels[0].tile_sizes
    assert os.listdir(cache.folder) == []  # noqa: PTH208
