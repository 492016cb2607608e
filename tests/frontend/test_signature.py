"""What is said of the C program around a region."""

from __future__ import annotations

import pytest

from eatss.frontend import parse_source
from eatss.polyhedral.expression import ElementType
from eatss.polyhedral.scop import Scop

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
    return parse_source(TEXT).scops[0]


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


def test_parameters_that_regions_can_use_have_an_element_type(scop: Scop) -> None:
    types = [p.element_type for p in scop.function_parameters]
    double, float_, int_ = ElementType.DOUBLE, ElementType.FLOAT, ElementType.INT32
    assert types == [ElementType.UINT32, int_, double, float_, double, None, None, None, int_]


def test_an_array_parameter_is_a_pointer_and_keeps_its_sizes() -> None:
    text = "void f(int n, double A[n][8])\n{\n#pragma scop\n A[0][0] = 1;\n#pragma endscop\n}\n"
    assert [(p.c_type, p.is_pointer) for p in parse_source(text).scops[0].function_parameters] == [
        ("int", False),
        ("double[n][8]", True),
    ]


def test_every_array_says_where_it_lives(scop: Scop) -> None:
    assert {a.name: a.origin for a in scop.arrays} == {
        "inner": "local",
        "z": "parameter",
        "x": "parameter",
        "y": "parameter",
        "g": "static",
        "h": "global",
        "c3": "static",
        "t": "local",
        "u": "static",
    }
    assert {a.name: a.n_dims for a in scop.arrays if a.name in "xz"} == {"x": 1, "z": 0}
    assert [a.name for a in scop.arrays if a.is_local] == ["inner"]


def test_names_of_isl_keep_their_name_in_c(scop: Scop) -> None:
    (mod,) = (p for p in scop.parameter_declarations if p.source_name == "mod")
    assert mod.name != "mod"
    assert mod.name in scop.parameters
    text = "void f(double max[9])\n{\n#pragma scop\n max[0] = 1;\n#pragma endscop\n}\n"
    (array,) = parse_source(text).scops[0].arrays
    assert array.name != "max"
    assert array.source_name == "max"


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
        f"int i; (void) n; ;\n{LOOP}",
        f"typedef int count; count i;\n{LOOP}",
    ],
)
def test_a_function_of_declarations_and_one_region_is_whole(body: str) -> None:
    text = f"void f(int n, double s, double *A)\n{{\n  {body}}}\n"
    assert parse_source(text).scops[0].whole_function


@pytest.mark.parametrize(
    "body",
    [
        f"int i; n = 3;\n{LOOP}",
        f"int i;\n{LOOP}  A[0] = 1;\n",
        f"int i;\n{LOOP}  g(A);\n",
        f"int i, x = g(A);\n{LOOP}",
        f"int i; double t[g(A)];\n{LOOP}",
        f"int i; if (n > 3) {{\n{LOOP}}}\n",
        f"int i; {{\n{LOOP}}}\n",
        f"int i;\n{LOOP}{LOOP}",
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
    assert not any(scop.whole_function for scop in parse_source(text).scops)


def test_a_function_that_returns_a_value_does_more_than_its_region() -> None:
    text = f"int f(int n, double s, double *A)\n{{\n  int i;\n{LOOP}  return n;\n}}\n"
    assert not parse_source(text).scops[0].whole_function
