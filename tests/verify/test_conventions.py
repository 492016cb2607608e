"""What generated text may use runs on a CPU: shuffles, atomics, temporaries, globals, all types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from eatss.program import (
    Argument,
    Constant,
    Name,
    Parameter,
    Program,
)
from eatss.verify.build import Builder
from eatss.verify.result import Verification
from eatss.verify.run import verify
from eatss.verify.sources import with_open_arrays
from tests.plans import kernel_code, one_launch, plan

Folder: TypeAlias = Callable[..., Path]

HEAD = "#ifndef N\n#define N 100\n#endif\n"


def argument(name: str, position: int | None, **other: object) -> Argument:
    plain = Argument(
        name=name,
        role="array",
        element_type="double",
        shape=(Name("N"),),
        reads=True,
        writes=True,
        source="parameter",
        source_name=name,
        position=position,
    )
    return replace(plain, **other)  # type: ignore[arg-type]


def scalar(name: str, position: int | None, element_type: str = "double") -> Argument:
    return argument(
        name, position, role="scalar", shape=(), writes=False, element_type=element_type
    )


def program(
    text: str,
    arguments: Sequence[Argument],
    *,
    reassociates: bool = False,
    kind: str = "macro",
) -> Program:
    kernel = kernel_code(
        "f_k0", block=(64, 1, 1), tile_sizes=(("i", 64),), reassociates=reassociates
    )
    size = Parameter(
        name="N", kind="argument" if kind == "argument" else "macro", default=100, tile=64
    )
    entries = (one_launch("f", "f_k0", arguments),)
    return plan("f", text, parameters=(size,), kernels=(kernel,), entries=entries)


def launcher(arguments: str, passed: str, condition: str = "N > 0", bytes_: str = "0") -> str:
    return (
        f'extern "C" int f_cuda({arguments}, cudaStream_t stream)\n{{\n'
        f"    if ({condition}) EATSS_LAUNCH(f_k0, dim3((N + 63) / 64), dim3(64), {bytes_}, stream, "
        f"{passed});\n    return (int)cudaGetLastError();\n}}\n"
    )


AROUND_BLOCKS = [{"N": size} for size in (0, 1, 63, 64, 65, 200)]
"""Sizes of no block, one and several, whole and in part; ``None`` has verification choose."""


def run(place: Path, sizes: Sequence[Mapping[str, int]] | None = AROUND_BLOCKS) -> Verification:
    return verify(place, device="cpu", sizes=sizes, timeout_s=30)


SUM_C = (
    HEAD + "void f(double *s, double A[N])\n{\n    for (int i = 0; i < N; i++) s[0] += A[i];\n}\n"
)
SUM_CU = (
    HEAD
    + """
extern "C" __global__ void f_k0(double *s, const double *A)
{
    const int i = 64 * blockIdx.x + threadIdx.x;
    double sum = i < N ? A[i] : 0.0;
    sum += eatss_shuffle_down(sum, 16, 32);
    sum += eatss_shuffle_down(sum, 8, 32);
    sum += eatss_shuffle_down(sum, 4, 32);
    sum += eatss_shuffle_down(sum, 2, 32);
    sum += eatss_shuffle_down(sum, 1, 32);
    if (threadIdx.x % 32 == 0) eatss_atomic_add(&s[0], sum);
}
"""
    + launcher("double *s, double *A", "s, A")
)
SUM_ARGUMENTS = (argument("s", 0, shape=(Constant(1),)), argument("A", 1, writes=False))


def test_a_sum_split_over_threads_is_equal_within_the_bound(folder: Folder) -> None:
    found = run(folder(program(SUM_CU, SUM_ARGUMENTS, reassociates=True), SUM_C))
    assert found.status == "ok", found.message
    assert not found.bit_equal
    assert max(result.worst_error for result in found.results) > 0
    assert all(result.bound < 1e-11 for result in found.results)
    assert sum(result.loose for result in found.results) == 0


@pytest.mark.parametrize(
    ("c", "cpp"),
    [
        ("void f(int n, double *A, double b);", "void f(int n, double *A, double b);"),
        ("void f(int n, double A[restrict n]) { }", "void f(int n, double *A) { }"),
        (
            "void f(int n, const double A[n][2 * (n + 1)])\n{ }",
            "void f(int n, const void *eatss_of_A)\n"
            "{ const double (*A)[2 * (n + 1)] = (const double (*)[2 * (n + 1)])eatss_of_A; }",
        ),
        (
            "void f(int n, float (*restrict A)[n], int (*g)(int)) { double B[n]; }",
            "void f(int n, const void *eatss_of_A, int (*g)(int))"
            " { float (*A)[n] = (float (*)[n])eatss_of_A; double B[n]; }",
        ),
    ],
)
def test_arrays_among_parameters_are_pointers_where_cpp_has_none(c: str, cpp: str) -> None:
    assert with_open_arrays(c) == cpp


def test_a_split_sum_that_is_said_to_keep_its_order_is_wrong(folder: Folder) -> None:
    assert run(folder(program(SUM_CU, SUM_ARGUMENTS), SUM_C)).status == "wrong result"


def test_an_error_beyond_rounding_is_wrong_where_sums_are_split(folder: Folder) -> None:
    place = folder(
        program(SUM_CU, SUM_ARGUMENTS, reassociates=True),
        SUM_C,
        ("A[i] : 0.0", "A[i] * (1 + 1e-11) : 0.0"),
    )
    assert run(place).status == "wrong result"


def test_a_dropped_term_is_wrong_where_sums_are_split(folder: Folder) -> None:
    place = folder(
        program(SUM_CU, SUM_ARGUMENTS, reassociates=True), SUM_C, ("i < N ?", "i < N && i != 7 ?")
    )
    assert run(place).status == "wrong result"


def test_a_shuffle_that_not_all_lanes_reach_is_a_barrier_error(folder: Folder) -> None:
    text = SUM_CU.replace(
        "    sum += eatss_shuffle_down(sum, 4", "    if (i < N) sum += eatss_shuffle_down(sum, 4"
    )
    found = run(folder(program(text, SUM_ARGUMENTS, reassociates=True), SUM_C), [{"N": 40}])
    assert found.status == "barrier"
    assert "8 of the 32 threads of warp 1 reach the shuffle" in found.message


def test_a_shuffle_in_groups_stays_in_the_group(folder: Folder) -> None:
    original = HEAD + (
        "void f(double B[N], double A[N])\n{\n    for (int i = 0; i < N; i++)\n"
        "        B[i] = i % 8 < 5 && i + 3 < N ? A[i + 3] : i % 8 < 5 ? 0.0 : A[i];\n}\n"
    )
    text = (
        HEAD
        + (
            'extern "C" __global__ void f_k0(double *B, const double *A)\n{\n'
            "    const int i = 64 * blockIdx.x + threadIdx.x;\n"
            "    const double there = eatss_shuffle_down(i < N ? A[i] : 0.0, 3, 8);\n"
            "    if (i < N) B[i] = there;\n}\n"
        )
        + launcher("double *B, double *A", "B, A")
    )
    arguments = (argument("B", 0, reads=False), argument("A", 1, writes=False))
    assert run(folder(program(text, arguments), original)).status == "ok"


def test_floats_are_bounded_as_floats(folder: Folder) -> None:
    arguments = tuple(replace(a, element_type="float") for a in SUM_ARGUMENTS)
    single = program(
        SUM_CU.replace("double", "float").replace("0.0", "0.0f"), arguments, reassociates=True
    )
    found = run(folder(single, SUM_C.replace("double", "float")), [{"N": 3001}])
    assert found.status == "ok", found.message
    result = found.results[0]
    assert 0 < result.worst_error <= result.bound
    assert 1e-3 < result.bound < 1


def test_integers_have_to_be_equal_where_sums_are_split(folder: Folder) -> None:
    arguments = tuple(replace(a, element_type="long") for a in SUM_ARGUMENTS)
    text = SUM_CU.replace("double", "long").replace("0.0", "0l")
    original = SUM_C.replace("double", "long")
    assert run(folder(program(text, arguments, reassociates=True), original)).status == "ok"
    wrong = program(text.replace("A[i] : 0l", "A[i] : 1l"), arguments, reassociates=True)
    assert run(folder(wrong, original)).status == "wrong result"


VLA_C = """
void f(int N, double *s, double A[N])
{
    for (int i = 0; i < N; i++) s[0] += A[i];
}
"""


def test_sizes_may_be_arguments_and_shape_arrays(folder: Folder) -> None:
    text = (
        SUM_CU.removeprefix(HEAD)
        .replace("(double *s, ", "(int N, double *s, ")
        .replace("(double *s, const", "(int N, double *s, const")
        .replace("stream, s, A", "stream, N, s, A")
    )
    size = argument("N", 0, role="parameter", element_type="int", shape=(), writes=False)
    arguments = (size, *(replace(a, position=(a.position or 0) + 1) for a in SUM_ARGUMENTS))
    given = program(text, arguments, reassociates=True, kind="argument")
    found = run(folder(given, VLA_C), None)
    assert found.status == "ok", found.message
    assert any(dict(result.sizes)["N"] < 0 for result in found.results)
    assert 0 < max(result.bound for result in found.results) < 1e-11


GLOBAL_C = (
    HEAD
    + """
static double A[N];
double B[N];
static float alpha;
int offset;
double total;
static void f(void)
{
    for (int i = 0; i < N; i++) {
        B[i] = alpha * A[i] + offset;
        total += B[i];
    }
}
"""
)
GLOBAL_CU = (
    HEAD
    + """
extern "C" __global__ void f_k0(double *A, double *B, float alpha, int offset, double *total)
{
    const int i = 64 * blockIdx.x + threadIdx.x;
    if (i < N) B[i] = alpha * A[i] + offset;
    if (i == 0)
        for (int k = 0; k < N; k++) *total += alpha * A[k] + offset;
}
"""
    + launcher(
        "double *A, double *B, float alpha, int offset, double *total", "A, B, alpha, offset, total"
    )
)


def test_arrays_and_scalars_may_be_global_and_the_function_static(folder: Folder) -> None:
    arguments = [
        argument("A", None, source="global", writes=False),
        argument("B", None, source="global"),
        replace(scalar("alpha", None, "float"), source="global"),
        replace(scalar("offset", None, "int"), source="global"),
        argument("total", None, source="global", role="cell", shape=()),
    ]
    place = folder(program(GLOBAL_CU, arguments), GLOBAL_C)
    found = run(place)
    assert found.status == "ok", found.message
    assert any(dict(result.sizes)["N"] > 64 for result in found.results)
    wrong = folder(program(GLOBAL_CU.replace("+= alpha", "+= 2 * alpha"), arguments), GLOBAL_C)
    found = run(wrong)
    assert found.status == "wrong result"
    assert found.message.startswith("total is ")


def test_arguments_that_the_region_does_not_use_are_passed_over(folder: Folder) -> None:
    original = HEAD + (
        "void f(double *unused, double A[N], double *beta, int more, double alpha, double last)\n"
        "{\n    for (int i = 0; i < N; i++) A[i] *= alpha + *beta;\n}\n"
    )
    text = (
        HEAD
        + (
            'extern "C" __global__ void f_k0(double *A, double *beta, double alpha)\n{\n'
            "    const int i = 64 * blockIdx.x + threadIdx.x;\n"
            "    if (i < N) A[i] *= alpha + *beta;\n}\n"
        )
        + launcher(
            "double *unused, double *A, double *beta, int more, double alpha, double last",
            "A, beta, alpha",
        )
    )
    unused = {"reads": False, "writes": False}
    arguments = (
        argument("unused", 0, shape=(Constant(1),), **unused),
        argument("A", 1),
        argument("beta", 2, shape=(Constant(1),), writes=False),
        replace(scalar("more", 3, "int"), reads=False),
        scalar("alpha", 4),
        replace(scalar("last", 5), reads=False),
    )
    found = run(folder(program(text, arguments), original))
    assert found.status == "ok", found.message


TEMPORARY_CU = (
    HEAD
    + """
extern "C" __global__ void f_k0(double *A, double *t)
{
    const int i = 64 * blockIdx.x + threadIdx.x;
    if (i < N) t[i] = 2 * A[i];
    if (i < N) A[i] = t[i] + 1;
}
extern "C" int f_cuda(double *A, cudaStream_t stream)
{
    double *t = nullptr;
    if (cudaError_t error = cudaMalloc(&t, sizeof(double) * N)) return (int)error;
    if (N > 0) EATSS_LAUNCH(f_k0, dim3((N + 63) / 64), dim3(64), 0, stream, A, t);
    const cudaError_t status = cudaGetLastError();
    cudaFree(t);
    return (int)status;
}
"""
)
TEMPORARY_C = HEAD + "void f(double A[N]) { for (int i = 0; i < N; i++) A[i] = 2 * A[i] + 1; }\n"


def test_temporaries_are_poisoned_and_guarded(folder: Folder) -> None:
    right = program(TEMPORARY_CU, (argument("A", 0),))
    assert run(folder(right, TEMPORARY_C)).status == "ok"
    unset = folder(right, TEMPORARY_C, ("if (i < N) t[i]", "if (i < N && i != 3) t[i]"))
    found = run(unset, [{"N": 70}])
    assert found.status == "wrong result"
    assert found.results[0].difference is not None
    assert found.results[0].difference.actual == "nan"
    beyond = folder(right, TEMPORARY_C, ("if (i < N) t[i]", "if (i <= N) t[i]"))
    found = run(beyond, [{"N": 70}])
    assert found.status == "out of bounds"
    copied = ("t[i] = 2 * A[i];", "t[i] = A[i];"), ("if (i < N) t[i]", "if (i <= N) t[i]")
    found = run(folder(right, TEMPORARY_C.replace("2 *", ""), *copied), [{"N": 70}])
    assert found.status == "out of bounds"


def test_blocks_that_depend_on_one_another_are_found_in_the_other_order(folder: Folder) -> None:
    original = HEAD + "void f(double A[N]) { for (int i = 1; i < N; i++) A[i] += A[i - 1]; }\n"
    text = (
        HEAD
        + (
            'extern "C" __global__ void f_k0(double *A)\n{\n'
            "    const int i = 64 * blockIdx.x + threadIdx.x;\n"
            "    if (0 < i && i < N) A[i] += A[i - 1];\n}\n"
        )
        + launcher("double *A", "A")
    )
    found = run(folder(program(text, (argument("A", 0),)), original), [{"N": 70}])
    assert found.status == "wrong result"
    assert "reverse order" in found.message


DYNAMIC_CU = (
    HEAD
    + """
struct f_k0_shared { EATSS_TRACKED(float) a[128][100]; };
extern "C" __global__ void f_k0(float *A)
{
    EATSS_DYNAMIC_SHARED(f_k0_shared, sh);
    const int i = 64 * blockIdx.x + threadIdx.x;
    sh.a[127][threadIdx.x] = i < N ? A[i] : 0.0f;
    __syncthreads();
    if (i < N) A[i] = sh.a[127][threadIdx.x] + sqrt(sh.a[127][0] + 1.0f);
}
extern "C" int f_cuda(float *A, cudaStream_t stream)
{
    if (cudaError_t error = cudaFuncSetAttribute(
            f_k0, cudaFuncAttributeMaxDynamicSharedMemorySize, 51200))
        return (int)error;
    if (N > 0) EATSS_LAUNCH(f_k0, dim3((N + 63) / 64), dim3(64), 51200, stream, A);
    return (int)cudaGetLastError();
}
"""
)
DYNAMIC_C = (
    HEAD
    + """
float sqrtf(float);
void f(float A[N])
{
    for (int b = 0; b < N; b += 64)
        for (int i = N - 1 < b + 63 ? N - 1 : b + 63; i >= b; i--)
            A[i] = A[i] + sqrtf(A[b] + 1.0f);
}
"""
)


def test_dynamic_shared_memory_beyond_48_kib_needs_opting_in(folder: Folder) -> None:
    right = program(DYNAMIC_CU, (argument("A", 0, element_type="float"),))
    assert run(folder(right, DYNAMIC_C)).status == "ok"
    found = run(
        folder(
            right,
            DYNAMIC_C,
            ("MaxDynamicSharedMemorySize, 51200", "MaxDynamicSharedMemorySize, 100"),
        )
    )
    assert found.status == "launch error"
    assert "dynamic shared memory" in found.message


MIXED_C = (
    HEAD
    + """
#include <math.h>
void f(double *s, float A[N], double B[N])
{
    for (int i = 0; i < N; i++) {
        s[0] += (A[i] - 0.5) * (B[i] - 0.5) * 1e3;
        s[1] += sqrt(fabs(B[i] - A[i])) / (1.0 + A[i]);
        s[2] += exp(-3.0 * B[i]) * fmax(A[i], B[i]) - 0.1f;
    }
}
"""
)
MIXED_CU = (
    HEAD
    + """
extern "C" __global__ void f_k0(double *s, const float *A, const double *B)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        for (int i = N - 1; i >= 0; i--) {
            s[0] += (A[i] - 0.5) * (B[i] - 0.5) * 1e3;
            s[1] += sqrt(fabs(B[i] - A[i])) / (1.0 + A[i]);
            s[2] += exp(-3.0 * B[i]) * fmax((double)A[i], B[i]) - 0.1f;
        }
}
"""
    + launcher("double *s, float *A, double *B", "s, A, B")
)


def test_sums_in_another_order_are_within_a_bound_that_is_close(folder: Folder) -> None:
    arguments = (
        argument("s", 0, shape=(Constant(3),)),
        argument("A", 1, element_type="float", writes=False),
        argument("B", 2, writes=False),
    )
    place = folder(program(MIXED_CU, arguments, reassociates=True), MIXED_C)
    sizes = [{"N": 10}, {"N": 100}, {"N": 1000}]
    found = verify(place, device="cpu", sizes=sizes, seed=0)
    assert found.status == "ok", found.message
    assert max(result.worst_error for result in found.results) > 0
    assert all(result.bound < 1e-7 for result in found.results)


def test_names_of_the_original_may_be_words_of_cpp(folder: Folder) -> None:
    arguments = tuple(
        replace(one, name=name, source_name=name)
        for one, name in zip(SUM_ARGUMENTS, ("this", "xor"), strict=True)
    )
    original = SUM_C.replace("*s", "*this").replace("s[0]", "this[0]").replace("A[", "xor[")
    assert run(folder(program(SUM_CU, arguments, reassociates=True), original)).status == "ok"


def test_an_original_that_prints_runs_over_numbers_with_bounds(
    folder: Folder, tmp_path: Path
) -> None:
    printing = '#include <stdio.h>\nvoid told(double x) { fprintf(stderr, "%f", x); }\n' + SUM_C
    right = program(SUM_CU, SUM_ARGUMENTS, reassociates=True)
    Builder(right, folder(right, printing), tmp_path, "cpu").numbers({"N": 3})
