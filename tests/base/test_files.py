"""Files are read without waiting and written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.base.files import folder_named, is_c_text, place_files, read_regular, write_whole
from eatss.base.supervisor import Outcome, Worker
from eatss.verify.result import Job
from eatss.verify.run import _for_compilers, verify
from tests.end_to_end.in_process import eatss as command

PROGRAMS = Path(__file__).parents[1] / "measurement" / "programs"
SOURCE = "void f(int n, double *A) {\n#pragma scop\nfor (int i = 0; i < n; i++) A[i] = 0;\n"
SOURCE += "#pragma endscop\n}\n"


def test_a_file_that_cannot_be_written_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    kept = tmp_path / "kept"
    kept.write_text("before")
    monkeypatch.setattr(Path, "replace", full)
    for path in (kept, tmp_path / "new"):
        with pytest.raises(OSError, match="No space left"):
            write_whole(path, b"after")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert kept.read_text() == "before"


def test_a_file_keeps_its_mode_and_a_named_link_its_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "after"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_whole(Path(os.devnull), b"text")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_only_regular_files_of_a_bounded_size_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular(tmp_path / "file", 5) == b"12345"
    for path, most in ((tmp_path / "file", 4), (tmp_path, 5), (Path(os.devnull), 5)):
        with pytest.raises(OSError, match=r"more than|a directory|no regular file"):
            read_regular(path, most)


def test_a_folder_without_a_name_is_not_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.c").write_text(SOURCE)
    for words in (["codegen", "f.c", "--gpu", "h200"], ["measure", "f.c"], ["compare", "f.c"]):
        done = command(*words, "-o", "")
        assert (done.returncode, done.stdout) == (2, "")
        assert "EATSS-C008" in done.stderr
    with pytest.raises(InputError, match="has no name"):
        eatss.codegen("f.c", gpu="h200", output="")
    assert [path.name for path in tmp_path.iterdir()] == ["f.c"]
    assert folder_named(".") == Path()


def test_a_size_beyond_its_type_is_the_users_mistake() -> None:
    beyond = "size 'NI' is {}, which its type in C does not have"
    for value, said in ((2**31, beyond), (-(2**31) - 1, beyond), (10**40, "--size is 'NI={}'")):
        done = command(
            "verify", PROGRAMS / "gemm", "--device", "cpu", "--size", f"NI={value}", code=2
        )
        assert said.format(value) in done.stderr


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    source = tmp_path / os.fsdecode(b"\xff.c")
    source.write_text(SOURCE)
    done = command("select", source, "--gpu", "h200", code=2)
    assert "clang cannot parse" in done.stderr
    assert "\\udcff.c" in done.stderr


@pytest.mark.parametrize("name", ['a"b', "a\nb", os.fsdecode(b"\xff"), "-x", "a b"])
def test_compilers_get_a_path_that_an_include_can_name(tmp_path: Path, name: str) -> None:
    folder, work = tmp_path / name, tmp_path / "work"
    folder.mkdir()
    work.mkdir()
    path = _for_compilers(folder, work)
    assert path.samefile(folder)
    assert path.is_absolute()
    assert str(path).isprintable()
    assert '"' not in str(path)


def test_what_a_killed_compiler_leaves_goes_with_the_folder_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Worker] = []

    def end_at_once(worker: Worker, take: object) -> Outcome:
        started.append(worker)
        raise KeyboardInterrupt

    monkeypatch.setattr("eatss.verify.run.supervise", end_at_once)
    with pytest.raises(KeyboardInterrupt):
        verify(PROGRAMS / "gemm", device="cpu", sizes=[{}])
    (worker,) = started
    assert isinstance(worker.job, Job)
    assert worker.environment["TMPDIR"] == worker.job.work


@pytest.mark.parametrize(
    ("source", "is_text"),
    [
        ('void f(int n, double a[n]) { _Pragma("scop") a[0] = n; _Pragma("endscop") }', True),
        ("void f(void)\n{\n}", True),
        ("kernels/gemm.c", False),
        ("a (copy) {1}.c", False),
        (Path("void f(int n) { n = 1; }"), False),
        (7, False),
    ],
)
def test_c_text_is_told_from_the_path_of_a_file(source: object, is_text: bool) -> None:
    assert is_c_text(source) is is_text


def test_files_are_not_placed_through_links(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "target"
    target.mkdir()
    (target / "inner").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="'inner' in it is a symbolic link"):
        place_files(target, {"inner/a.txt": b"a"})
    assert not [*(tmp_path / "elsewhere").iterdir()]
