from __future__ import annotations

import json

import pytest

from eatss.ppcg_build.host_code import HostRegion, NotUnderstoodError, host_regions
from eatss.ppcg_build.program import read_kernels
from eatss.ppcg_build.run import used_sizes
from eatss.program import Constant, HostIf, HostLoop, Launch, Name
from tests.ppcg_build.recorded_ppcg import STORE

HEAD = "void f()\n{\n  {\n#define cudaCheckKernel() \\\n  do {} while(0)\n"
LAUNCH = (
    "{ dim3 k0_dimBlock(16, 32); dim3 k0_dimGrid(n, 2);"
    " kernel0 <<<k0_dimGrid, k0_dimBlock>>> (dev_A, n, c0); cudaCheckKernel(); }"
)


def region(body: str) -> HostRegion:
    (found,) = host_regions(f"{HEAD}{body}\n  }}\n}}\n")
    return found


def test_memory_loops_conditions_and_launches_are_read() -> None:
    found = region(
        "double *dev_A; unsigned int *dev_s;\n"
        "cudaCheckReturn(cudaMalloc((void **) &dev_A, (n) * (n + 1) * sizeof(double)));\n"
        "cudaCheckReturn(cudaMalloc((void **) &dev_s, sizeof(unsigned int)));\n"
        "cudaCheckReturn(cudaMemcpy(dev_A, A, (n) * sizeof(double), cudaMemcpyHostToDevice));\n"
        f"for (int c0 = 1; c0 < n; c0 += 2)\n  if (n >= 3) {LAUNCH}\n"
        "cudaCheckReturn(cudaFree(dev_A));"
    )
    array, scalar = found.memory
    assert (array.name, array.element_type, len(array.extents)) == ("A", "double", 2)
    assert (scalar.name, scalar.element_type, scalar.extents) == ("s", "unsigned int", ())
    (loop,) = found.steps
    assert isinstance(loop, HostLoop)
    assert (loop.counter, loop.lower, loop.step) == ("c0", Constant(1), 2)
    (condition,) = loop.body
    assert isinstance(condition, HostIf)
    grid = (Name("n"), Constant(2), Constant(1))
    assert condition.body == (Launch(kernel="kernel0", grid=grid),)
    (launched,) = found.launches
    assert launched.block == (16, 32, 1)
    assert launched.arguments == ("dev_A", "n", "c0")


def test_else_runs_where_the_condition_does_not_hold() -> None:
    other = LAUNCH.replace("kernel0", "kernel1")
    steps = region(f"if (n > 3) {LAUNCH} else {other}").steps
    assert [type(step).__name__ for step in steps] == ["HostIf", "HostIf"]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("A[0] = 1;", "a statement stays on the host"),
        ("for (long c0 = 0; c0 <= 9; c0 += 1) ;", "no known form"),
        ("for (int c0 = 9; c0 >= 0; c0 -= 1) ;", "no known form"),
        ("for (int c0 = 0; c0 <= 9; c0 += n) ;", "no known form"),
        ("while (1) ;", "no known form"),
        ("double (*dev_A)[40];", "no known form"),
        (LAUNCH + LAUNCH, "launched in several places"),
        (LAUNCH.replace("16, 32", "n, 1"), "block of kernel0 is no number"),
        (LAUNCH.replace("(dev_A", "(dev_A + 1"), "no known form"),
        ("cudaCheckReturn(cudaMallocManaged(&x, 4));", "no known form"),
        ("if (f(n)) ;", "no integer expression"),
        ("cudaCheckReturn(cudaMalloc((void **) &dev_B, (4) * sizeof(int)));", "no known type"),
    ],
)
def test_what_is_of_no_known_form_is_refused(statement: str, said: str) -> None:
    with pytest.raises(NotUnderstoodError, match=said):
        region(statement)


def test_a_host_file_that_ends_in_a_region_is_refused() -> None:
    with pytest.raises(NotUnderstoodError, match="ends inside"):
        host_regions(HEAD + "double *dev_A;")


def test_kernels_change_in_nothing_but_their_declarations() -> None:
    text = (
        '#include "gemm_kernel.hu"\n'
        "__global__ void kernel0(float *A, unsigned char *B, int n)\n{\n"
        "    int t0 = threadIdx.x;\n"
        "    __shared__ unsigned char shared_B[3][5];\n"
        "    __shared__ double shared_A[32][4];\n    /* kept */\n    A[t0] = n;\n}\n"
    )
    found = read_kernels(text)
    (kernel,) = found.kernels
    assert kernel.parameters == ("A", "B", "n")
    assert [(a.name, a.place, a.bytes) for a in kernel.shared] == [
        ("shared_B", 0, 15),
        ("shared_A", 16, 1024),
    ]
    assert kernel.shared_bytes == 1040
    assert found.text == (
        'extern "C" __global__ void kernel0(float *A, unsigned char *B, int n)\n{\n'
        "    int t0 = threadIdx.x;\n"
        "    EATSS_SHARED_AT(0, unsigned char, shared_B, [3][5]);\n"
        "    EATSS_SHARED_AT(16, double, shared_A, [32][4]);\n    /* kept */\n    A[t0] = n;\n}\n"
    )


def test_nvrtc_gets_macros_without_extensions() -> None:
    theirs = "#define ppcg_min(x,y)    ({ __typeof__(x) _x = (x); _x < (y) ? _x : (y); })"
    found = read_kernels(f"__global__ void kernel0(int n)\n{{\n    {theirs}\n}}\n").text
    assert theirs in found
    assert "#ifdef __CUDACC_RTC__\n#define ppcg_min(x,y) ((x) < (y) ? (x) : (y))\n#else" in found
    plain = "#define ppcg_max(x,y) ((x) > (y) ? (x) : (y))"
    assert read_kernels(plain).text == f"{plain}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("__global__ void kernel0(float A[4][4]) {}", "several dimensions"),
        ("__global__ int kernel0(float *A) {}", "no kernel of a known form"),
        ("__global__ void k(int n) { __shared__ struct s x[4]; }", "in shared memory"),
        ("__global__ void k(int n) { __shared__ float x[n]; }", "in shared memory"),
    ],
)
def test_other_kernels_are_refused(text: str, said: str) -> None:
    with pytest.raises(NotUnderstoodError, match=said):
        read_kernels(text)


@pytest.mark.parametrize(
    ("types", "spelled", "size"),
    [
        ("", "char", 3),
        ("typedef char base;\n", "base", 3),
        ("typedef unsigned short u;\ntypedef u base;\n", "base", 6),
    ],
)
def test_types_may_have_names_of_their_own(types: str, spelled: str, size: int) -> None:
    text = f"{types}__global__ void kernel0({spelled} *a)\n{{\n  __shared__ {spelled} s[3];\n}}\n"
    (kernel,) = read_kernels(text).kernels
    assert kernel.shared_bytes == size


def test_all_recorded_code_is_read() -> None:
    answers = json.loads(STORE.read_text()).values()
    hosts = [answer["files"] for answer in answers if any("_host" in f for f in answer["files"])]
    assert len(hosts) > 15
    for files in hosts:
        host, kernels = ("".join(t for n, t in files.items() if n.endswith(end)) for end in
                         ("_host.cu", "_kernel.cu"))  # fmt: skip
        launched = [one.kernel for part in host_regions(host) for one in part.launches]
        assert launched == [kernel.name for kernel in read_kernels(kernels).kernels]


def test_sizes_are_those_that_ppcg_says() -> None:
    said = (
        "a warning\n{ kernel[i0] -> grid[o0, o1] : i0 = 0 and o0 = 256 and o1 = 256; kernel[i0] -> "
        "tile[o0, o1] : (i0 = 1 and o0 = 32 and o1 = 16) or (i0 = 0 and o0 = 8 and o1 = 4); "
        "kernel[i0] -> block[o0] : i0 = 1 and o0 = 512; "
        "kernel[i0] -> tile[o0] : i0 = 2 and o0 = 7 }\n"
    )
    found = used_sizes(said)
    assert found.tiles == {0: (8, 4), 1: (32, 16), 2: (7,)}
    assert found.blocks == {1: (512,)}
    assert not used_sizes("").tiles
