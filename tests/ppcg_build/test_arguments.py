from __future__ import annotations

from pathlib import Path

import pytest

from eatss import InputError
from eatss.ppcg_build.mismatches import dependency_text
from eatss.ppcg_build.run import ppcg_arguments


def test_words_may_come_in_any_order() -> None:
    words = ["-D", "N=4", "-o", "build", "gemm.c", "-Iinc", "--ctx=[n] -> { : n > 0 }", "-DM"]
    found = ppcg_arguments(words)
    assert found.source == Path("gemm.c")
    assert found.output == Path("build")
    assert found.defines == ("N=4", "M")
    assert found.include_dirs == (Path("inc"),)
    assert found.options == (
        "-DN=4", "-DM", f"-I{Path('inc').absolute()}", "--ctx=[n] -> { : n > 0 }",
    )  # fmt: skip


@pytest.mark.parametrize("words", [[], ["-DN=4"], ["a.c", "b.c"], ["a.c", "-D"], ["a.c", "-o"]])
def test_one_file_and_whole_options_are_needed(words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        ppcg_arguments(words)
    assert caught.value.code == "EATSS-R001"


@pytest.mark.parametrize(
    "option",
    ["--sizes={ }", "--save-schedule=x", "--load-schedule=x", "--max-shared-memory=1", "-S16",
     "--tile-size=16", "--unroll-gpu-tile", "--hybrid", "--target=c"],
)  # fmt: skip
def test_what_eatss_chooses_itself_cannot_be_given(option: str) -> None:
    with pytest.raises(InputError) as caught:
        ppcg_arguments(["gemm.c", option])
    assert caught.value.code == "EATSS-R002"


def test_without_selection_sizes_may_be_given() -> None:
    found = ppcg_arguments(["gemm.c", "--sizes={ }", "-S", "16"], selecting=False)
    assert found.others == ("--sizes={ }", "-S16")
    with pytest.raises(InputError):
        ppcg_arguments(["gemm.c", "--load-schedule=x"], selecting=False)


def test_dependencies_are_escaped_as_make_reads_them() -> None:
    text = dependency_text(["out/a b.cu"], ["a b.c", "in#c/$x.h"])
    assert text == "out/a\\ b.cu: a\\ b.c in\\#c/$$x.h\n\nin\\#c/$$x.h:\n"
