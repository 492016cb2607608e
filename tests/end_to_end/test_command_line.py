"""The command line as scripts use it: streams, formats and exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from eatss import schema
from eatss.base.shipped import data_directory
from eatss.session.session import Session
from tests.end_to_end.in_process import eatss

KERNELS = data_directory("kernels")


@pytest.fixture(scope="module")
def gemm_json() -> dict[str, object]:
    command = [sys.executable, "-m", "eatss", "select", str(KERNELS / "gemm.c"), "--gpu", "a100"]
    done = subprocess.run(
        [*command, "--format", "json"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, object] = json.loads(done.stdout)
    return document


def test_json_of_a_selection_keeps_to_its_schema(gemm_json: dict[str, object]) -> None:
    assert not list(Draft202012Validator(schema("select")).iter_errors(gemm_json))


def test_ppcg_format_prints_the_sizes_and_nothing_else(gemm_json: dict[str, object]) -> None:
    done = eatss("select", KERNELS / "gemm.c", "--gpu", "a100", "--format", "ppcg")
    assert done.stdout == f"{gemm_json['ppcg_sizes']}\n"


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--format", "ppcg"), "--format ppcg"),
        (("--ppcg-schedule", "x"), "--ppcg-schedule"),
    ],
)
def test_ppcg_is_not_given_sizes_for_generated_code(options: tuple[str, ...], name: str) -> None:
    done = eatss("select", KERNELS / "gemm.c", "--gpu", "h200", "--target", "cuda", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: {name} has no meaning for the target cuda [EATSS-C012]" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--gpu", "voodoo2"], "EATSS-G"),
        (["--gpu", "a100", "--split", "2"], "EATSS-C004"),
        (["--gpu", "a100", "--param", "n"], "EATSS-C004"),
        (["--gpu", "a100", "--scop", "9"], "EATSS-F"),
    ],
)
def test_a_wrong_option_is_the_users_error(arguments: list[str], code: str) -> None:
    done = eatss("select", KERNELS / "gemm.c", *arguments, code=2)
    assert done.stdout == ""
    assert code in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["slect", "@gemm"], "did you mean select?"),
    ],
)
def test_a_mistyped_word_is_told_what_it_may_mean(words: list[str], hint: str) -> None:
    done = eatss(*words, code=2)
    assert hint in done.stderr


def test_no_solution_is_exit_code_1(tmp_path: Path) -> None:
    source = tmp_path / "turn.c"
    source.write_text(
        "void f(double a[64][64][64], double b[64][64][64]) {\n"
        "#pragma scop\n"
        "  for (int i = 0; i < 64; i++)\n"
        "    for (int j = 0; j < 64; j++)\n"
        "      for (int k = 0; k < 64; k++)\n"
        "        b[i][j][k] = a[k][j][i] + a[j][k][i];\n"
        "#pragma endscop\n"
        "}\n"
    )
    done = eatss(
        "select", source, "--gpu", "xavier", "--split", "0.25", "--warp-fraction", "1", code=1
    )
    assert done.stdout == ""
    assert "KiB" in done.stderr


def test_doctor_and_profiles_answer_in_json() -> None:
    checks = json.loads(eatss("doctor", "--format", "json").stdout)["checks"]
    assert {"name", "ok", "found", "needed_for", "remedy"} <= checks[0].keys()
    profiles = json.loads(eatss("profiles", "--format", "json").stdout)["profiles"]
    assert {"a100-40gb", "h200", "ga100", "xavier"} <= {profile["name"] for profile in profiles}
    assert eatss("profiles", "h200").returncode == 0


def _region(body: str) -> str:
    return f"void f(int n, double a[n]) {{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"


DIVISORS = " && ".join(f"i % {one} == 1" for one in (1000003, 999983, 1000033, 999979))


@pytest.mark.parametrize(
    "body",
    [
        "a[0] = 1.0;\n" * 1001,
        f"for (int i = 0; i < n; i++) if ({DIVISORS}) a[i] = 1.0;",  # together beyond 64 bits
    ],
)
def test_what_is_too_hard_is_refused(body: str, tmp_path: Path) -> None:
    source = tmp_path / "hard.c"
    source.write_text(_region(body))
    done = eatss("inspect", source, code=2)
    assert "EATSS-P001" in done.stderr
    assert "^" in done.stderr


@pytest.mark.parametrize(
    "terms",
    [[f"b[i + {k}]" for k in range(1_100)]],
)
def test_a_sum_of_a_thousand_terms_and_more_is_selected(terms: list[str], tmp_path: Path) -> None:
    source = tmp_path / "sum.c"
    source.write_text(
        "void f(double a[64], double b[7000]) {\n#pragma scop\n"
        f"for (int i = 0; i < 64; i++) a[i] = {' + '.join(terms)};\n#pragma endscop\n}}\n"
    )
    done = eatss("select", source, "--gpu", "a100", "--model", "paper", "--format", "ppcg", code=0)
    assert done.stdout.startswith("{ kernel[0] -> tile[32]")


def test_our_own_fault_is_exit_code_70_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "analysed", property(lambda _: 1 // 0))
    done = eatss("inspect", KERNELS / "gemm.c", code=70)
    assert done.stdout == ""
    assert "EATSS-X001" in done.stderr
    assert "Traceback" not in done.stderr


LONG = "x" * 300
"""A name that no file system takes: it cannot even be asked whether there is such a file."""


@pytest.mark.parametrize(
    "words",
    [
        ("verify", LONG),
        ("select", f"{LONG}.c", "--gpu", "h200"),
        ("select", "@gemm", "--gpu", f"{LONG}.toml"),
        ("codegen", "@gemm", "--gpu", "h200", "-o", "new", "--recipe", LONG),
        ("report", LONG),
        ("characterize", "-o", f"{LONG}/x.toml"),
    ],
    ids=lambda words: " ".join(words).replace(LONG, "x"),
)
def test_a_path_that_the_system_refuses_is_the_users_error(words: tuple[str, ...]) -> None:
    done = eatss(*words)
    assert done.returncode in (1, 2), done.stderr
    assert "error: " in done.stderr
    assert re.search(r"\[EATSS-[A-Z]\d+\]", done.stderr)
    assert "Traceback" not in done.stderr
