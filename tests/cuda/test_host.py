"""Launchers free what they have allocated, whatever fails, and zeros stand where they belong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from eatss.cuda.host import launcher_text
from eatss.program import Argument, Constant, IntExpr, Name, Temporary
from tests.plans import kernel_code, one_launch, plan

RUNTIME = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
typedef int cudaError_t;
typedef void *cudaStream_t;
struct dim3 { dim3(long = 1, long = 1, long = 1) {} };
static std::set<void *> held;
static int calls = 0, fails_at = 0;
static bool fails() { return ++calls == fails_at; }
template <typename T> int cudaMalloc(T **p, size_t bytes)
{
    if (fails()) { *p = (T *)8; return 2; }
    *p = (T *)memset(malloc(bytes), 0xff, bytes);
    held.insert(*p);
    return 0;
}
static int cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream)
{
    if (fails()) return 700;
    if (!held.count(p) || stream != (void *)4) abort();
    memset(p, value, bytes);
    return 0;
}
static int cudaFree(void *p)
{
    if (!held.erase(p)) abort();
    free(p);
    return 0;
}
template <typename Left, typename Right>
static auto eatss_max(Left a, Right b) { return a > b ? a : b; }
static int cudaGetLastError() { return 0; }
static int *first, *third;
static double *second;
#define EATSS_LAUNCH(kernel, grid, block, shared, stream, a, b, c) \
    (first = a, second = b, third = c, \
     printf("%d %d %d;", first[0] | first[9], second[0] == 0, third[0] | third[6]))
"""
MAIN = r"""
int main(int, char **words)
{
    fails_at = atoi(words[1]);
    const int code = one_cuda(7, (void *)4);
    printf("%d %d %zu", code, calls, held.size());
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a launcher of three temporaries, with functions of the runtime one of which fails."""
    folder = tmp_path_factory.mktemp("host")
    size = Argument(
        name="n", role="parameter", element_type="int", shape=(), reads=True, writes=False,
        source="parameter", source_name="n", position=0,
    )  # fmt: skip
    shapes: dict[str, IntExpr] = {"counts": Constant(10), "parts": Constant(5), "more": Name("n")}
    temporaries = tuple(
        Temporary(
            name=name,
            element_type="double" if name == "parts" else "int",
            shape=(extent,),
            zeroed=name != "parts",
        )
        for name, extent in shapes.items()
    )
    entry = one_launch("one", "k0", [size], temporaries=temporaries)
    kernel = kernel_code("k0", arguments=tuple(shapes))
    text = launcher_text(plan("one", kernels=(kernel,)), entry, const=True)
    (folder / "one.cpp").write_text(RUNTIME + text + MAIN)
    subprocess.run(["g++", "-std=c++17", "one.cpp", "-o", "one"], check=True, cwd=folder)
    return folder / "one"


def run(program: Path, fails_at: int) -> str:
    command = [str(program), str(fails_at)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_only_what_is_to_be_zero_is(program: Path) -> None:
    assert run(program, 0) == "0 0 0;0 5 0"


@pytest.mark.parametrize(("fails_at", "code"), [(1, 2), (2, 700), (3, 2), (4, 2), (5, 700)])
def test_what_was_allocated_is_freed_when_a_call_fails(
    program: Path, fails_at: int, code: int
) -> None:
    assert run(program, fails_at) == f"{code} {fails_at} 0"
