"""A folder is written whole or not at all, and nothing in it is lost."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.cuda.folder import OriginalFiles, write_program
from eatss.program import Original, Program, load_program

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
)
LATER = OriginalFiles(
    original=ORIGINALS.original,
    files=(("scale.c", b"// later\n"), ("include/deep/size.h", b"")),
)
NAMES = {"scale.cu", "plan.json", "scale.c", "include/size.h"}


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


def test_a_disk_that_is_full_is_a_finding_and_leaves_no_program(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(program, ORIGINALS, tmp_path)
    (tmp_path / "mine").write_text("mine")
    real = Path.replace

    def full(path: Path, target: Path) -> Path:
        if target.name == "scale.c":
            raise OSError(28, "No space left on device")
        return real(path, target)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_program(program, LATER, tmp_path)
    assert state(tmp_path) == "no program"
    monkeypatch.undo()
    write_program(program, LATER, tmp_path, force=True)
    assert state(tmp_path) == "later"
    assert (tmp_path / "include" / "size.h").is_file()  # not of the new program: left alone
    assert (tmp_path / "mine").read_text() == "mine"


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
        edited = (folder / name).read_text().replace('"arguments"', '"arguments_"', 1).encode()
    else:
        edited = (folder / name).read_bytes() + b"// mine\n"
    (folder / name).write_bytes(edited)
    assert f"or were edited, which would be replaced: '{name}'" in refused(program, folder)
    write_program(program, LATER, folder, force=True)
    assert b"mine" not in (folder / name).read_bytes()
    load_program(folder)


def test_a_file_that_is_as_it_would_be_written_is_nobodys_edit(
    program: Program, tmp_path: Path
) -> None:
    write_program(program, ORIGINALS, tmp_path)
    (tmp_path / "scale.c").write_bytes(b"// later\n")
    write_program(program, LATER, tmp_path)


@pytest.mark.parametrize(("name", "there"), [("scale.cu", True), ("plan.json", False)])
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
