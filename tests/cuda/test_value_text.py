"""Values as CUDA text, those of halves too.

The printed value computes what the C source computes, bit for bit.

The type of halves in generated text: its conversions on the host are those of C.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import islpy as isl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import eatss
from eatss.cuda.preamble import HALVES
from eatss.cuda.value_text import ValuePrinter
from eatss.frontend.parse import parse_file
from eatss.lower.arrays import expression_of
from eatss.polyhedral.expression import ElementType
from eatss.polyhedral.scop import Scop
from eatss.program import IntExpr

ARRAYS = {
    "A": "float", "B": "double", "I": "int", "U": "unsigned", "L": "long", "C": "signed char",
    "S": "short", "V": "unsigned char", "W": "unsigned short", "X": "unsigned long",
}  # fmt: skip
INTEGERS = tuple(name for name in ARRAYS if name not in "AB")
SIZE = 24


# -- random expressions ------------------------------------------------------------------


def _join(operator: str, left: str, right: str) -> str:
    return f"({left}) {operator} ({right})"


def integer_expressions() -> st.SearchStrategy[str]:
    """C text of integer type that never divides by zero or shifts too far."""
    leaves = st.one_of(
        st.sampled_from([f"{name}[i]" for name in INTEGERS]),
        st.sampled_from([f"{name}[n - 1 - i]" for name in INTEGERS]),
        st.sampled_from(["i", "n", "i + 1", "n - i", "2 * i - n", "i / 3", "i % 4 == 1", "i < 5"]),
        # too small for an affine expression of them to overflow, which C leaves undefined
        st.sampled_from(["0", "1", "7", "3u", "5L", "9UL", "'\\n'", "0x6"]),
        st.sampled_from(
            ["(U[i] ^ UINT_MAX)", "SHRT_MIN", "isnan(B[i])", "isfinite(A[i])", "isinf(B[i])"]
        ),
        st.sampled_from(["(I[i] ^ LEAST)", "(L[i] ^ MANY)", "(MANY > I[i])"]),
        st.sampled_from(["(int) (B[i] * 8.0)", "(short) (A[i] * 9)", "(long) B[i]"]),
    )

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        arithmetic = st.builds(_join, st.sampled_from("+-*&|^"), inner, inner)
        compared = st.builds(
            _join, st.sampled_from(["<", "<=", ">", ">=", "==", "!=", "&&", "||"]), inner, inner
        )
        divided = st.builds(
            lambda o, a, b: f"({a}) {o} ((({b}) & 7) + 1)", st.sampled_from("/%"), inner, inner
        )
        shifted = st.builds(
            lambda o, a, b: f"({a}) {o} (({b}) & 7)", st.sampled_from(["<<", ">>"]), inner, inner
        )
        plain = st.builds(
            lambda o, a, p, b: f"{a} {o} {p} {b}",
            st.sampled_from("+-*"), leaves, st.sampled_from(["", "-", "~"]), leaves,
        )  # fmt: skip
        unary = st.builds(lambda o, a: f"{o}({a})", st.sampled_from("+-~!"), inner)
        cast = st.builds(
            lambda t, a: f"({t}) ({a})", st.sampled_from([ARRAYS[n] for n in INTEGERS]), inner
        )
        select = st.builds(lambda c, a, b: f"(({c}) ? ({a}) : ({b}))", inner, inner, inner)
        call = st.builds(
            lambda f, a, b: {
                "abs": f"abs({a})", "labs": f"labs({a})", "min": f"min({a}, {b})",
                "max": f"max({a}, {b})", "floord": f"floord({a}, 3)",
                "ceild": f"ceild({a}, 4)",
            }[f],
            st.sampled_from(["abs", "labs", "min", "max", "floord", "ceild"]), inner, inner,
        )  # fmt: skip
        return st.one_of(
            arithmetic, arithmetic, compared, divided, shifted, plain, unary, cast, select, call
        )

    return st.recursive(leaves, grow, max_leaves=9)


def floating_expressions() -> st.SearchStrategy[str]:
    """C text of floating type."""
    integers = integer_expressions()
    leaves = st.one_of(
        st.sampled_from(["A[i]", "B[i]", "A[n - 1 - i]", "B[n - 1 - i]", "alpha", "beta"]),
        st.sampled_from(["0.2", "0.2f", "1.", ".5F", "1e-3", "HALF", "0x1p-4", "3e38f * 10"]),
        st.sampled_from(["INFINITY", "-HUGE_VAL", "FLT_MAX", "DBL_MIN", "DBL_EPSILON"]),
        st.sampled_from(["i * 0.1", "n / 3.0f", "(double) i", "(float) (n - i)"]),
        integers.map(lambda text: f"(double) ({text})"),
    )

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        binary = st.builds(_join, st.sampled_from("+-*/"), inner, inner)
        mixed = st.builds(_join, st.sampled_from("+-*/"), inner, integers)
        mixed_left = st.builds(_join, st.sampled_from("+-*/"), integers, inner)
        cast = st.builds(lambda t, a: f"({t}) ({a})", st.sampled_from(["float", "double"]), inner)
        unary = st.builds(lambda o, a: f"{o}({a})", st.sampled_from("+-"), inner)
        truth = st.builds(
            lambda o, a, b, c: f"((({a}) {o} ({b})) ? ({c}) : ({a}))",
            st.sampled_from(["<", ">=", "==", "&&", "||"]), inner, inner, inner,
        )  # fmt: skip
        select = st.builds(lambda c, a, b: f"(({c}) ? ({a}) : ({b}))", integers, inner, integers)
        one = st.builds(
            lambda f, a: f"{f}({a})",
            st.sampled_from(["sqrt", "sqrtf", "fabs", "fabsf", "floor", "ceilf", "trunc"]), inner,
        )  # fmt: skip
        two = st.builds(
            lambda f, a, b: f"{f}({a}, {b})",
            st.sampled_from(["fmax", "fmaxf", "fmin", "copysign", "fdim"]), inner, mixed,
        )  # fmt: skip
        return st.one_of(binary, binary, mixed, mixed_left, cast, unary, truth, select, one, two)

    return st.recursive(leaves, grow, max_leaves=7)


@st.composite
def statements(draw: st.DrawFn) -> tuple[str, str, str]:
    """An element type, an operator of assignment and an expression."""
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["float", "double"]))
        return kind, draw(st.sampled_from(["", "+", "-", "*"])), draw(floating_expressions())
    kind = draw(st.sampled_from(list(ARRAYS.values())))
    operators = [""] if kind in ("float", "double") else ["", "+", "-", "*", "&", "^"]
    return kind, draw(st.sampled_from(operators)), draw(integer_expressions())


# -- both programs -----------------------------------------------------------------------

HEAD = """\
#include <stdio.h>
#include <stdlib.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#define MANY 2147483648
#define HALF 0.5f
enum { LEAST = -2147483647 - 1 };
"""
C_HELPERS = """\
static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }
static int floord(int a, int b) { return a / b - (a % b < 0); }
static int ceild(int a, int b) { return a / b + (a % b > 0); }
"""
DECLARED = "int min(int, int); int max(int, int); int floord(int, int); int ceild(int, int);\n"
CPP_HELPERS = """\
template <class A, class B> auto eatss_min(A a, B b) -> decltype(a + b) { return a < b ? a : b; }
template <class A, class B> auto eatss_max(A a, B b) -> decltype(a + b) { return a > b ? a : b; }
template <class A, class B> auto eatss_floordiv(A a, B b) -> decltype(a + b)
{ return a / b - (a % b < 0); }
template <class A, class B> auto eatss_mod(A a, B b) -> decltype(a + b)
{ return ((a % b) + b) % b; }
"""


def declarations(kinds: list[str]) -> str:
    """The arrays as global variables."""
    named = [*ARRAYS.items(), *((f"D{k}", kind) for k, kind in enumerate(kinds))]
    return "".join(f"static {kind} {name}[{SIZE}];\n" for name, kind in named)


def main(kinds: list[str]) -> str:
    """Fill the arrays, run, print the bytes of what was written."""
    lines = ["static unsigned long state = 12345;"]
    lines.append(
        "static unsigned long draw(void) { state = state * 6364136223846793005UL + 1442695"
    )
    lines[-1] += "040888963407UL; return state >> 33; }"
    lines.append(f"int main(void) {{ for (int i = 0; i < {SIZE}; i++) {{")
    for name, kind in [*ARRAYS.items(), *((f"D{k}", kind) for k, kind in enumerate(kinds))]:
        value = (
            "(draw() % 2000) / 128.0 - 7" if kind in ("float", "double") else "draw() - (1u << 30)"
        )
        lines.append(f"  {name}[i] = ({kind}) ({value});")
    lines.append(f"}} kernel({SIZE}, 1.5, 0.1f);")
    for k in range(len(kinds)):
        lines.append(f"for (unsigned b = 0; b < sizeof(D{k}); b++)")
        lines.append(f'  printf("%02x", ((unsigned char *) D{k})[b]);')
        lines.append('printf("\\n");')
    return "\n".join(lines) + "\nreturn 0; }\n"


def scop_of(cases: list[tuple[str, str, str]], declared: str) -> Scop:
    return parse_file(HEAD + DECLARED + declared + kernel(c_statements(cases))).scops[0]


def c_statements(cases: list[tuple[str, str, str]]) -> list[str]:
    return [f"D{k}[i] {operator}= {text};" for k, (_, operator, text) in enumerate(cases)]


def kernel(lines: list[str], *, counter: str = "int") -> str:
    body = "\n".join(lines)
    return (
        "static void kernel(int n, double alpha, float beta) {\n#pragma scop\n"
        f"for ({counter} i = 0; i < n; i++) {{\n{body}\n}}\n#pragma endscop\n}}\n"
    )


def affine(function: isl.PwAff) -> IntExpr:
    """Return an affine function of counters by isl."""
    context = function.get_ctx()
    domain = isl.dim_type.in_
    names = ", ".join(str(function.get_dim_name(domain, k)) for k in range(function.dim(domain)))
    statement = function.get_domain_space().get_tuple_name(isl.dim_type.set)
    inputs = isl.PwMultiAff.read_from_str(context, f"[{names}] -> {{ {statement}[{names}] }}")
    build = isl.AstBuild.from_context(isl.Set.read_from_str(context, "{ : }"))
    return expression_of(build.expr_from_pw_aff(function.pullback_pw_multi_aff(inputs)))


def printed_statements(scop: Scop, types: Mapping[str, ElementType], index_bits: int) -> list[str]:
    """Every statement as printed."""
    lines = []
    for statement in scop.statements:
        reads = [access.text for access in statement.accesses]
        printer = ValuePrinter(
            statement=statement, reads=reads, affine=affine, types=types, index_bits=index_bits
        )
        lines.append(printer.assigned(reads[0]))
    return lines


def output_of(text: str, folder: Path, compiler: list[str], name: str) -> str:
    source, program = folder / name, folder / (name + ".out")
    source.write_text(text)
    flags = ["-O1", "-fwrapv", "-ffp-contract=off", "-fno-builtin-abs", "-o", str(program)]
    subprocess.run([*compiler, *flags, str(source), "-lm"], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


C = ["gcc", "-std=c11", "-w"]
CPP = ["g++", "-std=c++17", "-x", "c++", "-Werror=parentheses", "-Wno-narrowing"]


def printed_as_c_computes(cases: list[tuple[str, str, str]], narrow: bool) -> None:
    kinds = [kind for kind, _, _ in cases]
    declared = declarations(kinds)
    scop = scop_of(cases, declared)
    types = {a.name: a.element_type for a in scop.arrays} if narrow else {}
    bits, counter = (32, "int") if narrow else (64, "long")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = output_of(
            HEAD + C_HELPERS + declared + kernel(c_statements(cases)) + main(kinds),
            folder,
            C,
            "a.c",
        )
        lines = printed_statements(scop, types, bits)
        text = HEAD + CPP_HELPERS + declared + kernel(lines, counter=counter) + main(kinds)
        found = output_of(text, folder, CPP, "b.cpp")
        outputs = zip(cases, lines, expected.splitlines(), found.splitlines(), strict=True)
        wrong = [(case, line) for case, line, one, other in outputs if one != other]
        assert not wrong, wrong[0]


drawn = given(cases=st.lists(statements(), min_size=30, max_size=40), narrow=st.booleans())
unhurried = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would compile for minutes
)
test_printed_statements_compute_what_c_computes_bit_for_bit = settings(unhurried, max_examples=1)(
    drawn(printed_as_c_computes)
)


# -- how it reads ------------------------------------------------------------------------


@pytest.fixture
def printed() -> Callable[..., str]:
    """Parse ``D[i] …`` and print it with all that is known of types."""

    def text(source: str, *, target: str = "double", known: bool = True) -> str:
        declared = declarations([]) + f"{target} D[{SIZE}];"
        scop = parse_file(HEAD + DECLARED + declared + kernel([source])).scops[0]
        types = {a.name: a.element_type for a in scop.arrays} if known else {}
        (line,) = printed_statements(scop, types, 32 if known else 64)
        return line

    return text


@pytest.mark.parametrize(
    "source",
    [
        "D[i] = A[i] + (B[i] + alpha);",
        "D[i] = A[i] - (B[i] - alpha);",
        "D[i] = A[i] / (B[i] * alpha) * 2;",
        "D[i] = -(-B[i]);",
        "D[i] = B[i] - -alpha;",
        "D[i] = 0.2 * (B[i] + B[n - i - 1]);",
        "D[i] = B[i] > 0 ? B[i] : -B[i];",
        "D[i] = (I[i] & 3) == 1 ? 1.0 : 0.0;",
        "D[i] = (I[i] < 3 && L[i] > 2) || !U[i];",
        "D[i] = C[i] + S[i];",
        "D[i] = (float)B[i];",
        "D[i] = sqrt(B[i] * B[i]) + fmax(B[i], 0.0);",
        "D[i] += (B[i] + alpha) * 2;",
        "D[i] -= B[i] - alpha;",
        "D[i] = D[i] * B[i] + alpha;",
        "D[i] = (I[i] + 1) * i;",
    ],
)
def test_text_is_the_source_where_the_source_is_plain(
    printed: Callable[..., str], source: str
) -> None:
    assert printed(source) == source


def test_arms_of_a_choice_are_converted_where_they_stand(printed: Callable[..., str]) -> None:
    assert printed("D[i] = B[i] > 0 ? B[i] : 0;") == "D[i] = B[i] > 0 ? B[i] : 0.0;"
    assert printed("D[i] = A[i] > 3 ? I[i] : B[i];") == "D[i] = A[i] > 3 ? (double)I[i] : B[i];"


def test_a_sum_that_is_rounded_twice_is_no_compound_assignment(
    printed: Callable[..., str],
) -> None:
    assert printed("D[i] += B[i];", target="float") == "D[i] = D[i] + B[i];"
    assert printed("D[i] += A[i];", target="float") == "D[i] += A[i];"


def test_a_sum_that_starts_with_something_else_is_no_compound_assignment(
    printed: Callable[..., str],
) -> None:
    assert printed("D[i] = B[i] + D[i];") == "D[i] = B[i] + D[i];"
    assert printed("D[i] = D[n - 1] + B[i];") == "D[i] = D[n - 1] + B[i];"


def test_conversions_are_written_out_where_c_plus_plus_would_choose_another_function(
    printed: Callable[..., str],
) -> None:
    assert printed("D[i] = sqrt(A[i]);") == "D[i] = sqrt((double)A[i]);"
    assert printed("D[i] = pow(2, B[i]);") == "D[i] = pow(2.0, B[i]);"
    assert printed("D[i] = sqrtf(B[i]);") == "D[i] = sqrtf((float)B[i]);"


def test_many_terms_print_without_recursion(printed: Callable[..., str]) -> None:
    terms = " + ".join(["B[i] * alpha", *["B[i]"] * 900])
    assert printed(f"D[i] = {terms};") == f"D[i] = {terms};"


def test_infinite_and_least_literals_have_a_spelling(printed: Callable[..., str]) -> None:
    assert printed("D[i] = B[i] + 1e400;") == "D[i] = B[i] + (1e308 * 1e308);"
    assert printed("D[i] = I[i] + LEAST;") == "D[i] = I[i] + (-2147483647 - 1);"


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
        // a double holds what two halves give exactly
        for (unsigned other = all % 4099; other < 65536; other += 4099) {
            eatss_half second;
            second.bits = (unsigned short)other;
            const double a = (double)half, b = (double)second;
            if (!same((half + second).bits, bits_of((_Float16)(a + b))) ||
                !same((half - second).bits, bits_of((_Float16)(a - b))) ||
                !same((half * second).bits, bits_of((_Float16)(a * b))))
                return 5;
        }
        before = here;
    }
    return eatss_half(7) == eatss_half(7.0f) && (int)eatss_half(-2.5) == -2 ? 0 : 4;
}
"""


def test_halves_on_the_host_are_those_of_c(tmp_path: Path) -> None:
    source = tmp_path / "all.cpp"
    headers = "".join(f"#include <{one}>\n" for one in ("initializer_list", "math.h", "string.h"))
    names = "".join(f"#define {one}\n" for one in ("__host__", "__device__", "__forceinline__"))
    source.write_text(f"{headers}{names}{HALVES}{MAIN}")
    subprocess.run(["g++", "-O1", "-w", source, "-o", tmp_path / "all"], check=True)
    assert subprocess.run([tmp_path / "all"], check=False).returncode == 0


def test_operations_on_halves_are_of_halves() -> None:
    text = eatss.codegen(
        "void f(int n, _Float16 s, _Float16 x[n], float y[n])\n{\n#pragma scop\n"
        "  for (int i = 0; i < n; i++) { x[i] = s * x[i] - x[i] / s; y[i] = x[i] * (float)x[i]; }\n"
        "#pragma endscop\n}\n",
        gpu="h200",
    ).text
    assert "= s * x_r[ri] - (eatss_half)((float)x_r[ri] / (float)s);" in text
    assert "= (float)x_r[ri] * (float)x_r[ri];" in text
