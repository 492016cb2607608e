"""The type of halves in generated text: its conversions on the host are those of C."""

from __future__ import annotations

import subprocess
from pathlib import Path

import eatss
from eatss.cuda.preamble import HALVES
from eatss.cuda.text import type_text
from eatss.polyhedral.expression import ElementType

MAIN = r"""
static unsigned short bits_of(_Float16 value)
{
    unsigned short bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static bool same(unsigned short one, unsigned short other)
{
    const bool nan = (one & 0x7fff) > 0x7c00 && (other & 0x7fff) > 0x7c00;
    return one == other || nan;
}
int main()
{
    double before = 0;
    for (unsigned all = 0; all < 65536; all++) {
        eatss_half half;
        half.bits = (unsigned short)all;
        _Float16 value;
        memcpy(&value, &half.bits, sizeof value);
        if (!same(bits_of((_Float16)(float)half), half.bits))
            return 1;
        if (!same(eatss_half((float)value).bits, half.bits))
            return 2;
        // between two neighbours, and a little beside the middle
        const double here = (double)value, middle = (here + before) / 2;
        for (double one : {middle, middle * (1 + 1e-12), middle * (1 - 1e-12)})
            if (!same(eatss_half(one).bits, bits_of((_Float16)one)))
                return 3;
        before = here;
    }
    return eatss_half(7) == eatss_half(7.0f) && (int)eatss_half(-2.5) == -2 ? 0 : 4;
}
"""


def test_conversions_on_the_host_are_those_of_c(tmp_path: Path) -> None:
    source = tmp_path / "all.cpp"
    headers = "".join(f"#include <{one}>\n" for one in ("initializer_list", "math.h", "string.h"))
    names = "".join(f"#define {one}\n" for one in ("__host__", "__device__", "__forceinline__"))
    source.write_text(f"{headers}{names}{HALVES}{MAIN}")
    subprocess.run(["g++", "-O1", "-w", source, "-o", tmp_path / "all"], check=True)
    assert subprocess.run([tmp_path / "all"], check=False).returncode == 0


def test_only_halves_have_a_name_of_their_own() -> None:
    assert type_text("_Float16") == type_text(ElementType.HALF) == "eatss_half"
    assert type_text(ElementType.UINT16) == type_text("unsigned short") == "unsigned short"


def test_the_original_is_not_called_with_halves_by_value() -> None:
    for written in ("x[i] = s * x[i]", "s += x[i]"):
        program = eatss.codegen(
            f"void f(int n, _Float16 s, _Float16 x[n])\n{{\n#pragma scop\n"
            f"for (int i = 0; i < n; i++) {written};\n#pragma endscop\n}}\n",
            gpu="h200",
        )
        assert "f takes a half by value" in program.text
        assert 'extern "C" void f(' not in program.text
