"""Calls of launchers on a runtime without a card: graphs, memory, captures, threads, failures."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from eatss.cuda.host import launcher_text
from eatss.cuda.preamble import preamble
from eatss.program import Argument, Constant, HostLoop, Launch, Name, Temporary, difference
from eatss.program.plan import GRAPH_FROM, MOST_GRAPHS
from tests.plans import ONE, kernel_code, one_launch, plan

Array = npt.NDArray[np.float64]
KERNEL = r"""
#undef EATSS_LAUNCH
#define EATSS_LAUNCH(kernel, grid, block, shared, stream, ...) \
    launched(stream, [=] { kernel(__VA_ARGS__); })
static void k0(int t, int n, float x, double *A, int *counts, double *parts)
{
    if ((t == 0 && counts[0] != 0) || (t == 0 && parts[0] == parts[0])) abort();
    counts[0]++;
    parts[n - 1] = x;
    A[t] += parts[n - 1] * counts[0];
}
"""
N = GRAPH_FROM + 4


def argument(name: str, role: str, element_type: str) -> Argument:
    return Argument(
        name=name, role=role, element_type=element_type, shape=(Name("n"),) * (role == "array"),  # type: ignore[arg-type]
        reads=True, writes=role == "array", source="parameter", source_name=name, position=0,
    )  # fmt: skip


class Library:
    """A launcher whose kernel adds ``x * (t + 1)`` to ``A[t]``, once a launch."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        self.library.fake_told.restype = ctypes.c_char_p
        for name in ("fake_stream", "fake_captured"):
            getattr(self.library, name).restype = ctypes.c_void_p

    def __call__(self, array: Array, x: float = 2, n: int = N, stream: int | None = None) -> int:
        place = ctypes.c_void_p(array.ctypes.data)
        given = ctypes.c_int(n), ctypes.c_float(x), place, ctypes.c_void_p(stream)
        return int(self.library.one_cuda(*given))

    def told(self, *, fails_at: int = 0, device: int = 0, pools: bool = True) -> str:
        """Return what was done since, and say what comes."""
        return str(self.library.fake_told(fails_at, device, int(pools)).decode())


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("host")
    arguments = [argument("n", "parameter", "int"), argument("x", "scalar", "float")]
    arguments.append(argument("A", "array", "double"))
    temporaries = (
        Temporary(name="counts", element_type="int", shape=(Constant(5),), zeroed=True),
        Temporary(name="parts", element_type="double", shape=(Name("n"),)),
    )
    launch = Launch(kernel="k0", grid=(ONE, ONE, ONE))
    last = difference(Name("n"), ONE)
    loop = HostLoop(counter="t", lower=Constant(0), upper=last, step=1, body=(launch,))
    entry = one_launch("one", "k0", arguments, temporaries=temporaries, body=(loop,))
    kernel = kernel_code("k0", arguments=("t", "n", "x", "A", "counts", "parts"))
    text = launcher_text(plan("one", kernels=(kernel,)), entry, const=True)
    (folder / "cuda_runtime.h").write_text(f'#include "{Path(__file__).parent}/fake_runtime.hpp"')
    (folder / "one.cpp").write_text(preamble(text) + KERNEL + text)
    command = "g++ -std=c++14 -Wall -Wextra -Werror -g -O1 -pthread -shared -fPIC -I. one.cpp"
    subprocess.run([*command.split(), "-o", "one.so"], check=True, cwd=folder)
    return folder / "one.so"


@pytest.fixture
def one(compiled: Path) -> Iterator[Library]:
    library = Library(compiled)
    library.told()
    yield library
    library.told()
    assert library.library.one_cuda_free() == 0
    assert library.library.fake_held() == 0, "something is not given back"


def sums(x: float = 2, n: int = N, times: int = 1) -> Array:
    return times * x * np.arange(1.0, n + 1)


def test_a_call_that_comes_back_is_captured_once_and_replayed(one: Library) -> None:
    A = np.zeros(N)
    for times in range(1, 5):
        assert one(A) == 0
        np.testing.assert_array_equal(A, sums(times=times))
    launches = "k" * N
    assert one.told() == launches + f"graph {launches}" * 3


def test_a_call_of_few_launches_is_not_captured(one: Library) -> None:
    A = np.zeros(N)
    for _ in range(4):
        assert one(A, n=GRAPH_FROM - 1) == 0
    assert one.told() == "k" * 4 * (GRAPH_FROM - 1)


def test_a_graph_is_of_its_arrays_scalars_sizes_and_card(one: Library) -> None:
    arrays = np.zeros(N), np.zeros(N)
    want = [np.zeros(N), np.zeros(N)]
    for _ in range(3):
        for which, x, n in ((0, 2, N), (1, 2, N), (0, 3, N), (0, 2, N - 1)):
            assert one(arrays[which], x, n) == 0
            want[which][:n] += sums(x, n)
    for found, wanted in zip(arrays, want, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert one.told(device=1).count("graph") == 8
    assert one(arrays[0]) == 0
    assert "graph" not in one.told()


def test_the_graph_used_longest_ago_goes_when_it_is_over(one: Library) -> None:
    first, *arrays = [np.zeros(N) for _ in range(MOST_GRAPHS + 1)]
    for A in (first, *arrays):
        one(A)
        one(A)
        one(first)
    assert one.told().count("wait") == 1
    for A in (first, *arrays[1:]):
        one(A)
        assert "graph" in one.told()
    one(arrays[0])
    assert "graph" not in one.told()


def test_calls_that_the_caller_captures_are_launches_with_memory_of_the_graph(
    one: Library,
) -> None:
    library, A = one.library, np.zeros(N)
    stream = ctypes.c_void_p(library.fake_stream())
    for _ in range(2):
        one(A)
    one.told()
    A[:] = 0
    graphs = []
    for call in range(3):
        library.fake_capture(stream)
        assert one(A, stream=stream.value) == 0
        graphs.append(ctypes.c_void_p(library.fake_captured(stream)))
        assert one.told() == "", call
    assert not A.any()
    library.one_cuda_free()
    for times, graph in enumerate((*graphs, *graphs), 1):
        library.fake_replay(graph)
        np.testing.assert_array_equal(A, sums(times=times))
    for graph in graphs:
        library.fake_destroy(graph)


@pytest.mark.parametrize("pools", [True, False])
def test_a_capture_of_another_thread_goes_on(one: Library, pools: bool) -> None:
    stream = ctypes.c_void_p(one.library.fake_stream())
    one.told(pools=pools)
    one.library.fake_capture(stream)
    arrays = [np.zeros(N) for _ in range(MOST_GRAPHS + 1)]
    for A in (*arrays, *arrays, *arrays):
        assert one(A) == 0
        assert one(A) == 0
    one.library.fake_destroy(ctypes.c_void_p(one.library.fake_captured(stream)))
    for A in arrays:
        np.testing.assert_array_equal(A, sums(times=6))


def test_without_pools_memory_is_of_the_call(one: Library) -> None:
    one.told(pools=False)
    A = np.zeros(N)
    calls = []
    for _ in range(4):
        assert one(A) == 0
        calls.append(one.library.fake_calls())
    assert one.told(pools=False) == ("malloc " + "k" * N) * 4
    np.testing.assert_array_equal(A, sums(times=4))
    first, second, third, fourth = np.diff([0, *calls])
    assert first < second, "a graph is tried once"
    assert third == fourth < second
    stream = ctypes.c_void_p(one.library.fake_stream())
    one.library.fake_capture(stream)
    assert one(A, stream=stream.value) == 801
    one.library.fake_destroy(ctypes.c_void_p(one.library.fake_captured(stream)))


@pytest.mark.parametrize("pools", [True, False])
def test_what_fails_is_told_and_leaves_nothing_behind(compiled: Path, pools: bool) -> None:
    """Each function of the runtime fails once; a graph that cannot be made is no failure."""
    one, codes = Library(compiled), set()
    one.told(pools=pools)
    A = np.zeros(N)
    for _ in range(3):
        one(A)
    for fails_at in range(1, one.library.fake_calls() + 1):
        one.library.one_cuda_free()
        one.told(fails_at=fails_at, pools=pools)
        A[:] = 0
        times = 0
        for _ in range(3):
            code = one(A)
            codes.add(code)
            times += code == 0
        launches = one.told(pools=pools).count("k") // N
        assert times <= launches
        np.testing.assert_array_equal(A, sums(times=launches))
        assert one.library.one_cuda_free() == 0
        assert one.library.fake_held() == 0, fails_at
    assert codes == {0, 700}


def test_threads_call_at_once(one: Library) -> None:
    arrays = [np.zeros(N) for _ in range(3)]
    codes: list[int] = []

    def call(array: Array) -> None:
        codes.extend(one(array) for _ in range(200))

    threads = [threading.Thread(target=call, args=(A,)) for A in (*arrays, *arrays)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0] * 1200
    for A in arrays:
        np.testing.assert_array_equal(A, sums(times=400))
