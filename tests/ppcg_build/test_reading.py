"""What PPCG wrote and how it is asked: arguments, integers, files, mismatches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eatss
from eatss.ppcg_build.host_code import (
    HostRegion,
    Launched,
    NotUnderstoodError,
    _integer,
    _parsed,
    host_regions,
)
from eatss.ppcg_build.program import KernelText, SharedArray, mismatches, read_kernels
from eatss.ppcg_build.run import ppcg_arguments, used_tiles
from eatss.program import Constant, HostIf, HostLoop, IntExpr, Launch, Name, evaluate
from tests.ppcg_build.cases import KERNELS
from tests.ppcg_build.recorded_ppcg import STORE
from tests.refusals import refusing

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


def test_a_grid_of_one_block_and_a_block_of_one_thread_have_no_sizes() -> None:
    found = region(LAUNCH.replace("(16, 32)", "").replace("(n, 2)", ""))
    assert [one.block for one in found.launches] == [(1, 1, 1)]
    assert found.steps == (Launch(kernel="kernel0", grid=(Constant(1),) * 3),)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("A[0] = 1;", "a statement stays on the host"),
        (LAUNCH.replace("dim3 k0_dimGrid(n, 2);", ""), "no known form"),
        (LAUNCH.replace("16, 32", "16, 32, 1, 1"), "no known form"),
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
        ("if (n, n) ;", "no integer expression"),
        ("cudaCheckReturn(cudaMalloc((void **) &dev_B, (4) * sizeof(int)));", "no known type"),
    ],
)
def test_what_is_of_no_known_form_is_refused(statement: str, said: str) -> None:
    with pytest.raises(NotUnderstoodError, match=said):
        region(statement)


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


def test_comments_and_texts_declare_nothing() -> None:
    text = (
        "#include \\\n  <a.h>\n// __global__ void old(int n)\n/* __shared__ int a[2]; */\n"
        '__global__ void kernel0(int n)\n{\n    f("__shared__ int b[2];");\n'
        "    __shared__ int shared_A [4] [ 2 ];\n}\n"
    )
    found = read_kernels(text)
    (kernel,) = found.kernels
    assert (kernel.name, [one.extents for one in kernel.shared]) == ("kernel0", [(4, 2)])
    assert found.text.count("EATSS_SHARED_AT") == 1
    assert "a.h" not in found.text


@pytest.mark.parametrize("words", [["a.c", "-D"], ["a.c", "-D", "--report"]])
def test_an_option_without_its_value_is_named(words: list[str]) -> None:
    with refusing("EATSS-R001", "'-D' is given no value"):
        ppcg_arguments(words)


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
    found = used_tiles(said)
    assert found == {0: (8, 4), 1: (32, 16), 2: (7,)}
    assert not used_tiles("")


NAMES = {"n": 37, "m": 5, "c0": 12}


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return texts of operators on texts, with brackets or without."""
    both = st.tuples(inner, inner)
    return st.one_of(
        both.flatmap(lambda pair: st.sampled_from([f"{pair[0]} {o} {pair[1]}" for o in "+-*"])),
        both.map(lambda pair: f"ppcg_min({pair[0]}, {pair[1]})"),
        both.map(lambda pair: f"ppcg_max({pair[0]}, {pair[1]})"),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: f"ppcg_fdiv_q({p[0]}, {p[1]})"),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: f"({p[0]}) / {p[1]}"),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: f"({p[0]}) % {p[1]}"),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-({text})"),
    )


ATOMS = st.one_of(st.sampled_from(sorted(NAMES)), st.integers(0, 99).map(str))
ARITHMETIC = st.recursive(ATOMS, _combined, max_leaves=8)
PYTHON = {"ppcg_min": min, "ppcg_max": max, "ppcg_fdiv_q": lambda a, b: a // b}


def integer_of(text: str) -> IntExpr:
    """Return the integer expression that a text is."""
    (statement,) = _parsed(f"{{ {text}; }}").block_items
    return _integer(statement)


def value(text: str) -> int:
    """Return what Python makes of a text; between these operators it binds as C does."""
    return int(eval(text.replace(" / ", " // "), dict(PYTHON), dict(NAMES)))


@given(ARITHMETIC)
def test_arithmetic_has_the_value_that_it_has_in_c(text: str) -> None:
    assert evaluate(integer_of(text), NAMES) == value(text)


@given(ARITHMETIC, ARITHMETIC, ARITHMETIC, st.sampled_from(["<", "<=", ">", ">=", "=="]))
def test_conditions_choose(left: str, right: str, other: str, relation: str) -> None:
    text = f"{left} {relation} {right} && {other} >= 0 ? {left} : {other}"
    holds = eval(f"({value(left)} {relation} {value(right)})") and value(other) >= 0
    assert evaluate(integer_of(text), NAMES) == (value(left) if holds else value(other))


@pytest.fixture(scope="module")
def selection() -> eatss.Selection:
    return eatss.select(KERNELS / "gemm.c", gpu="a100", objective="paper", model="paper")


def text(shared: int = 0) -> KernelText:
    array = SharedArray(name="s", element_type="double", extents=(shared // 8,), place=0)
    return KernelText(name="kernel0", parameters=(), shared=(array,) if shared else ())


def codes(
    selection: eatss.Selection,
    *,
    block: Sequence[int] | None = None,
    tile: Sequence[int] | None = None,
    shared: int = 0,
    kernels: int = 1,
) -> list[str]:
    """Return code, severity and subject of what differs from what was selected."""
    (kernel,) = selection.kernels
    asked = tuple(size for _, size in kernel.tile_sizes)
    threads = tuple(size for _, size in reversed(kernel.block))
    x, y, z = (*(block or threads), 1, 1)[:3]
    launched = Launched(kernel="kernel0", block=(x, y, z), arguments=())
    used = {0: tuple(tile or asked)}
    found = mismatches(selection, ["kernel0"] * kernels, [launched], [text(shared)], used)
    subjects = ("generated", "tiles", "the tile", "blocks", "shared memory")
    of = [next(word for word in subjects if word in one.message) for one in found]
    return [
        f"{one.code[-4:]} {one.severity.value}: {subject}"
        for one, subject in zip(found, of, strict=True)
    ]


def test_what_was_asked_for_is_no_mismatch(selection: eatss.Selection) -> None:
    assert codes(selection) == []


def test_other_sizes_are_an_error(selection: eatss.Selection) -> None:
    assert codes(selection, tile=(7, 8, 9)) == ["R020 error: the tile"]
    assert codes(selection, block=(1024, 1)) == ["R020 error: blocks"]
    assert codes(selection, block=(1, 1, 2)) == ["R020 error: blocks"]


def test_fewer_threads_than_asked_for_are_a_warning(selection: eatss.Selection) -> None:
    assert codes(selection, block=(1, 1)) == ["R020 warning: blocks"]


def test_words_may_come_in_any_order() -> None:
    words = ["-D", "N=4", "-o", "build", "gemm.c", "-Iinc", "--ctx=[n] -> { : n > 0 }", "-DM"]
    found = ppcg_arguments(words)
    assert found.source == Path("gemm.c")
    assert found.output == Path("build")
    assert found.defines == ("N=4", "M")
    assert found.include_dirs == (Path("inc"),)
    assert found.options == (
        "-DN=4", "-DM", f"-I{Path('inc').absolute()}", "--ctx=[n] -> { : n > 0 }",
    )  # fmt: skip


@pytest.mark.parametrize(
    "option",
    ["--sizes={ }", "--save-schedule=x", "--load-schedule=x", "--max-shared-memory=1", "-S16",
     "--tile-size=16", "--unroll-gpu-tile", "--hybrid", "--target=c"],
)  # fmt: skip
def test_what_eatss_chooses_itself_cannot_be_given(option: str) -> None:
    with refusing("EATSS-R001"):
        ppcg_arguments(["gemm.c", option])
