"""What a critical reading of callables found, and what happens now."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import eatss
from eatss.cache import Cache
from eatss.calls import plan
from eatss.calls.once import Once
from tests.jit.fake_cupy import FakeCupy
from tests.jit.sources import SCALED, STEPS, random

TWO = """
void first(int n, double A[n], double B[n]) {
#pragma scop
    for (int i = 0; i < n; i++)
        B[i] = A[i];
#pragma endscop
}
void second(int n, double B[n], double A[n + 3]) {
#pragma scop
    for (int i = 0; i < n + 3; i++)
        A[i] = 1;
#pragma endscop
}
"""


def refused(code: str, call: Callable[[], object]) -> eatss.EatssError:
    with pytest.raises(eatss.InputError) as caught:
        call()
    assert caught.value.code == f"EATSS-{code}", str(caught.value)
    return caught.value


def test_the_shapes_of_all_regions_are_checked() -> None:
    both = eatss.jit(TWO, gpu="h200")
    said = refused("J003", lambda: both(A=np.zeros(5), B=np.zeros(5)))
    assert "'A' has the shape (5,), and (8,) is needed: dimension 0 is n + 3" in str(said)
    refused("J003", lambda: both(A=np.zeros(8), B=np.zeros(5), n=5))


def test_a_source_that_has_changed_is_refused_until_it_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "scaled.c"
    path.write_text(SCALED)
    scaled = eatss.jit(path, gpu="h200")
    a, b = random(9), np.empty(9)
    scaled(factor=2, A=a, B=b)
    path.write_text(SCALED.replace("factor * A[i]", "factor + A[i]"))
    scaled(factor=2, A=a, B=b)  # nothing new has to be made
    assert (b == 2 * a).all()
    large, result = random(90), np.empty(90)
    said = refused("J022", lambda: scaled(factor=2, A=large, B=result))
    assert "has changed since it was called first" in str(said)
    scaled.clear()
    scaled(factor=2, A=large, B=result)
    assert (result == 2 + large).all()


def test_another_folder_is_no_other_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scaled.c").write_text(SCALED)
    monkeypatch.chdir(tmp_path)
    scaled = eatss.jit("scaled.c", gpu="h200")
    monkeypatch.chdir("/")
    b = np.empty(4)
    scaled(factor=2, A=np.ones(4), B=b)
    assert (b == 2).all()


def test_a_program_for_a_card_of_ones_own_is_callable() -> None:
    card = replace(eatss.load_profile("h200"), name="mycard")
    b = np.empty(4)
    eatss.codegen(SCALED, gpu=card).compile()(factor=3, A=np.ones(4), B=b, n=4)
    assert (b == 3).all()


def test_what_is_no_source_is_refused_at_once() -> None:
    def loops(n: int) -> None:
        """Have no decorator."""

    said = refused("C004", lambda: eatss.jit(loops))
    assert said.diagnostics[0].hint == "put @eatss.scop before the function"
    refused("C004", lambda: eatss.jit(5))
    refused("C004", lambda: eatss.select(loops, gpu="h200"))  # type: ignore[arg-type]


def test_headers_of_the_environment_are_no_part_of_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "size.h").write_text("#define N 100\n")
    cache = Cache(tmp_path / "cache")
    source = tmp_path / "elsewhere" / "f.c"
    source.parent.mkdir()
    source.write_text(
        '#include "size.h"\nvoid f(double A[N]) {\n#pragma scop\n'
        "    for (int i = 0; i < N; i++)\n        A[i] += 1;\n#pragma endscop\n}\n"
    )
    monkeypatch.setenv("CPATH", str(tmp_path))
    first = eatss.inspect(source)
    assert first.scops
    eatss.select(source, gpu="a100", cache=cache)
    assert not [one for one in cache.entries() if one.kind == "select"]


def test_a_name_of_a_folder_is_a_folder(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "kept"))  # type: ignore[arg-type]
    cache.put("select", "0" * 64, b"data")
    assert cache.get("select", "0" * 64) == b"data"


def test_scalars_are_as_strict_on_the_cpu_as_on_a_card(cupy: FakeCupy) -> None:
    scaled = eatss.jit(SCALED, gpu="h200")
    a, b = random(4), np.empty(4)
    for factor in ("1.5", [1.5], None, 1j):
        for there in (lambda array: array, cupy.array):
            code = "J001" if factor is None else "J011"
            refused(code, partial(scaled, factor=factor, A=there(a), B=there(b)))


def test_arrays_without_memory_or_with_a_mask_are_refused(cupy: FakeCupy) -> None:
    scaled = eatss.jit(SCALED, gpu="h200")
    nowhere = SimpleNamespace(
        __cuda_array_interface__={
            "data": (0, False), "shape": (4,), "typestr": "<f8", "version": 3,
        }
    )  # fmt: skip
    b = cupy.array(np.empty(4))
    said = refused("J010", lambda: scaled(factor=1, A=nowhere, B=b))
    assert "'A' has elements and no memory" in str(said)
    masked = np.ma.masked_array(random(4), [False, True, False, False])
    refused("J010", lambda: scaled(factor=1, A=masked, B=np.empty(4)))
    for broken in ({"typestr": "garbage"}, {"shape": None}, {"data": None}):
        given = {**nowhere.__cuda_array_interface__, "data": (8, False), **broken}
        one = SimpleNamespace(__cuda_array_interface__=given)
        refused("J010", partial(scaled, factor=1, A=one, B=b))


def test_swapped_bytes_are_named() -> None:
    scaled = eatss.jit(SCALED, gpu="h200")
    said = refused("J004", lambda: scaled(factor=1, A=random(4).astype(">f8"), B=np.empty(4)))
    assert "is of >f8, whose bytes are in the other order" in str(said)


def test_what_fails_leaves_nothing_behind() -> None:
    things: Once[int] = Once(4)

    def fail() -> int:
        raise ValueError

    for key in range(100):
        with pytest.raises(ValueError):  # noqa: PT011 - any will do
            things.get(key, fail)
    assert not things._making
    assert things.get(3, lambda: 7) == 7


def test_calls_of_endless_loops_are_refused(
    monkeypatch: pytest.MonkeyPatch, cupy: FakeCupy
) -> None:
    monkeypatch.setattr(plan, "MOST_LAUNCHES_OF_A_CALL", 9)
    steps = eatss.jit(STEPS, gpu="h200")
    steps(A=cupy.array(random(20)), COUNT=4)
    said = refused("J012", lambda: steps(A=cupy.array(random(20)), COUNT=5))
    assert said.diagnostics[0].hint == "call it several times, with fewer steps each"


def test_a_callable_that_goes_waits_for_its_calls(cupy: FakeCupy) -> None:
    eatss.jit(STEPS, gpu="h200")(A=cupy.array(random(20)), COUNT=2, stream=0x11)
    gc.collect()
    assert ("all done", 0) in cupy.log


def test_threads_do_not_share_the_memory_of_their_own_default_streams(cupy: FakeCupy) -> None:
    steps = eatss.jit(STEPS, gpu="h200")
    given = cupy.array(random(20))
    steps.prepare(A=given, COUNT=2)
    before = len(cupy.allocated)
    barrier = threading.Barrier(2)

    def call() -> None:
        barrier.wait()
        steps(A=given, COUNT=2, stream=2)
        barrier.wait()

    threads = [threading.Thread(target=call) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(cupy.allocated) == before + 2


def test_a_captured_call_keeps_its_code_and_memory_when_others_push_it_out(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eatss.calls.callable._MOST_PLANS", 1)
    steps = eatss.jit(STEPS, gpu="h200")
    given = cupy.array(random(20))
    steps.prepare(A=given, COUNT=2)
    spare = len(cupy.allocated)
    stream = cupy.cuda.Stream()
    stream.begin_capture()
    steps(A=given, COUNT=2, stream=stream)
    stream.end_capture()
    assert len(cupy.allocated) == spare  # the memory that prepare() put aside
    steps(A=cupy.array(random(30)), COUNT=2)
    assert len(steps._captured) == 1
    steps.clear()
    assert not steps._captured


def test_arrays_by_dlpack_are_waited_for_on_the_stream_of_the_call(cupy: FakeCupy) -> None:
    scaled = eatss.jit(SCALED, gpu="h200")

    class Foreign:
        """An array that only DLPack reads."""

        def __init__(self, host: Any) -> None:
            self.host = host

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, **_: object) -> object:
            return cupy.array(self.host)

    a, b = Foreign(random(6)), Foreign(np.empty(6))
    scaled(factor=2, A=a, B=b, stream=0x77)
    assert any(one[0] == "wait" and one[1] == 0x77 for one in cupy.log)


def test_info_is_told_while_graphs_come_and_go(cupy: FakeCupy) -> None:
    steps = eatss.jit(STEPS, gpu="h200")
    given = [cupy.array(random(20)) for _ in range(12)]
    failed: list[BaseException] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            try:
                steps.info()
            except RuntimeError as error:
                failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    for number in range(300):
        steps(A=given[number % 12], COUNT=6)
    ended.set()
    asking.join()
    assert not failed


def test_the_order_of_arguments_is_told_as_it_is() -> None:
    text = SCALED.replace("double factor", "double unused[n], double factor")
    scaled = eatss.jit(text, gpu="h200")
    assert list(scaled.__signature__.parameters) == ["n", "unused", "factor", "A", "B"]
    b = np.empty(3)
    scaled(3, None, 2.0, np.ones(3), b)
    assert (b == 2).all()


def test_modules_are_asked_for_where_nobody_loaded_cupy(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled = eatss.jit(SCALED, gpu="h200")

    class Tensor:
        """A tensor on a card."""

        layout = "strided"
        is_cuda = True
        dtype = "torch.float64"
        device = SimpleNamespace(type="cuda")

        def __init__(self) -> None:
            self.host = random(5)
            self.shape = self.host.shape
            self.requires_grad = False

        def data_ptr(self) -> int:
            return self.host.ctypes.data

        def is_contiguous(self) -> bool:
            return True

        def get_device(self) -> int:
            return 0

        def is_neg(self) -> bool:
            return False

        def is_conj(self) -> bool:
            return False

    torch = SimpleNamespace(
        Tensor=Tensor,
        strided="strided",
        _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 0x55),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "cupy", None)
    said = refused("J015", lambda: scaled(factor=2, A=Tensor(), B=Tensor()))
    assert "CuPy, which launches kernels, does not load" in str(said)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    one, other = Tensor(), Tensor()
    scaled(factor=2, A=one, B=other)
    assert (other.host == 2 * one.host).all()
    assert cupy.launched[-1].stream == 0x55
