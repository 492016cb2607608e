"""A command that needs what is not installed says which package, without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from eatss.base.compilers import missing_packages_named
from eatss.base.diagnostics import InputError

GEMM = Path(__file__).resolve().parents[2] / "kernels" / "gemm.c"
WITHOUT = "import sys; sys.modules.update(dict.fromkeys(('z3', 'islpy', 'clang')))\n"
COMMAND = f"{WITHOUT}from eatss.cli import main; main()"
CALL = f"""{WITHOUT}
import eatss
try:
    eatss.select({str(GEMM)!r}, gpu="a100", cache=False)
except eatss.InputError as error:
    print(error.code)
"""


def python(code: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("words", [("select", GEMM, "-g", "a100"), ("measure", GEMM, "-g", "a100")])
def test_a_command_names_the_packages_and_what_installs_them(words: tuple[str | Path, ...]) -> None:
    done = python(COMMAND, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "error: this needs z3-solver, islpy, libclang, not installed here [EATSS-C030]",
        "  hint: pip install eatss; programs are verified and measured without",
    ]


def test_python_raises_an_error_of_eatss() -> None:
    assert python(CALL).stdout == "EATSS-C030\n"


def raised(error: ImportError) -> Exception:
    with pytest.raises((InputError, ImportError)) as caught, missing_packages_named():
        raise error
    return caught.value


def test_a_package_that_the_one_file_leaves_to_the_machine_is_named() -> None:
    error = raised(ModuleNotFoundError("no", name="scipy.stats"))
    assert isinstance(error, InputError)
    assert error.diagnostics[0].hint == "pip install scipy"
