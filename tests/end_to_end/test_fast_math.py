"""Divisions and roots of floats that are approximate on request, and what verify allows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.lower.recipe import recipe_from_dict
from eatss.program import Program, save_program
from eatss.program.plan import FAST_MATH
from eatss.verify.result import Verification
from eatss.verify.run import verify

pytestmark = pytest.mark.usefixtures("kept", "analysed_once")

SIZES = {"N": 70}


def _program(
    place: Path, dtype: str, *, fast_math: bool = False, strict_fp: bool = False
) -> Program:
    source = place / "means.c"
    source.write_text(
        "#ifndef N\n#define N 70\n#endif\n"
        f"void means({dtype} a[N], {dtype} b[N])\n{{\n#pragma scop\n"
        "    for (int i = 1; i < N - 1; i++)\n"
        f"        b[i] = (a[i - 1] + a[i] + a[i + 1]) / ({dtype})3.0 + a[i] / (a[i + 1] + 9);\n"
        "#pragma endscop\n}\n",
        encoding="utf-8",
    )
    return eatss.codegen(source, gpu="h200", fast_math=fast_math, strict_fp=strict_fp)


def _verified(place: Path, program: Program) -> Verification:
    folder = place / "program"
    folder.mkdir()
    save_program(program, folder)
    (folder / "means.c").write_text((place / "means.c").read_text(encoding="utf-8"))
    return verify(folder, sizes=[SIZES])


def test_quotients_of_floats_by_literals_are_products(tmp_path: Path) -> None:
    fast = _program(tmp_path, "float", fast_math=True)
    assert fast.fast_math
    assert set(FAST_MATH) <= set(fast.flags)
    assert "* 0.33333334f" in fast.text
    assert "eatss_quotient" not in fast.text


def test_a_sum_of_a_thousand_terms_is_divided(tmp_path: Path) -> None:
    source = tmp_path / "means.c"
    terms = " + ".join(f"a[i + {k}]" for k in range(1200))
    source.write_text(
        "void means(float a[5000], float b[5000])\n{\n#pragma scop\n"
        f"    for (int i = 0; i < 3700; i++)\n        b[i] = ({terms}) / 3.0f;\n"
        "#pragma endscop\n}\n",
        encoding="utf-8",
    )
    assert "* 0.33333334f" in eatss.codegen(source, gpu="h200", fast_math=True).text


def test_doubles_stay_as_they_are(tmp_path: Path) -> None:
    exact, fast = (_program(tmp_path, "double", fast_math=on) for on in (False, True))
    assert not exact.fast_math
    assert "eatss_quotient<double>" in exact.text
    assert fast.text.splitlines()[4:] == exact.text.splitlines()[4:]


def test_approximate_and_exact_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="EATSS-K019"):
        _program(tmp_path, "float", fast_math=True, strict_fp=True)
    recipe = _program(tmp_path, "float", fast_math=True).recipe
    assert isinstance(recipe, dict)
    wrong = recipe | {"options": recipe["options"] | {"strict_fp": True}}
    with pytest.raises(InputError, match="EATSS-K019"):
        recipe_from_dict(wrong)


def test_quotients_of_integers_have_bounds_too(tmp_path: Path) -> None:
    source = tmp_path / "means.c"
    source.write_text(
        "#ifndef N\n#define N 70\n#endif\nvoid means(float b[N])\n{\n#pragma scop\n"
        "    for (int i = 0; i < N; i++)\n        b[i] = i / 3.0f;\n#pragma endscop\n}\n",
        encoding="utf-8",
    )
    program = eatss.codegen(source, gpu="h200", fast_math=True)
    assert _verified(tmp_path, program).status == "ok"


@pytest.mark.parametrize(
    ("by", "status"),
    [
        ("0.33333334f", "ok"),
        ("0.33333331f", "ok"),  # 1 unit in the last place less
        ("0.33333200f", "wrong result"),  # 45 less
    ],
)
def test_verify_allows_what_approximate_operations_may_do(
    tmp_path: Path, by: str, status: str
) -> None:
    fast = _program(tmp_path, "float", fast_math=True)
    found = _verified(tmp_path, replace(fast, text=fast.text.replace("0.33333334f", by)))
    assert found.status == status, found.message
    assert not found.bit_equal


def test_without_the_flags_nothing_but_every_bit_will_do(tmp_path: Path) -> None:
    fast = _program(tmp_path, "float", fast_math=True)
    assert _verified(tmp_path, replace(fast, flags=())).status == "wrong result"
