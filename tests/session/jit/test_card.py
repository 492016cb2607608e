"""Calls with arrays on a card: what is launched, with which arguments, on which stream."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import eatss
from eatss.base.cache import Cache
from eatss.measurement.arguments import launches
from eatss.session.jit.callable import JitFunction
from tests.session.jit.fake_cupy import DriverError, FakeArray, FakeCupy
from tests.session.jit.sources import KERNELS, SCALED, STEPS, random, steps_of

Jit = Callable[..., JitFunction]


@pytest.fixture
def jit(made_before: Cache) -> Jit:
    """Return ``eatss.jit`` for an H200, whose programs are kept from test to test."""

    def made(source: Any, **options: Any) -> JitFunction:
        return eatss.jit(source, **{"gpu": "h200", "cache": made_before, **options})

    return made


def arrays_for(function: JitFunction, **sizes: int) -> dict[str, npt.NDArray[Any]]:
    """Return random arrays for a call."""
    return {
        name: random(*spec.shape, dtype=spec.dtype, seed=number) + 1
        for number, (name, spec) in enumerate(function.arrays(**sizes).items())
    }


SIZES = {
    "atax": {"NX": 37, "NY": 41},
    "jacobi-2d": {"TSTEPS": 5, "N": 12},
}


@pytest.mark.parametrize("kernel", SIZES)
def test_the_card_gets_the_launches_of_the_plan_and_computes_what_the_cpu_does(
    kernel: str, cupy: FakeCupy, jit: Jit
) -> None:
    sizes = SIZES[kernel]
    function = jit(KERNELS / f"{kernel}.c", tile_time=False)
    on_card = arrays_for(function, **sizes)
    on_host = {name: array.copy() for name, array in on_card.items()}
    scalars = {
        name: 1.5 for name in function.__signature__.parameters if name not in {*on_card, *sizes}
    }
    given = {name: cupy.array(array) for name, array in on_card.items()}
    steps = {name: value for name, value in sizes.items() if name in ("TMAX", "TSTEPS")}
    function(**given, **scalars, **steps)
    function(**on_host, **scalars, **steps)
    for name, array in on_host.items():
        np.testing.assert_array_equal(on_card[name], array)
    program = function.program_for(**given, **scalars, **steps)
    wanted = list(launches(program, sizes))
    assert len(cupy.launched) == len(wanted)
    addresses = {name: array.ctypes.data for name, array in on_card.items()}
    addresses |= {name: _bits(value) for name, value in scalars.items()}
    for seen, want in zip(cupy.launched, wanted, strict=True):
        assert (seen.kernel, seen.grid, seen.block) == (want.kernel, want.grid, want.block)
        assert (seen.shared_bytes, seen.stream, seen.device) == (want.shared_bytes, 0, 0)
        values = {**addresses, **{name: value % 2**32 for name, value in want.integers}}
        assert seen.values == tuple(values[name] for name in want.arguments)


def _bits(value: float) -> int:
    return int(np.float64(value).view(np.uint64))


def test_dynamic_shared_memory_is_opted_into(cupy: FakeCupy, jit: Jit) -> None:
    function = jit(KERNELS / "gemm.c", placements={"A": "shared", "B": "shared"})
    sizes = {"NI": 40, "NJ": 40, "NK": 40}
    given = {name: cupy.array(array) for name, array in arrays_for(function, **sizes).items()}
    function(alpha=1, beta=0, **given)
    (code,) = function.program_for(alpha=1, beta=0, **given).kernels
    assert code.shared_bytes > 0
    assert [one[1:] for one in cupy.attributes] == [(8, code.shared_bytes)] * code.dynamic_shared
    assert cupy.launched[0].shared_bytes == code.shared_bytes * code.dynamic_shared


# streams ------------------------------------------------------------------------------------


class StreamOfAnother:
    """A stream by CUDA's protocol for Python."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 0x33


@pytest.mark.parametrize(
    ("stream", "address"),
    [
        (SimpleNamespace(ptr=0x11), 0x11),
        (SimpleNamespace(cuda_stream=0x22), 0x22),
        (StreamOfAnother(), 0x33),
        (0x44, 0x44),
        (SimpleNamespace(ptr=0), 0),
    ],
)
def test_the_stream_given_is_taken_on_every_call(
    stream: Any, address: int, cupy: FakeCupy, jit: Jit
) -> None:
    scaled = jit(SCALED)
    a, b = cupy.array(random(9)), cupy.array(random(9))
    with cupy.cuda.Stream():
        for _ in range(3):
            scaled(factor=2, A=a, B=b, stream=stream)
    assert [one.stream for one in cupy.launched] == [address] * 3


def test_the_current_stream_is_that_of_the_call(cupy: FakeCupy, jit: Jit) -> None:
    scaled = jit(SCALED)
    a, b = cupy.array(random(9)), cupy.array(random(9))
    own = cupy.cuda.Stream()
    for _ in range(2):
        scaled(factor=2, A=a, B=b)
        with own:
            scaled(factor=2, A=a, B=b)
    assert [one.stream for one in cupy.launched] == [0, own.ptr, 0, own.ptr]


def test_a_program_may_call_its_own_argument_stream(cupy: FakeCupy, jit: Jit) -> None:
    function = jit(SCALED.replace("factor", "stream"))
    a, b = random(9), random(9)
    for number in (2.0, 3.0):
        function(stream=number, A=cupy.array(a), B=cupy.array(b))
        np.testing.assert_array_equal(b, number * a)
    assert [one.stream for one in cupy.launched] == [0, 0]


class Tensor:
    """A tensor of PyTorch on a card."""

    is_cuda = True
    layout = "strided"

    def __init__(self, host: npt.NDArray[Any]) -> None:
        self.host = host
        self.shape = host.shape
        self.dtype = f"torch.{host.dtype}"

    def is_neg(self) -> bool:
        return False

    def is_conj(self) -> bool:
        return False

    def is_contiguous(self) -> bool:
        return self.host.flags.c_contiguous

    def data_ptr(self) -> int:
        return self.host.ctypes.data

    def get_device(self) -> int:
        return 0


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a PyTorch whose current stream is ``torch.stream``."""
    fake: Any = SimpleNamespace(
        Tensor=Tensor,
        strided="strided",
        stream=0x77,
        _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: fake.stream),
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


@pytest.mark.parametrize("quick", [True, False])
def test_tensors_take_the_current_stream_of_pytorch(
    quick: bool, cupy: FakeCupy, torch: SimpleNamespace, jit: Jit
) -> None:
    if not quick:
        torch._C = SimpleNamespace()
        torch.cuda = SimpleNamespace(
            current_stream=lambda device: SimpleNamespace(cuda_stream=torch.stream)
        )
    scaled = jit(SCALED)
    a, b = random(9), random(9)
    for stream in (0x77, 0x77, 0):
        torch.stream = stream
        b[:] = 0
        scaled(factor=2, A=Tensor(a), B=Tensor(b))
        np.testing.assert_array_equal(b, 2 * a)
    assert [one.stream for one in cupy.launched] == [0x77, 0x77, 0]


def test_arrays_of_two_libraries_need_one_stream(
    cupy: FakeCupy, torch: SimpleNamespace, jit: Jit
) -> None:
    scaled = jit(SCALED)
    a, b = random(9), random(9)
    mixed: dict[str, Any] = {"factor": 2, "A": Tensor(a), "B": cupy.array(b)}
    for _ in range(2):
        with pytest.raises(eatss.InputError, match="EATSS-J006") as caught:
            scaled(**mixed)
        assert "say which one it is" in (caught.value.diagnostics[0].hint or "")
        scaled(**mixed, stream=0x55)
    torch.stream = 0
    scaled(**mixed)
    assert [one.stream for one in cupy.launched] == [0x55, 0x55, 0]


# graphs and temporaries ---------------------------------------------------------------------


def test_many_launches_are_captured_the_second_time_and_replayed(cupy: FakeCupy, jit: Jit) -> None:
    steps = jit(STEPS, tile_time=False, fuse_rows=False)
    array = random(40)
    given = cupy.array(array)
    for number in range(1, 5):
        want = steps_of(array, 6)
        steps(A=given)
        np.testing.assert_array_equal(array, want)
        assert len(cupy.launched) == 12 * number
        assert steps.info().graphs == (number > 1)
    assert [one for one in cupy.log if one[0] == "graph"] == [("graph", 0, 12)] * 3


def test_a_graph_is_of_its_arrays_and_scalars(cupy: FakeCupy, jit: Jit) -> None:
    steps = jit(
        STEPS.replace("int n,", "int n, double x,").replace("(DATA_TYPE)2", "x"),
        tile_time=False,
        fuse_rows=False,
    )
    one, other = random(40), random(40, seed=1)
    for _ in range(3):
        for array in (one, other):
            for x in (2.0, 0.5):
                want = array.copy()
                for _step in range(6):
                    want[:-1] = want[:-1] + x * want[1:]
                steps(x=x, A=cupy.array(array))
                np.testing.assert_array_equal(array, want)
    assert steps.info().graphs == 4
    assert len(cupy.log) == 8


def test_graphs_are_replayed_on_the_stream_of_the_call(cupy: FakeCupy, jit: Jit) -> None:
    steps = jit(STEPS, tile_time=False, fuse_rows=False)
    given = cupy.array(random(40))
    for stream in (0x11, 0x22, 0x33, 0):
        steps(A=given, stream=stream)
    assert [one for one in cupy.log if one[0] == "graph"] == [
        ("graph", stream, 12) for stream in (0x22, 0x33, 0)
    ]


def test_graphs_that_were_not_used_for_long_go(cupy: FakeCupy, jit: Jit) -> None:
    steps = jit(STEPS, tile_time=False, fuse_rows=False)
    arrays = [random(40, seed=seed) for seed in range(12)]
    for array in arrays:
        for _ in range(2):
            steps(A=cupy.array(array))
    assert steps.info().graphs == 8
    waits = [one for one in cupy.log if one[0] == "synchronized"]
    assert len(waits) == 4, "memory of a graph goes when the card is done with it"
    before, want = len(cupy.launched), steps_of(arrays[0], 6)
    steps(A=cupy.array(arrays[0]))
    assert cupy.log[-1][0] != "graph"
    np.testing.assert_array_equal(arrays[0], want)
    assert len(cupy.launched) == before + 12


def test_the_caller_s_own_capture_gets_launches_and_memory_that_lasts(
    cupy: FakeCupy, jit: Jit
) -> None:
    steps = jit(STEPS, tile_time=False, fuse_rows=False)
    array = random(40)
    given, stream = cupy.array(array), cupy.cuda.Stream()
    for _ in range(2):
        steps(A=given)
    memory = len(cupy.allocated)
    graphs = []
    for _ in range(2):
        stream.begin_capture()
        with stream:
            steps(A=given)
        graphs.append(stream.end_capture())
    assert [len(graph.launches) for graph in graphs] == [12, 12]
    assert len(cupy.allocated) == memory + 2, "graphs of the caller may run at the same time"
    for graph in graphs:
        want = steps_of(array, 6)
        graph.launch(stream)
        np.testing.assert_array_equal(array, want)


def test_prepared_calls_compile_nothing_while_a_graph_is_captured(cupy: FakeCupy, jit: Jit) -> None:
    steps = jit(STEPS, cache=False, tile_time=False)
    array = random(40)
    steps.prepare(39, cupy.array(array))
    assert not cupy.launched
    made = len(cupy.compiled)
    assert made == 1
    stream = cupy.cuda.Stream()
    stream.begin_capture()
    steps(A=cupy.array(array), stream=stream)
    stream.end_capture()
    assert len(cupy.compiled) == made
    assert not cupy.launched


def test_temporaries_are_of_a_stream_and_not_shared(cupy: FakeCupy, jit: Jit) -> None:
    steps = jit(STEPS, tile_time=False, fuse_rows=False)
    given = cupy.array(random(40))
    for stream in (0x11, 0x22, 0x11, 0x22):
        steps(A=given, COUNT=2, stream=stream)
    assert len(cupy.allocated) == 2
    (name,) = {one.kernel for one in cupy.launched[:1]}
    used = {(one.stream, one.values[-1]) for one in cupy.launched if one.kernel == name}
    assert len(used) == 2


# devices, threads, errors -------------------------------------------------------------------


def test_each_card_has_its_own_code(cupy: FakeCupy, jit: Jit) -> None:
    scaled = jit(SCALED)
    a, b = random(9), random(9)
    for device in (0, 1, 0, 1):
        scaled(factor=2, A=cupy.array(a, device), B=cupy.array(b, device))
    assert [one.device for one in cupy.launched] == [0, 1, 0, 1]
    assert cupy.device() == 0, "the current card is left as it was"
    assert len(cupy.loaded) == 2


def test_a_thread_that_cuda_does_not_know_gets_a_context(cupy: FakeCupy, jit: Jit) -> None:
    scaled = jit(SCALED)
    a, b = random(9), random(9)
    scaled(factor=2, A=cupy.array(a), B=cupy.array(b))
    failed: list[Exception] = []

    def call() -> None:
        try:
            scaled(factor=3, A=cupy.array(a), B=cupy.array(b))
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert not failed
    np.testing.assert_array_equal(b, 3 * a)


def test_what_the_card_refuses_is_an_error_of_ours(cupy: FakeCupy, jit: Jit) -> None:
    scaled = jit(SCALED)
    given = {"A": cupy.array(random(9)), "B": cupy.array(random(9))}
    for error in (DriverError, cupy.cuda.runtime.CUDARuntimeError, DriverError):
        cupy.breaks = error("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal access\nmore")
        with pytest.raises(eatss.InputError) as caught:
            scaled(factor=2, **given)
        assert str(caught.value).splitlines()[0] == (
            "error: 'scaled' does not run on this card: "
            "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal access [EATSS-J015]"
        )
    scaled(factor=2, **given)


def test_blocks_beyond_what_registers_allow_are_refused(cupy: FakeCupy, jit: Jit) -> None:
    cupy.most_threads = 16
    with pytest.raises(eatss.InputError, match=r"blocks of \d+ threads.*card takes 16.*J015"):
        jit(SCALED)(factor=2, A=cupy.array(random(900)), B=cupy.array(random(900)))


def test_much_stack_is_warned_of_where_a_program_is_called(cupy: FakeCupy, jit: Jit) -> None:
    scaled = jit(SCALED)
    given = {"A": cupy.array(random(900)), "B": cupy.array(random(900))}
    cupy.stack_bytes = 3664
    with pytest.warns(eatss.EatssWarning, match="'scaled_k0' has 3664 bytes of stack") as caught:
        scaled(factor=2, **given)
    (warning,) = (one for one in caught if one.category is eatss.EatssWarning)
    assert str(warning.message).splitlines()[0].endswith("[EATSS-V047]")
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled(factor=2, **given)


def test_text_that_nvrtc_refuses_is_an_error_of_ours(
    cupy: FakeCupy, jit: Jit, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"A": cupy.array(random(9)), "B": cupy.array(random(9))}
    monkeypatch.setattr("eatss.measurement.nvrtc.compile_text", lambda *_: (None, "no such type"))
    with pytest.raises(eatss.InputError) as caught:
        jit(SCALED, cache=False)(factor=2, **given)
    assert str(caught.value).splitlines()[0] == (
        "error: NVRTC does not compile 'scaled': no such type [EATSS-J015]"
    )

    def missing(*_: object) -> None:
        raise RuntimeError("libnvrtc.so.13:\n not found")

    monkeypatch.setattr("eatss.measurement.nvrtc.compile_text", missing)
    with pytest.raises(eatss.InputError, match=r"libnvrtc.so.13: not found \[EATSS-J015\]"):
        jit(SCALED, cache=False)(factor=2, **given)


# the fast path ------------------------------------------------------------------------------


def test_known_calls_are_checked_as_the_first(cupy: FakeCupy, jit: Jit) -> None:
    scaled = jit(SCALED)
    memory = random(30)
    a, b = cupy.array(memory[:9]), cupy.array(memory[9:18])
    scaled(factor=2, A=a, B=b)
    scaled(factor=2, A=a, B=b)
    seen = len(cupy.launched)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("J001", {"factor": 2, "A": a}),
        ("J001", {"factor": 2, "A": a, "B": b, "C": 3}),
        ("J003", {"factor": 2, "A": a, "B": cupy.array(memory[9:19])}),
        ("J004", {"factor": 2, "A": a, "B": cupy.array(random(9, dtype=np.float32))}),
        ("J004", {"factor": 2, "A": a, "B": cupy.array(memory[10:28:2])}),
        ("J006", {"factor": 2, "A": a, "B": cupy.array(memory[9:18], device=1)}),
        ("J006", {"factor": 2, "A": a, "B": cupy.array(memory[8:17])}),
        ("J004", {"factor": 2, "A": a, "B": None.__class__}),
        ("J011", {"factor": "two", "A": a, "B": b}),
        ("J011", {"factor": 2, "A": a, "B": b, "stream": [1]}),
    ]
    for code, values in wrong:
        for _ in range(2):
            with pytest.raises(eatss.InputError, match=f"EATSS-{code}"):
                scaled(**values)
    with pytest.raises(eatss.InputError, match="EATSS-J001"):
        scaled(A=a, B=b)
    with pytest.raises(eatss.InputError, match="EATSS-J001"):
        scaled(9, 2, a, b, 5)
    with pytest.raises(eatss.InputError, match="EATSS-J001"):
        scaled(9, 2, a, b, B=b)
    with pytest.raises(eatss.InputError, match="EATSS-J003"):
        scaled(n=8, factor=2, A=a, B=b)
    assert len(cupy.launched) == seen


# arrays of other libraries ------------------------------------------------------------------


def interface_of(array: npt.NDArray[Any], **other: Any) -> SimpleNamespace:
    given = {"data": (array.ctypes.data, False), "version": 3}
    return SimpleNamespace(__cuda_array_interface__={**given, **other}, host=array)


def test_arrays_by_the_cuda_array_interface(cupy: FakeCupy, jit: Jit) -> None:
    scaled = jit(SCALED)
    a, b = random(9), random(9)
    scaled(factor=2, A=interface_of(a), B=interface_of(b), stream=0x11)
    np.testing.assert_array_equal(b, 2 * a)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("J004", {"A": interface_of(random(18)[::2]), "B": interface_of(b)}),
        ("J004", {"A": interface_of(a, mask=interface_of(a)), "B": interface_of(b)}),
        ("J004", {"A": interface_of(a), "B": interface_of(b, data=(b.ctypes.data, True))}),
    ]
    for code, values in wrong:
        with pytest.raises(eatss.InputError, match=f"EATSS-{code}"):
            scaled(factor=2, **values)


class ByDlpack:
    """An array that speaks DLPack only; kind 2 is CUDA, 1 the host."""

    def __init__(self, host: npt.NDArray[Any], kind: int) -> None:
        self.host = host
        self.kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.host.__dlpack__()


@pytest.mark.parametrize("kind", [1, 2])
def test_arrays_by_dlpack(kind: int, cupy: FakeCupy, jit: Jit) -> None:
    a, b = random(9), random(9)
    jit(SCALED)(factor=2, A=ByDlpack(a, kind), B=cupy.array(b) if kind == 2 else b)
    np.testing.assert_array_equal(b, 2 * a)
    assert len(cupy.launched) == (kind == 2)


def test_cells_and_unused_arguments_on_a_card(cupy: FakeCupy, jit: Jit) -> None:
    function = jit(
        "double total;\n"
        "void f(int n, double A[n], double unused[n]) {\n#pragma scop\n"
        "    total = 0;\n    for (int i = 0; i < n; i++) total += A[i];\n"
        "#pragma endscop\n}\n"
    )
    a, total = random(50), np.zeros(1)
    for _ in range(2):
        total[:] = 7
        function(A=cupy.array(a), total=cupy.array(total))
        np.testing.assert_allclose(total[0], a.sum(), rtol=1e-13)
        function(A=cupy.array(a), unused=FakeArray(random(3)), total=cupy.array(total))


NEW_PRODUCT = """
void product(int n, int m, int l, float C[n][m], float A[n][l], float B[l][m]) {
#pragma scop
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            C[i][j] = 0;
            for (int k = 0; k < l; k++)
                C[i][j] += A[i][k] * B[k][j];
        }
#pragma endscop
}
"""


def test_counters_of_blocks_that_share_steps_are_zero_before_and_behind_each_call(
    cupy: FakeCupy, jit: Jit
) -> None:
    """Memory that a card hands out has ones here; parts of sums keep them where no block is."""
    product = jit(
        NEW_PRODUCT, stream={"k": 5}, tiles={"i": 8, "j": 16, "k": 8}, block={"i": 4, "j": 8}
    )
    a, b = random(19, 40, dtype=np.float32, seed=1), random(40, 21, dtype=np.float32, seed=2)
    found = []
    for stream in (0x11, 0x22, 0x11):
        c = random(19, 21, dtype=np.float32)
        product(C=cupy.array(c), A=cupy.array(a), B=cupy.array(b), stream=stream)
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)
        found.append(c)
        parts, arrived = cupy.allocated[-2:]
        assert not arrived.any()
        assert parts.any()
    cleared = [one[1] for one in cupy.log if one[0] == "set"]
    assert cleared == [0, 0]  # by the current stream, behind what it still does with the memory
    assert all(np.array_equal(found[0], one) for one in found)
    assert len(cupy.allocated) == 4
    (entry,) = product.program_for(
        C=cupy.array(c), A=cupy.array(a), B=cupy.array(b)
    ).entries  # fmt: skip
    assert [one.zeroed for one in entry.temporaries] == [False, True]


def test_counters_are_zero_for_a_graph_that_the_caller_captures(cupy: FakeCupy, jit: Jit) -> None:
    product = jit(
        NEW_PRODUCT, stream={"k": 5}, tiles={"i": 8, "j": 16, "k": 8}, block={"i": 4, "j": 8}
    )
    a, b = random(19, 40, dtype=np.float32, seed=1), random(40, 21, dtype=np.float32, seed=2)
    c = random(19, 21, dtype=np.float32)
    given = {"C": cupy.array(c), "A": cupy.array(a), "B": cupy.array(b)}
    product.prepare(**given)
    stream = cupy.cuda.Stream()
    stream.begin_capture()
    product(**given, stream=stream)
    graph = stream.end_capture()
    for _ in range(3):
        c[:] = -1
        graph.launch(stream)
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)


# how long code, memory and graphs last, and who shares them -----------------------------------


def test_a_callable_that_goes_waits_for_its_calls(cupy: FakeCupy) -> None:
    eatss.jit(STEPS, gpu="h200", tile_time=False)(A=cupy.array(random(20)), COUNT=2, stream=0x11)
    gc.collect()
    assert ("all done", 0) in cupy.log


def test_threads_do_not_share_the_memory_of_their_own_default_streams(cupy: FakeCupy) -> None:
    steps = eatss.jit(STEPS, gpu="h200", tile_time=False)
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


def test_info_is_told_while_graphs_come_and_go(cupy: FakeCupy) -> None:
    steps = eatss.jit(STEPS, gpu="h200", tile_time=False)
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
    for number in range(100):
        steps(A=given[number % 12], COUNT=6)
    ended.set()
    asking.join()
    assert not failed
