"""CMA loop, memory classes, reuse, weights and distinct references of small kernels."""

from __future__ import annotations

from eatss.analysis import KernelFacts, Memory
from eatss.api import inspect
from eatss.base.shipped import data_directory

KERNELS = data_directory("kernels")


def facts_of(loops: str, arguments: str, **options: object) -> KernelFacts:
    source = f"void f({arguments}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"
    (facts,) = inspect(source, **options).facts  # type: ignore[arg-type]
    return facts


def classes(facts: KernelFacts) -> dict[str, Memory]:
    return {reference.access: reference.memory for reference in facts.references}


COPY = "for (int i = 0; i < 100; i++) for (int j = 0; j < 100; j++)"


def test_the_cma_loop_is_the_parallel_loop_that_walks_most_references() -> None:
    facts = facts_of(f"{COPY} b[j][i] = a[j][i] + c[i][j];", "double a[100][100], "
                     "double b[100][100], double c[100][100]")  # fmt: skip
    assert facts.cma_loop == "i"
    assert classes(facts) == {"b[j][i]": Memory.L1, "a[j][i]": Memory.L1, "c[i][j]": Memory.SHARED}


def test_equal_counts_are_decided_by_the_arrays_a_loop_indexes_then_by_depth() -> None:
    by_arrays = facts_of(f"{COPY} b[j][i] = a[i][j] * x[i];",
                         "double a[100][100], double b[100][100], double x[100]")  # fmt: skip
    assert by_arrays.cma_loop == "i"
    by_depth = facts_of(f"{COPY} b[j][i] = a[i][j];", "double a[100][100], double b[100][100]")
    assert by_depth.loops[-1].name == by_depth.cma_loop


def test_an_accumulator_off_the_cma_loop_stays_in_l1() -> None:
    program = inspect(KERNELS / "conv-2d.c")
    (facts,) = program.facts
    assert facts.cma_loop == "w"
    memory = classes(facts)
    assert memory["Out[c][h][w]"] is Memory.L1
    assert memory["Ker[c][kh][kw]"] is Memory.SHARED


def test_a_diagonal_is_not_contiguous() -> None:
    facts = facts_of("for (int i = 0; i < 100; i++) a[i][i] = b[i];",
                     "double a[100][100], double b[100]")  # fmt: skip
    assert classes(facts) == {"a[i][i]": Memory.SHARED, "b[i]": Memory.L1}


def test_a_strided_reference_is_not_contiguous() -> None:
    facts = facts_of("for (int i = 0; i < 100; i++) a[i] = b[2 * i];",
                     "double a[100], double b[200]")  # fmt: skip
    assert classes(facts) == {"a[i]": Memory.L1, "b[2 * i]": Memory.SHARED}


def test_scalars_live_in_registers() -> None:
    (facts,) = inspect(KERNELS / "gemm.c").facts
    assert {reference.array for reference in facts.references} == {"A", "B", "C"}
    assert facts.distinct_references == 3


def test_references_of_one_cache_line_count_once() -> None:
    (facts,) = [f for f in inspect(KERNELS / "fdtd-2d.c").facts if len(f.references) >= 6]
    assert facts.distinct_references == 4


def test_neighbours_further_than_a_line_count_apart() -> None:
    near = facts_of("for (int i = 0; i < 64; i++) b[i] = a[i] + a[i + 15];",
                    "double a[100], double b[100]")  # fmt: skip
    far = facts_of("for (int i = 0; i < 64; i++) b[i] = a[i] + a[i + 16];",
                   "double a[100], double b[100]")  # fmt: skip
    assert (near.distinct_references, far.distinct_references) == (2, 3)


def test_the_type_override_halves_the_element() -> None:
    double = facts_of(f"{COPY} b[i][j] = a[i][j];", "double a[100][100], double b[100][100]")
    single = facts_of(
        f"{COPY} b[i][j] = a[i][j];", "double a[100][100], double b[100][100]", dtype="float"
    )
    assert (double.element_bytes, single.element_bytes) == (8, 4)


def test_a_convolution_loads_its_halo_once() -> None:
    source = """
void f(double o[100][100], double a[103][103], double w[4][4]) {
#pragma scop
  for (int h = 0; h < 100; h++)
    for (int v = 0; v < 100; v++)
      for (int k = 0; k < 4; k++)
        for (int l = 0; l < 4; l++)
          o[h][v] += a[h + k][v + l] * w[k][l];
#pragma endscop
}
"""
    (facts,) = inspect(source).facts
    (volume,) = [v for v in facts.volumes if v.array == "a"]
    sizes = {"h": 8, "v": 16, "k": 4, "l": 4}
    assert volume.exact
    assert volume.elements.evaluate(sizes) == (8 + 4 - 1) * (16 + 4 - 1)
    (product,) = inspect(source, volume="product").facts
    (volume,) = [v for v in product.volumes if v.array == "a"]
    assert volume.elements.evaluate(sizes) == 8 * 16 * 4 * 4


def test_a_star_stencil_counts_each_element_once() -> None:
    facts = inspect(KERNELS / "jacobi-2d.c").facts[0]
    (volume,) = [v for v in facts.volumes if v.array == "A"]
    assert volume.exact
    assert volume.elements.evaluate({"i": 8, "j": 16}) == 10 * 18 - 4


def test_kernels_of_several_regions_are_numbered_through_the_file() -> None:
    region = "#pragma scop\nfor (int i = 0; i < 64; i++) a[i] = 1.0;\n#pragma endscop\n"
    program = inspect(f"void f(double a[64]) {{\n{region}{region}}}\n")
    assert [facts.name for facts in program.facts] == ["kernel0", "kernel1"]
    assert len(program.scops) == 2
