"""Arrays of NumPy: the CPU computes what the original C computes, and says what is wrong."""

from __future__ import annotations

import ctypes
import inspect
import pydoc
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eatss
from eatss.base.cache import Cache
from eatss.frontend.options import DtypeName
from eatss.program import Program, load_program
from eatss.verify.build import Builder
from eatss.verify.compare import bounds_by_running, compare
from eatss.verify.data import FLAVOURS, Buffer, make_buffers
from eatss.verify.result import SizeResult
from tests.refusals import refusing
from tests.session.jit.fake_cupy import FakeArray
from tests.session.jit.sources import KERNELS, SCALED, STEPS, random, steps_of

FEW = {"TSTEPS": 3, "TMAX": 3, "NKH": 3, "NKW": 2}


def sizes_for(program: Program) -> dict[str, int]:
    """Return small sizes, no two alike."""
    return {
        one.name: FEW.get(one.name, 9 + 2 * number) for number, one in enumerate(program.parameters)
    }


def pointers(buffers: tuple[Buffer, ...]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(buffers))(*(buffer.address for buffer in buffers))


@pytest.mark.parametrize(("kernel", "dtype"), [("gemm", "double"), ("atax", "float")])
def test_results_are_those_of_the_original(
    kernel: str, dtype: DtypeName, made_before: Cache, tmp_path: Path
) -> None:
    """Equal in every bit, or within what rounding in another order may make of it."""
    function = eatss.jit(KERNELS / f"{kernel}.c", gpu="h200", cache=made_before)
    program = eatss.codegen(KERNELS / f"{kernel}.c", gpu="h200", dtype=dtype, cache=made_before)
    (entry,) = program.entries
    sizes = sizes_for(program)
    builder = Builder(program, KERNELS, tmp_path, "cpu")
    original = builder.call(builder.load(builder.original(sizes), sizes), 0)
    least = None
    for flavour in FLAVOURS:
        before = make_buffers(entry, sizes, flavour, 1)
        expected, actual = (tuple(one.copy() for one in before) for _ in range(2))
        original(pointers(expected))
        values: dict[str, Any] = {
            one.argument.source_name: one.array if one.argument.role == "array" else one.array[()]
            for one in actual
        }
        function(**values, **{name: sizes[name] for name in FEW if name in sizes})
        ran = function.program_for(**values, **{n: sizes[n] for n in FEW if n in sizes})
        bounds: Any = [None] * len(before)
        if not all(code.bit_exact for code in ran.kernels):
            numbers = builder.load(builder.numbers(sizes), sizes)
            bounds = bounds_by_running(before, numbers, builder.call(numbers, 0), {})
        blank = SizeResult(launcher="", sizes=(), status="ok")
        found = compare(expected, actual, bounds, blank)
        assert found.difference is None, f"{flavour}: {found}"
        assert found.compared
        least = min(found.not_finite, found.compared if least is None else least)
        if not found.not_finite:
            break
    assert least == 0, "no data gave finite results"


# what C may say -----------------------------------------------------------------------------


@pytest.fixture
def jit(made_before: Cache) -> Callable[..., eatss.JitFunction]:
    """Return ``eatss.jit`` for an H200, whose programs are kept from test to test."""

    def made(source: Any, **options: Any) -> eatss.JitFunction:
        return eatss.jit(source, **{"gpu": "h200", "cache": made_before, **options})

    return made


def test_types_follow_the_arrays(jit: Any) -> None:
    steps = jit(STEPS)
    for dtype in (np.float32, np.float64, np.float32):
        array = random(20, dtype=dtype)
        want = steps_of(array, 6)
        steps(A=array)
        assert array.dtype == dtype
        np.testing.assert_array_equal(array, want)
    assert steps.info().programs == 2


def test_several_functions_run_in_their_order(jit: Any) -> None:
    both = jit(
        SCALED + "void shifted(int n, double B[n], double C[n]) {\n#pragma scop\n"
        "    for (int i = 0; i < n - 1; i++)\n        C[i] = B[i + 1];\n#pragma endscop\n}\n"
    )
    a, b, c = random(9), np.zeros(9), np.zeros(9)
    both(factor=3, A=a, B=b, C=c)
    np.testing.assert_array_equal(b, 3 * a)
    np.testing.assert_array_equal(c[:-1], b[1:])
    assert c[-1] == 0
    one = jit(SCALED + "void other(int n) {}\n", function="scaled")
    one(n=9, factor=4, A=a, B=b)
    np.testing.assert_array_equal(b, 4 * a)


def test_scalars_written_and_globals_and_integers(jit: Any) -> None:
    count = jit(
        "int total;\nint table[8];\n"
        "void count(int n, int A[n], double unused[n], int weight) {\n#pragma scop\n"
        "    total = 0;\n"
        "    for (int i = 0; i < n; i++)\n        total += weight * A[i];\n"
        "    for (int i = 0; i < 8; i++)\n        table[i] = 2 * table[i];\n"
        "#pragma endscop\n}\n"
    )
    a = np.arange(50, dtype=np.int32)
    table, total = np.arange(8, dtype=np.int32), np.array(5, np.int32)
    count(A=a, weight=3, table=table, total=total)
    assert total == 3 * a.sum()
    np.testing.assert_array_equal(table, 2 * np.arange(8))
    for wrong, code in ((1.5, "J011"), ("3", "J011"), (2**40, "J012"), (None, "J003")):
        with pytest.raises(eatss.InputError, match=f"EATSS-{code}"):
            count(A=a, weight=wrong, table=table, total=total)
    with pytest.raises(eatss.InputError) as caught:
        count(A=a, weight=3, table=table, total=np.zeros(2, np.int32))
    assert str(caught.value).splitlines()[0] == (
        "error: 'total' is a scalar that the program writes, and the array has the shape (2,) "
        "[EATSS-J003]"
    )
    with pytest.raises(eatss.InputError, match=r"'A' is of int64, and .* in int32 \[EATSS-J004"):
        count(A=a.astype(np.int64), weight=3, table=table, total=total)


def test_sizes_that_no_array_determines(jit: Any) -> None:
    steps = jit(STEPS)
    array = random(20)
    want = steps_of(array, 2)
    steps(19, array, COUNT=np.int64(2))
    np.testing.assert_array_equal(array, want)
    steps(A=array, COUNT=0)
    np.testing.assert_array_equal(array, want)
    with pytest.raises(eatss.InputError) as caught:
        steps(A=array, COUNT=2.0)
    assert str(caught.value).splitlines()[0] == (
        "error: the size 'COUNT' is 2.0, which is not a whole number [EATSS-J011]"
    )


def test_arrays_of_no_elements_are_taken(jit: Any) -> None:
    rows = jit(
        "void rows(int n, int m, double a[n][m], double x[n]) {\n#pragma scop\n"
        "for (int i = 0; i < n; i++) { x[i] = 0; for (int j = 0; j < m; j++) x[i] += a[i][j]; }\n"
        "#pragma endscop\n}\n"
    )
    for shape in ((3, 0), (0, 3), (0, 0)):
        x = np.ones(shape[0])
        rows(a=np.ones(shape), x=x)
        np.testing.assert_array_equal(x, np.zeros(shape[0]))


def test_a_size_at_which_an_array_that_is_used_has_no_elements_is_refused(jit: Any) -> None:
    """At 1 no loop is empty; the program for the sizes of the source would write beyond ``A``."""
    first = jit(
        "#ifndef N\n#define N 8\n#endif\nvoid f(double A[N - 1][4], double x[N]) {\n#pragma scop\n"
        "for (int i = 0; i < N; i++) for (int j = 0; j < 4; j++) A[0][j] += x[i];\n"
        "#pragma endscop\n}\n"
    )
    a, x = np.zeros((7, 4)), random(8)
    first(A=a, x=x)
    np.testing.assert_allclose(a[0], x.sum(), rtol=1e-15)
    with refusing("EATSS-P007"):
        first(A=np.zeros((0, 4)), x=np.ones(1))


def test_a_program_that_is_there_is_called(made_before: Cache, tmp_path: Path) -> None:
    made = eatss.codegen(
        KERNELS / "gemm.c", gpu="h200", cache=made_before, output=tmp_path / "gemm"
    )
    a, b, c = random(9, 7), random(7, 8), np.zeros((9, 8))
    for program in (made, load_program(tmp_path / "gemm")):
        gemm = program.compile(cache=False)
        c[:] = 0
        gemm(1.0, 0.0, c, a, b)
        np.testing.assert_allclose(c, a @ b, rtol=1e-13)
        assert gemm.program_for(1.0, 0.0, c, a, b) is program
        with pytest.raises(eatss.InputError) as caught:
            gemm(1.0, 0.0, *(one.astype(np.float32) for one in (c, a, b)))
        assert caught.value.code in ("EATSS-J004", "EATSS-K010")


# calls --------------------------------------------------------------------------------------


def test_arguments_in_order_and_by_name(jit: Any) -> None:
    scaled = jit(SCALED)
    a = random(9)
    for positional in range(5):
        b = np.zeros(9)
        values = {"n": 9, "factor": 2.5, "A": a, "B": b}
        names = list(values)
        scaled(
            *(values[name] for name in names[:positional]),
            **{name: values[name] for name in names[positional:]},
        )
        np.testing.assert_array_equal(b, 2.5 * a)


def test_what_a_callable_says_of_itself(jit: Any) -> None:
    gemm = jit(KERNELS / "gemm.c")
    assert str(inspect.signature(gemm)) == "(alpha, beta, C, A, B, *, NI=4000, NJ=4000, NK=4000)"
    assert repr(gemm).startswith("<eatss.jit ")
    assert repr(gemm).endswith("gemm.c(alpha, beta, C, A, B, *, NI=4000, NJ=4000, NK=4000)>")
    assert "arrays" in pydoc.render_doc(gemm)
    specs = gemm.arrays(NI=2, NJ=3, NK=4)
    assert {name: spec.shape for name, spec in specs.items()} == {
        "C": (2, 3),
        "A": (2, 4),
        "B": (4, 3),
    }
    assert np.empty(*specs["C"]).dtype == np.float64
    with pytest.raises(eatss.InputError, match=r"no argument 'NX' \[EATSS-J001\]"):
        gemm.arrays(NX=3)
    values = gemm_values()
    gemm.prepare(**values)
    assert (gemm.info().programs, gemm.info().plans) == (1, 1)
    np.testing.assert_array_equal(values["C"], gemm_values()["C"])
    program = gemm.program_for(**values)
    assert program.name == "gemm"
    gemm.clear()
    assert (gemm.info().programs, gemm.info().plans) == (0, 0)
    gemm(**values)
    want = gemm_values()
    np.testing.assert_allclose(values["C"], 2 * want["A"] @ want["B"] + want["C"], rtol=1e-13)


def gemm_values() -> dict[str, Any]:
    return {
        "alpha": 2.0,
        "beta": 1.0,
        "C": random(5, 6),
        "A": random(5, 7),
        "B": random(7, 6, seed=1),
    }


# mistakes -----------------------------------------------------------------------------------


def changed(**other: Any) -> dict[str, Any]:
    values = gemm_values() | other
    return {name: value for name, value in values.items() if value is not Ellipsis}


MEMORY = random(200)
MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {
    "missing": (
        changed(A=..., B=None),
        "'gemm.c' is called without 'A', 'B' [EATSS-J001]",
        "it takes alpha, beta, C, A, B, *, NI=4000, NJ=4000, NK=4000",
    ),
    "unknown": (
        changed(alpa=1),
        "'gemm.c' has no argument 'alpa' [EATSS-J001]",
        "did you mean 'alpha'?",
    ),
    "shape": (
        changed(B=random(8, 6)),
        "'B' has the shape (8, 6), and (7, 6) is needed: dimension 0 is NK, NK=7 [EATSS-J003]",
        "the program takes B[NK × NJ]",
    ),
    "type": (
        changed(A=random(5, 7, dtype=np.float32)),
        "'A' is of float32, and the program computes it in float64 [EATSS-J004]",
        "convert it, A.astype('float64'), or spell the type in C by a macro: "
        "#ifndef DATA_TYPE, #define DATA_TYPE double, #endif",
    ),
    "gaps": (
        changed(A=random(7, 5).T),
        "'A' has gaps, or its last dimension is not the one that lies together [EATSS-J004]",
        "copy it, numpy.ascontiguousarray(A); for results copy back afterwards",
    ),
    "place": (
        changed(B=FakeArray(random(7, 6), 1)),
        "'C' is in the memory of the host, and 'B' is on card 1 [EATSS-J006]",
        "bring all arrays to one place",
    ),
    "alias": (
        changed(C=MEMORY[:30].reshape(5, 6), A=MEMORY[29:64].reshape(5, 7)),
        "'C' and 'A' share memory, and 'C' is written [EATSS-J006]",
        "give a copy of one: the kernels take them for different arrays, and results would depend "
        "on the order of threads (A.copy())",
    ),
    "no array": (
        changed(A=[[1.0]]),
        "'A' is list, which is no array [EATSS-J004]",
        "give an array of CuPy, PyTorch or NumPy, or one with DLPack or __cuda_array_interface__",
    ),
    "no number": (
        changed(alpha="two"),
        "the scalar 'alpha' is 'two', and a number that float64 holds is needed [EATSS-J011]",
        "give a number of Python or NumPy; an element of an array on a card has to be fetched "
        "first",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str, cupy: Any, jit: Any) -> None:
    values, said, hint = MISTAKES[mistake]
    gemm = jit(KERNELS / "gemm.c")
    with pytest.raises(eatss.InputError) as caught:
        gemm(**values)
    assert str(caught.value).splitlines()[0] == f"error: {said}"
    assert caught.value.diagnostics[0].hint == hint


def test_arrays_that_are_only_read_may_be_read_only_and_overlap(jit: Any) -> None:
    products = jit(KERNELS / "gemm.c")
    memory = random(40)
    c = np.zeros((5, 5))
    one, other = memory[:25].reshape(5, 5), memory[3:28].reshape(5, 5)
    one.flags.writeable = False
    products(1.0, 0.0, c, one, other)
    np.testing.assert_allclose(c, one @ other, rtol=1e-13)
    c.flags.writeable = False
    with pytest.raises(eatss.InputError) as caught:
        products(1.0, 0.0, c, one, other)
    assert str(caught.value).splitlines()[0] == (
        "error: 'C' is written by the program, and the array is read-only [EATSS-J004]"
    )
    assert caught.value.diagnostics[0].hint == "give a copy, C.copy()"


def test_sizes_that_no_program_runs_at_are_refused(jit: Any) -> None:
    function = jit(
        "void f(int n, int m, double A[n]) {\n#pragma scop\n"
        "    for (int i = 0; i < m; i++)\n        A[i] = 2 * A[i];\n#pragma endscop\n}\n"
    )
    array = random(9)
    function(A=array, m=9)
    with refusing("EATSS-J012") as caught:
        function(A=array, m=10)
    assert "does not run at n=9, m=10: " in str(caught.value)
    assert caught.value.diagnostics[0].hint == "call it with other sizes"


def test_arrays_on_a_card_need_cupy(jit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)

    class OnCard:
        __cuda_array_interface__ = {  # noqa: RUF012
            "data": (1 << 20, False),
            "typestr": "<f8",
            "shape": (9,),
            "version": 3,
        }

    with refusing("EATSS-J015") as caught:
        jit(SCALED)(factor=2, A=OnCard(), B=OnCard())
    assert str(caught.value).startswith(
        "error: 'A' is on a card, and CuPy, which launches kernels, does not load: "
    )
    assert caught.value.diagnostics[0].hint == "pip install 'eatss[gpu]'"


def test_without_a_compiler_the_cpu_says_so(jit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scaled = jit(SCALED)
    scaled.program_for(factor=2, A=np.ones(9), B=np.ones(9))
    monkeypatch.setenv("PATH", "")
    with refusing("EATSS-V010"):
        scaled(factor=2, A=np.ones(9), B=np.ones(9))


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("B[i] = factor * A[i]", "B[i + n] = factor * A[i]", "beside"),
        ("B[i] = factor * A[i]", "B[0] = factor * A[i]", "writes what another thread writes"),
    ],
)
def test_generated_code_that_does_what_it_may_not_is_a_fault_of_ours(
    right: str, wrong: str, said: str, jit: Any
) -> None:
    program = jit(SCALED).program_for(factor=2, A=np.ones(9), B=np.ones(9))
    assert right in program.text
    broken = replace(program, text=program.text.replace(right, wrong))
    with pytest.raises(eatss.InternalError, match=said) as caught:
        broken.compile(cache=False)(factor=2, A=np.ones(9), B=np.ones(9))
    assert caught.value.code == "EATSS-J900"
    assert caught.value.diagnostics[0].message.startswith("'scaled_cuda' failed on the CPU: ")
