"""A folder is written whole or not at all, and nothing in it is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.cuda.folder import OriginalFiles, write_program
from eatss.program import Original, Program, load_program

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
#include "size.h"
void scale(double a[N], double b[N]) {
#pragma scop
  for (int i = 0; i < N; i++) a[i] = 2 * b[i];
#pragma endscop
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    home = tmp_path_factory.mktemp("source")
    (home / "size.h").write_text("#define N 1000\n")
    (home / "scale.c").write_text(SOURCE)
    return eatss.codegen(home / "scale.c", gpu="h200")


ORIGINALS = OriginalFiles(
    original=Original(file="scale.c", defines=(), include_dirs=("include/none",)),
    files=(("scale.c", SOURCE.encode()), ("include/size.h", b"#define N 1000\n")),
    folders=("include/none",),
)
LATER = OriginalFiles(
    original=ORIGINALS.original,
    files=(("scale.c", b"// later\n"), ("include/deep/size.h", b"")),
    folders=(),
)
NAMES = {"scale.cu", "plan.json", "README.md", "scale.c", "include/size.h"}


def everything(folder: Path) -> dict[str, bytes | str | None]:
    """Return what is in a folder, links and folders included."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
    }


def refused(program: Program, folder: Path, *, force: bool = False) -> str:
    before = everything(folder.parent)
    with pytest.raises(InputError) as caught:
        write_program(program, LATER, folder, force=force)
    assert caught.value.code == "EATSS-C008"
    assert everything(folder.parent) == before
    return caught.value.diagnostics[0].message


def failing(method: str, number: int, how: Callable[[], object]) -> Callable[..., object]:
    """Return a method of ``Path`` that does ``how`` in the call of this number."""
    real = getattr(Path, method)
    calls = count(1)

    def call(path: Path, *arguments: Any, **options: Any) -> object:
        return how() if next(calls) == number else real(path, *arguments, **options)

    return call


def end_by(reason: BaseException) -> Callable[[], object]:
    def end() -> object:
        raise reason

    return end


FULL = OSError(28, "No space left on device")


@pytest.mark.parametrize("reason", [FULL, KeyboardInterrupt()], ids=["full", "Ctrl-C"])
@pytest.mark.parametrize(("method", "calls"), [("write_bytes", 5), ("mkdir", 6), ("rename", 1)])
def test_a_new_folder_is_there_whole_or_not_at_all(
    program: Program, tmp_path: Path, method: str, calls: int, reason: BaseException
) -> None:
    place = tmp_path / "deep" / "er"
    for number in range(1, calls + 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, method, failing(method, number, end_by(reason)))
            with pytest.raises((InputError, KeyboardInterrupt)) as caught:
                write_program(program, ORIGINALS, place)
        assert everything(tmp_path) == {}
        if reason is FULL:
            assert "No space left on device [EATSS-C008]" in str(caught.value)
    assert set(write_program(program, ORIGINALS, place)) == NAMES
    assert {path.name for path in place.iterdir()} == {name.split("/")[0] for name in NAMES}


@pytest.mark.parametrize("reason", [FULL, KeyboardInterrupt()], ids=["full", "Ctrl-C"])
@pytest.mark.parametrize(
    ("method", "calls"), [("write_bytes", 3), ("mkdir", 6), ("rename", 1), ("replace", 3)]
)
def test_a_folder_that_is_there_changes_whole_or_not_at_all(
    program: Program, tmp_path: Path, method: str, calls: int, reason: BaseException
) -> None:
    write_program(program, ORIGINALS, tmp_path)
    (tmp_path / "mine").write_text("mine")
    before = everything(tmp_path)
    for number in range(1, calls + 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, method, failing(method, number, end_by(reason)))
            with pytest.raises((InputError, KeyboardInterrupt)):
                write_program(program, LATER, tmp_path)
        assert everything(tmp_path) == before
    write_program(program, LATER, tmp_path)
    assert (tmp_path / "scale.c").read_bytes() == b"// later\n"
    assert (tmp_path / "include" / "size.h").is_file()  # not of the new program: left alone
    assert (tmp_path / "mine").read_text() == "mine"


KILLED = """
import os, sys
from itertools import count
from pathlib import Path
from tests.cuda.test_folder import LATER, load_program, write_program
folder = Path(sys.argv[1])
program = load_program(folder / "0")
for number in range(1, 9):
    if not os.fork():
        calls = count(1)

        def until_killed(step):
            return lambda *a: os._exit(9) if next(calls) == number else step(*a)

        Path.rename, Path.replace = until_killed(Path.rename), until_killed(Path.replace)
        write_program(program, LATER, folder / str(number))
        os._exit(0)
    os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_no_killed_run_leaves_a_mixture_that_passes_for_a_program(
    program: Program, tmp_path: Path
) -> None:
    for number in range(9):
        write_program(program, ORIGINALS, tmp_path / str(number))
    subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path],
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    left = [state(tmp_path / str(number)) for number in range(1, 9)]
    assert left == ["before", *["no program"] * 3, *["later"] * 4]


def state(folder: Path) -> str:
    try:
        load_program(folder)
    except InputError as error:
        return "no program" if error.code == "EATSS-V003" else str(error)
    plan = json.loads((folder / "plan.json").read_text())
    whole = all(
        sha256((folder / name).read_bytes()).hexdigest() == checksum
        for name, checksum in plan["checksums"].items()
        if name != "plan.json"
    )
    later = "include/deep/size.h" in plan["checksums"]
    return "a mixture" if not whole else "later" if later else "before"


@pytest.mark.parametrize("name", sorted({*NAMES} - {"include/size.h"}))
def test_an_edited_file_is_kept_unless_forced(program: Program, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "out"
    write_program(program, ORIGINALS, folder)
    if name == "plan.json":
        edited = (folder / name).read_text().replace('"registers"', '"registers_"', 1).encode()
    else:
        edited = (folder / name).read_bytes() + b"// mine\n"
    (folder / name).write_bytes(edited)
    assert f"edited since, which would be replaced: '{name}'" in refused(program, folder)
    write_program(program, LATER, folder, force=True)
    assert b"mine" not in (folder / name).read_bytes()
    load_program(folder)


def test_a_file_that_is_as_it_would_be_written_is_nobodys_edit(
    program: Program, tmp_path: Path
) -> None:
    write_program(program, ORIGINALS, tmp_path)
    (tmp_path / "scale.c").write_bytes(b"// later\n")
    write_program(program, LATER, tmp_path)


def test_a_folder_whose_plan_tells_nothing_of_its_files_is_not_replaced(
    program: Program, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    write_program(program, ORIGINALS, folder)
    plan = json.loads((folder / "plan.json").read_text())
    several: tuple[object, ...] = (None, [], {"scale.cu": 5}, "all")
    for checksums in several:
        (folder / "plan.json").write_text(json.dumps({**plan, "checksums": checksums}))
        assert "holds files that eatss did not write" in refused(program, folder)


@pytest.mark.parametrize("name", ["scale.cu", "plan.json", "README.md", "scale.c"])
@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_the_folder_is_not_written_through(
    program: Program, tmp_path: Path, name: str, there: bool
) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    write_program(program, ORIGINALS, folder)
    if there:
        elsewhere.write_bytes((folder / name).read_bytes())
    (folder / name).unlink()
    (folder / name).symlink_to(elsewhere)
    kept = elsewhere.read_bytes() if there else None
    assert "would be replaced" in refused(program, folder)
    write_program(program, LATER, folder, force=True)
    assert not (folder / name).is_symlink()
    assert (elsewhere.read_bytes() if there else None) == kept


@pytest.mark.parametrize("force", [True, False])
def test_what_stands_in_the_way_is_never_replaced(
    program: Program, tmp_path: Path, force: bool
) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_program(program, ORIGINALS, folder)
    (folder / "include" / "deep").symlink_to(elsewhere)
    assert "'deep' in it is a symbolic link" in refused(program, folder, force=force)
    (folder / "include" / "deep").unlink()
    (folder / "include" / "deep").write_text("")
    assert "'deep' in it is no folder" in refused(program, folder, force=force)
    (folder / "include" / "deep").unlink()
    (folder / "README.md").unlink()
    (folder / "README.md").mkdir()
    assert "'README.md' in it is a folder" in refused(program, folder, force=force)


def test_the_folder_itself_may_be_a_link(program: Program, tmp_path: Path) -> None:
    for name in ("there", "to come"):
        (tmp_path / "link").symlink_to(tmp_path / "place" / name)
        write_program(program, ORIGINALS, tmp_path / "link")
        assert load_program(tmp_path / "place" / name)
        (tmp_path / "link").unlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_the_place_of_a_file_is_not_read(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for name in ("scale.cu", "plan.json"):
        write_program(program, ORIGINALS, folder, force=True)
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with pytest.raises(InputError, match=f"would be replaced: .*'{name}'"):
            write_program(program, LATER, folder)
        with pytest.raises(InputError, match="no regular file"):
            load_program(folder)
