"""Files, regions, options, macros and what surrounds a region."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eatss.base.diagnostics import Diagnostic, InputError, Severity
from eatss.frontend.options import FrontendOptions
from eatss.frontend.parse import parse_file
from eatss.polyhedral.expression import ElementType
from eatss.polyhedral.scop import Scop

# -- Files that cannot be read, pragmas that do not match, options that name nothing.


KERNEL = (
    "void f(int n, double *A) {\n#pragma scop\nfor (int i = 0; i < n; i++) A[i] = 0;\n"
    "#pragma endscop\n}\n"
)


def finding(call: Callable[[], object]) -> Diagnostic:
    with pytest.raises(InputError) as caught:
        call()
    return caught.value.diagnostics[0]


def finding_in(text: str, **options: object) -> Diagnostic:
    return finding(lambda: parse_file(text, options=FrontendOptions(**options)))  # type: ignore[arg-type]


# -- files ---------------------------------------------------------------------------------


def test_a_missing_file_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "gemm.c").write_text(KERNEL)
    found = finding(lambda: parse_file(tmp_path / "gem.c"))
    assert (found.code, found.hint) == ("EATSS-F001", "did you mean gemm.c?")


def test_a_file_of_ten_megabytes_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "large.c"
    path.write_bytes(KERNEL.encode() + b"/* x */\n" * (10 * 2**20 // 8))
    assert finding(lambda: parse_file(path)).code == "EATSS-F001"


def test_bytes_that_are_not_utf8_are_a_finding_in_code(tmp_path: Path) -> None:
    path = tmp_path / "latin.c"
    path.write_bytes(KERNEL.encode().replace(b"A[i]", b"\xe4[i]"))
    found = finding(lambda: parse_file(path))
    assert found.code == "EATSS-F007"
    assert found.span is not None
    assert found.span.line == 3


def test_a_byte_order_mark_and_line_ends_of_windows_are_fine() -> None:
    scop = parse_file("\ufeff" + KERNEL.replace("\n", "\r\n")).scops[0]
    assert scop.statements[0].span.line == 3


def test_a_header_that_is_not_found_is_warned_of() -> None:
    """What a file defines instead may not be what its program is made of."""
    sizes = "#ifndef REAL\n#define REAL float\n#endif\n"
    (warning,) = parse_file('#include "sizes.h"\n' + sizes + KERNEL).warnings
    assert (warning.code, warning.message) == ("EATSS-F091", "'sizes.h' file not found")


# -- pragmas ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "void f(double *A) {\n#pragma scop\nA[0] = 0;\n}\n",
        "void f(double *A) {\n#pragma scop\n#pragma scop\nA[0] = 0;\n#pragma endscop\n}\n",
    ],
)
def test_unmatched_and_nested_pragmas_are_findings(text: str) -> None:
    assert finding_in(text).code == "EATSS-F010"


@pytest.mark.parametrize(
    "text",
    [
        "#pragma scop\nint x;\n#pragma endscop\nvoid f(double *A) { A[0] = 0; }\n",
        "void f(double *A) {\n#pragma scop\n{ A[0] = 0;\n#pragma endscop\n} }\n",
        "void f(double *A) {\n#pragma scop\nA[0] = 0; }\nvoid g(void) {\n#pragma endscop\n}\n",
    ],
)
def test_a_region_that_is_no_part_of_a_block_is_a_finding(text: str) -> None:
    assert finding_in(text).code == "EATSS-F010"


def test_pragmas_in_comments_strings_and_inactive_code_do_not_count() -> None:
    noise = (
        "/*\n#pragma scop\n*/\n// \\\n#pragma scop\n"
        'char *s = "\\\n#pragma scop\\\n";\n#if 0\n#pragma scop\n#endif\n'
    )
    assert len(parse_file(noise + KERNEL).scops) == 1


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ('_Pragma("scop")', '_Pragma("endscop")'),
        ("#pragma \\\n scop", " # pragma  endscop /* end */"),
        ("#pra\\\ngma scop", "#pragma endscop"),
    ],
)
def test_every_way_to_write_a_pragma_counts(opening: str, closing: str) -> None:
    text = KERNEL.replace("#pragma scop", opening).replace("#pragma endscop", closing)
    assert len(parse_file(text).scops[0].statements) == 1


TWO = KERNEL + KERNEL.replace("void f", "void g").replace(
    "#pragma endscop", "#pragma endscop\n;\n#pragma scop\nA[n] = 1;\n#pragma endscop"
)


def test_regions_are_chosen_by_function_and_by_number() -> None:
    def chosen(**options: object) -> list[int]:
        return [s.index for s in parse_file(TWO, options=FrontendOptions(**options)).scops]  # type: ignore[arg-type]

    assert chosen(function="g") == [1, 2]
    assert chosen(scop=2) == [2]
    assert chosen(scop=1, function="g") == [1]


def test_a_choice_that_names_nothing_is_a_finding() -> None:
    assert finding_in(TWO, function="h").code == "EATSS-F010"
    assert finding_in(TWO, scop=3).code == "EATSS-F010"
    assert finding_in(TWO, scop=-1).code == "EATSS-F010"
    assert finding_in(TWO, scop=0, function="g").code == "EATSS-F010"


def test_an_error_in_a_region_that_was_not_asked_for_does_not_matter() -> None:
    text = TWO.replace("A[n] = 1", "A[n * n] = A[(int) A[0]]")
    assert finding_in(text).code == "EATSS-F012"
    assert len(parse_file(text, options=FrontendOptions(function="f")).scops) == 1


# -- options ---------------------------------------------------------------------------------


def test_a_parameter_value_fixes_the_context() -> None:
    scop = parse_file(KERNEL, options=FrontendOptions(parameter_values=(("n", 40),))).scops[0]
    assert scop.parameters == ("n",)
    assert scop.context.is_equal(
        type(scop.context).read_from_str(scop.isl_context, "[n] -> {:n=40}")
    )


def test_options_that_make_no_sense_are_findings() -> None:
    assert finding_in(KERNEL, defines=("2x=3",)).code == "EATSS-F007"
    vla = "void f(int n, double A[9][n]) {\n#pragma scop\nA[0][0] = 0;\n#pragma endscop\n}\n"
    assert finding_in(vla, parameter_values=(("n", 0),)).code == "EATSS-F050"


def test_macros_and_include_folders_reach_clang(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#define M (N / 2)\n")
    text = '#include "sizes.h"\n' + KERNEL.replace("i < n", "i < M")
    options = FrontendOptions(include_dirs=(str(tmp_path),), defines=("N=10",))
    scop = parse_file(text, options=options).scops[0]
    assert scop.statements[0].domain.count_val().to_python() == 5


# -- clang's errors ----------------------------------------------------------------------------


def test_a_missing_header_is_named_where_the_region_depends_on_it() -> None:
    found = finding_in("#include <sizes.h>\n" + KERNEL.replace("i < n", "i < SIZE"))
    assert found.code == "EATSS-F007"
    assert found.hint is not None
    assert "sizes.h" in found.hint


@pytest.mark.parametrize(
    "setting",
    ["double *p = A;", "double *p; p = A + 1;", "double *q = A, *p = q;", "double *p = &A[3];"],
)
def test_the_same_array_under_two_names_is_refused(setting: str) -> None:
    text = (
        f"void f(int n, double *A) {{ {setting}\n#pragma scop\n"
        "for (int i = 1; i < n; i++) A[i] = p[i - 1];\n#pragma endscop\n}\n"
    )
    assert finding_in(text).code == "EATSS-F024"


# -- Macros given with ``-D`` that change nothing, and those that do.


LOOPS = """\
void f(double A[N]) {
#pragma scop
  for (int i = 0; i < N; i++)
    A[i] = 2.0 * A[i];
#pragma endscop
}
"""
GUARDED = "#ifndef N\n#define N 100\n#endif\n"


def warned(text: str, *defines: str) -> list[Diagnostic]:
    found = parse_file(text, options=FrontendOptions(defines=defines)).warnings
    return [one for one in found if one.code == "EATSS-F095"]


@pytest.mark.parametrize(
    ("before", "define", "said"),
    [("#define N 100\n", "N=200", "it is defined anew"), (GUARDED, "n=3", "nothing uses it")],
)
def test_what_it_never_uses_is_told(before: str, define: str, said: str) -> None:
    (found,) = warned(before + LOOPS, define)
    assert found.severity is Severity.WARNING
    assert said in found.message


@pytest.mark.parametrize(
    ("before", "define"),
    [
        (GUARDED, "N=200"),
        ("#define N M\n", "M=200"),  # within another macro only
        ("#define CAT(a, b) a##b\n#define N CAT(SI, ZE)\n", "SIZE=200"),
        ("#define N F(4)\n", "F(x)=(x+1)"),
        ("#ifndef M\n#endif\n#define N 9\n", "M"),
    ],
)
def test_what_the_preprocessor_uses_is_not_told(before: str, define: str) -> None:
    assert warned(before + LOOPS, define) == []


# -- What is said of the C program around a region.


TEXT = """\
static double g[10];
double h[10];
static const double c3[3] = {1, 2, 3};
typedef double real;
struct s { int a; };
int glob;
static long sg;
void f(unsigned n, int mod, real *x, const float (*restrict y)[20], double z, struct s *q,
       void *v, char **w, int)
{
  int i = 0, loc = n;
  double t[10];
  static double u[10];
#pragma scop
  for (i = 0; i < mod; i++) {
    double inner = z;
    *x = inner + y[i][2];
    g[i] = h[i] * c3[i % 3];
    t[i] = u[i];
    h[loc] = 1;
    h[glob + sg] = 2;
  }
#pragma endscop
}
"""


@pytest.fixture(scope="module")
def scop() -> Scop:
    return parse_file(TEXT).scops[0]


def test_the_parameters_of_the_function_stand_in_their_order(scop: Scop) -> None:
    found = [(p.name, p.c_type, p.is_pointer) for p in scop.function_parameters]
    assert found == [
        ("n", "unsigned int", False),
        ("mod", "int", False),
        ("x", "double *", True),
        ("y", "const float (*restrict)[20]", True),
        ("z", "double", False),
        ("q", "struct s *", True),
        ("v", "void *", True),
        ("w", "char **", True),
        ("", "int", False),
    ]
    assert [p.position for p in scop.function_parameters] == list(range(9))


def test_an_array_parameter_is_a_pointer_and_keeps_its_sizes() -> None:
    text = "void f(int n, double A[n][8])\n{\n#pragma scop\n A[0][0] = 1;\n#pragma endscop\n}\n"
    found = [(p.c_type, p.is_pointer) for p in parse_file(text).scops[0].function_parameters]
    assert found == [("int", False), ("double[n][8]", True)]


def test_every_array_says_where_it_lives(scop: Scop) -> None:
    assert {a.name: a.origin for a in scop.arrays} == {
        "inner": "local", "z": "parameter", "x": "parameter", "y": "parameter", "g": "static",
        "h": "global", "c3": "static", "t": "local", "u": "static",
    }  # fmt: skip
    assert {a.name: a.n_dims for a in scop.arrays if a.name in "xz"} == {"x": 1, "z": 0}
    assert [a.name for a in scop.arrays if a.is_local] == ["inner"]


def test_every_parameter_of_the_region_has_an_origin(scop: Scop) -> None:
    assert tuple(p.name for p in scop.parameter_declarations) == scop.parameters
    by_source = {p.source_name: (p.origin, p.element_type) for p in scop.parameter_declarations}
    assert by_source == {
        "mod": ("parameter", ElementType.INT32),
        "loc": ("local", ElementType.INT32),
        "glob": ("global", ElementType.INT32),
        "sg": ("static", ElementType.INT64),
    }


LOOP = "#pragma scop\n  for (i = 0; i < n; i++) A[i] = s;\n#pragma endscop\n"


@pytest.mark.parametrize(
    "body",
    [
        f"int i;\n{LOOP}",
        f"int i = 0, unused = 4; const double other = 2.5;\n{LOOP}",
        f"int i; double t[n];\n{LOOP}  return;\n",
        f"typedef int count; count i;\n{LOOP}",
    ],
)
def test_a_function_of_declarations_and_one_region_is_whole(body: str) -> None:
    text = f"void f(int n, double s, double *A)\n{{\n  {body}}}\n"
    assert parse_file(text).scops[0].whole_function


@pytest.mark.parametrize(
    "body",
    [
        f"int i; n = 3;\n{LOOP}",
        f"int i;\n{LOOP}  A[0] = 1;\n",
        f"int i, x = g(A);\n{LOOP}",
        f"int i; double t[g(A)];\n{LOOP}",
        f"int i; if (n > 3) {{\n{LOOP}}}\n",
        f"int i;\n{LOOP}  for (i = 0; i < n; i++) A[i]++;\n",
        f"int i;\n{LOOP}  if (n) return;\n",
        LOOP.replace("= s", "= s + v").replace(
            "#pragma scop", "int i; double v = 2;\n#pragma scop"
        ),
        LOOP.replace("i < n", "i < m").replace("#pragma scop", "int i, m = n - 1;\n#pragma scop"),
        LOOP.replace("= s", "= c").replace("#pragma scop", "int i; const int c = 2;\n#pragma scop"),
    ],
)
def test_other_work_in_the_function_makes_it_more_than_its_region(body: str) -> None:
    text = f"int g(double *);\nvoid f(int n, double s, double *A)\n{{\n  {body}}}\n"
    assert not any(scop.whole_function for scop in parse_file(text).scops)
