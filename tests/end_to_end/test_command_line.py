"""The command line as scripts use it: streams, formats and exit codes."""

from __future__ import annotations

import errno
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_json_of_a_selection_has_the_documented_keys(gemm_json: dict[str, object]) -> None:
    assert {
        "schema_version",
        "gpu",
        "dtype",
        "ppcg_sizes",
        "ppcg_options",
        "ppcg_arguments",
        "kernels",
    } <= gemm_json.keys()
    kernels = gemm_json["kernels"]
    assert isinstance(kernels, list)
    (kernel,) = kernels
    assert {
        "name",
        "statements",
        "loops",
        "parallel",
        "cma_loop",
        "tile_sizes",
        "objective",
        "optimal",
        "split_factor",
        "warp_fraction",
        "solver_calls",
        "solve_time_s",
        "references",
        "usage",
        "predicted",
        "default",
        "keeps_default",
    } <= kernel.keys()
    for reference in kernel["references"]:
        assert {"array", "access", "memory", "cma", "temporal", "spatial"} <= reference.keys()
        assert reference["memory"] in ("l1", "shared")


def test_ppcg_format_prints_the_sizes_and_nothing_else(gemm_json: dict[str, object]) -> None:
    done = eatss("select", KERNELS / "gemm.c", "--gpu", "a100", "--format", "ppcg")
    assert done.stdout == f"{gemm_json['ppcg_sizes']}\n"


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--format", "ppcg"), "--format ppcg"),
        (("--format", "ppcg-args"), "--format ppcg-args"),
        (("--ppcg-schedule", "x"), "--ppcg-schedule"),
        (("--save-ppcg-schedule", "x"), "--save-ppcg-schedule"),
    ],
)
def test_ppcg_is_not_given_sizes_for_generated_code(options: tuple[str, ...], name: str) -> None:
    done = eatss("select", KERNELS / "gemm.c", "--gpu", "h200", "--target", "cuda", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: {name} has no meaning for the target cuda [EATSS-C013]" in done.stderr


def test_a_warning_says_where_sizes_were_chosen_with_another_shared_memory() -> None:
    found = json.loads(eatss("select", KERNELS / "syrk.c", "--gpu", "a100", "-f", "json").stdout)
    assert found["ppcg_max_shared_memory"] != 8192  # else the sizes alone are all PPCG needs
    done = eatss("select", KERNELS / "syrk.c", "--gpu", "a100", "--format", "ppcg")
    assert "EATSS-M015" in done.stderr
    assert "--format ppcg-args" in done.stderr
    done = eatss("select", KERNELS / "atax.c", "--gpu", "a100", "--format", "ppcg")
    assert (done.stdout, done.stderr) == ("{ }\n", "")


def test_the_table_shows_sizes_classes_limits_and_alternatives() -> None:
    done = eatss("select", KERNELS / "gemm.c", "--gpu", "a100", "--split", "0.5", "--explain")
    for word in ("C[i][j]", "A[i][k]", "B[k][j]", "shared", "l1", "proven", "best", "available"):
        assert word in done.stdout
    assert "\x1b[" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--gpu", "voodoo2"], "EATSS-G"),
        (["--gpu", "a100", "--split", "2"], "EATSS-C002"),
        (["--gpu", "a100", "--warp-fraction", "nan"], "EATSS-C002"),
        (["--gpu", "a100", "--param", "n"], "EATSS-C001"),
        (["--gpu", "a100", "--shared-per-block", "much"], "EATSS-C003"),
        (["--gpu", "a100", "--scop", "9"], "EATSS-F"),
        (["--gpu", "a100", "--function", "main"], "EATSS-F"),
    ],
)
def test_a_wrong_option_is_the_users_error(arguments: list[str], code: str) -> None:
    done = eatss("select", KERNELS / "gemm.c", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert code in done.stderr
    assert "Traceback" not in done.stderr


def test_findings_come_as_json_on_request(tmp_path: Path) -> None:
    source = tmp_path / "bad.c"
    source.write_text(
        "void f(int n, int idx[n], double a[n]) {\n"
        "#pragma scop\n"
        "  for (int i = 0; i < n; i++) {\n"
        "    a[idx[i]] = 0;\n"
        "    a[i * i] = 1;\n"
        "  }\n"
        "#pragma endscop\n"
        "}\n"
    )
    done = eatss("inspect", source, "--diagnostics", "json")
    assert done.returncode == 2
    assert done.stdout == ""
    findings = json.loads(done.stderr)["diagnostics"]
    assert [finding["span"]["line"] for finding in findings] == [4, 5]
    assert all(finding["hint"] for finding in findings)


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
    done = eatss("select", source, "--gpu", "xavier", "--split", "0.25", "--warp-fraction", "1")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "KiB" in done.stderr


@pytest.mark.parametrize(
    "command", [[], ["select"], ["predict"], ["inspect"], ["profiles"], ["doctor"], ["schema"]]
)
def test_help_shows_examples(command: list[str]) -> None:
    done = eatss(*command, "--help")
    assert done.returncode == 0
    assert "eatss" in done.stdout


def test_doctor_and_profiles_answer_in_json() -> None:
    checks = json.loads(eatss("doctor", "--format", "json").stdout)["checks"]
    assert {"name", "ok", "found", "needed_for", "remedy"} <= checks[0].keys()
    profiles = json.loads(eatss("profiles", "--format", "json").stdout)["profiles"]
    assert {"a100-40gb", "h200", "ga100", "xavier"} <= {profile["name"] for profile in profiles}
    assert eatss("profiles", "h200").returncode == 0


def _region(body: str) -> str:
    return f"void f(int n, double a[n]) {{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("".join(f"for (int i{k} = 0; i{k} < 3; i{k}++)\n" for k in range(40)) + "a[0] += 1.0;",
         "EATSS-P002"),
        ("for (int i = 0; i < n; i++)\n  if (i % 1000003 == 0 && i % 999983 == 1 && i % 65537 == 3)"
         " a[i] = 1.0;", "EATSS-P002"),
        ("a[0] = 1.0;\n" * 1001, "EATSS-P002"),
    ],
)  # fmt: skip
def test_what_is_too_hard_is_refused_at_once(body: str, code: str, tmp_path: Path) -> None:
    source = tmp_path / "hard.c"
    source.write_text(_region(body))
    done = eatss("inspect", source)
    assert done.returncode == 2
    assert code in done.stderr
    assert "^" in done.stderr


@pytest.mark.parametrize(
    "terms",
    [
        pytest.param(["b[i]"] * 20_000, marks=pytest.mark.long),
        pytest.param([f"b[i + {k}]" for k in range(3_000)], marks=pytest.mark.long),
        [f"b[i + {k}]" for k in range(1_100)],
    ],
)
def test_a_sum_of_a_thousand_terms_and_more_is_selected(terms: list[str], tmp_path: Path) -> None:
    source = tmp_path / "sum.c"
    source.write_text(
        "void f(double a[64], double b[7000]) {\n#pragma scop\n"
        f"for (int i = 0; i < 64; i++) a[i] = {' + '.join(terms)};\n#pragma endscop\n}}\n"
    )
    done = eatss("select", source, "--gpu", "a100", "--model", "eatss", "--format", "ppcg")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{ kernel[0] -> tile[64]")


def test_time_and_energy_of_a_sum_of_hundreds_of_terms_are_predicted(tmp_path: Path) -> None:
    source = tmp_path / "sum.c"
    source.write_text(
        "void f(double a[64], double b[7000]) {\n#pragma scop\n"
        "for (int i = 0; i < 64; i++) a[i] = "
        f"{' + '.join(f'b[i + {k}]' for k in range(300))};\n#pragma endscop\n}}\n"
    )
    done = eatss("select", source, "--gpu", "a100", "--format", "json")
    assert done.returncode == 0, done.stderr
    (kernel,) = json.loads(done.stdout)["kernels"]
    assert kernel["predicted"]["time_s"] > 0


def test_our_own_fault_is_exit_code_70_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "analysed", property(lambda _: 1 // 0))
    done = eatss("inspect", KERNELS / "gemm.c")
    assert done.returncode == 70
    assert done.stdout == ""
    assert "EATSS-X001" in done.stderr
    assert "Traceback" not in done.stderr


LONG = "x" * 300
"""A name that no file system takes: it cannot even be asked whether there is such a file."""


@pytest.mark.parametrize(
    "words",
    [
        ("verify", LONG),
        ("measure", LONG),
        ("compare", LONG, LONG),
        ("select", f"{LONG}.c", "--gpu", "h200"),
        ("select", "@gemm", "--gpu", f"{LONG}.toml"),
        ("select", "@gemm", "--gpu", "h200", "--ppcg-schedule", LONG),
        ("codegen", "@gemm", "--gpu", "h200", "-o", "new", "--recipe", LONG),
        ("codegen", "@gemm", "--gpu", "h200", "-o", "new", "--selection", LONG),
        ("space", f"{LONG}.toml", "--gpu", "h200"),
        pytest.param(("report", LONG), marks=pytest.mark.long),
        ("results", "show", LONG),
        ("sweep", f"{LONG}.c", "--gpu", "h200", "-o", "new.db"),
        ("characterize", "-o", f"{LONG}/x.toml"),
        ("roofline", f"{LONG}.toml"),
        ("--config", LONG, "kernels"),
    ],
    ids=lambda words: " ".join(words).replace(LONG, "x"),
)
def test_a_path_that_the_system_refuses_is_the_users_error(words: tuple[str, ...]) -> None:
    done = eatss(*words)
    assert done.returncode in (1, 2), done.stderr
    assert "error: " in done.stderr
    assert re.search(r"\[EATSS-[A-Z]\d+\]", done.stderr)
    assert "Traceback" not in done.stderr


def test_what_the_system_does_not_let_us_have_is_no_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(self: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "un/readable")

    monkeypatch.setattr(Session, "analysed", property(refused))
    done = eatss("inspect", KERNELS / "gemm.c")
    assert done.returncode == 2
    assert "error: cannot use 'un/readable': Permission denied [EATSS-C041]" in done.stderr
