"""The same on a real card with CuPy; PyTorch where it is installed."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.real_card import NEEDS_CARD
from tests.refusals import refusing

pytest.importorskip("islpy", reason="needs islpy: callables select sizes")

import eatss
from tests.session.jit.sources import KERNELS, STEPS, random, steps_of

pytestmark = NEEDS_CARD


@pytest.fixture
def real() -> Iterator[Any]:
    cupy: Any = importlib.import_module("cupy")
    yield cupy
    cupy.cuda.runtime.deviceSynchronize()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products(dtype: str, real: Any) -> None:
    gemm = eatss.jit(KERNELS / "gemm.c")
    for shape in ((70, 50, 90), (71, 50, 90), (70, 50, 90)):
        a, b, c = random(*shape[:2]), random(*shape[1:]), random(shape[0], shape[2])
        on_card = [real.asarray(one.astype(dtype)) for one in (c, a, b)]
        gemm(1.5, 1.2, *on_card)
        want = 1.5 * a @ b + 1.2 * c
        np.testing.assert_allclose(
            on_card[0].get(), want, rtol=float(64 * np.finfo(dtype).eps * shape[1])
        )


def test_a_time_loop_is_replayed_and_right(real: Any) -> None:
    steps = eatss.jit(STEPS, tile_time=False)  # in tiles of time two launches are all
    host = random(1000)
    array = real.asarray(host)
    for _ in range(4):
        host = steps_of(host, 6)
        steps(A=array)
        np.testing.assert_allclose(array.get(), host, rtol=1e-13)
    assert steps.info().graphs == 1


@pytest.mark.parametrize("kernel", ["lu", "jacobi-2d", "atax"])
def test_the_card_computes_what_the_cpu_does(kernel: str, real: Any) -> None:
    function = eatss.jit(KERNELS / f"{kernel}.c")
    sizes = {"lu": {"N": 40}, "jacobi-2d": {"N": 40, "TSTEPS": 6}, "atax": {"NX": 90, "NY": 70}}
    given = {name: random(*spec.shape) for name, spec in function.arrays(**sizes[kernel]).items()}
    if kernel == "lu":
        given["A"] += 80 * np.eye(40)
    more = {name: value for name, value in sizes[kernel].items() if name == "TSTEPS"}
    for _ in range(3):
        on_card = {name: real.asarray(one) for name, one in given.items()}
        on_host = {name: one.copy() for name, one in given.items()}
        function(**on_card, **more)
        function(**on_host, **more)
        for name, one in on_host.items():
            np.testing.assert_allclose(on_card[name].get(), one, rtol=1e-12)


def test_streams_and_the_caller_s_capture(real: Any) -> None:
    steps = eatss.jit(STEPS)
    host = random(1000)
    array, stream = real.asarray(host), real.cuda.Stream(non_blocking=True)
    real.cuda.runtime.deviceSynchronize()
    with stream:
        steps(A=array)
    steps(A=array, stream=stream)
    stream.synchronize()
    host = steps_of(host, 12)
    np.testing.assert_allclose(array.get(), host, rtol=1e-13)
    with stream:
        stream.begin_capture()
        steps(A=array)
        graph = stream.end_capture()
    stream.synchronize()
    np.testing.assert_allclose(array.get(), host, rtol=1e-13)
    for _ in range(2):
        graph.launch(stream)
        stream.synchronize()
        host = steps_of(host, 6)
        np.testing.assert_allclose(array.get(), host, rtol=1e-13)


def test_threads_on_streams_of_their_own(real: Any) -> None:
    steps = eatss.jit(STEPS)
    failed: list[Exception] = []

    def work(seed: int) -> None:
        try:
            stream = real.cuda.Stream(non_blocking=True)
            with stream:
                host = random(500 + 100 * (seed % 2), seed=seed)
                array = real.asarray(host)
                for _ in range(5):
                    steps(A=array)
                stream.synchronize()
                np.testing.assert_allclose(array.get(), steps_of(host, 30), rtol=1e-12)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_tensors_of_pytorch(real: Any) -> None:
    torch: Any = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no card")
    gemm = eatss.jit(KERNELS / "gemm.c")
    a, b = (torch.rand(64, 64, dtype=torch.float64, device="cuda") for _ in range(2))
    c = torch.zeros(64, 64, dtype=torch.float64, device="cuda")
    own = torch.cuda.Stream()
    own.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(own):
        for _ in range(2):
            gemm(1.0, 0.0, c, a, b)
        assert torch.allclose(c, a @ b)


def test_pytorch_knows_what_was_written_and_captures_calls(real: Any) -> None:
    torch: Any = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA")
    gemm = eatss.jit(KERNELS / "gemm.c")
    a, b = (torch.rand(64, 64, dtype=torch.float64, device="cuda") for _ in range(2))
    c = torch.zeros(64, 64, dtype=torch.float64, device="cuda")
    weight = torch.ones(64, 64, dtype=torch.float64, device="cuda", requires_grad=True)
    for _ in range(2):
        product = (weight * c).sum()  # keeps c for the gradient
        gemm(1.0, 0.0, c, a, b)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.backward()
    gemm.prepare(1.0, 0.0, c, a, b)
    c.zero_()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gemm(1.0, 0.0, c, a, b)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.allclose(c, a @ b)
    with refusing("EATSS-J004"):
        gemm(1.0, 0.0, c, a.to(torch.bfloat16), b)


def test_a_callable_dropped_at_once_does_its_work(real: Any) -> None:
    stream = real.cuda.Stream(non_blocking=True)
    a = real.random.rand(900, 900) + 900 * real.eye(900)
    want = a.copy()
    real.cuda.Device().synchronize()
    eatss.jit(KERNELS / "lu.c")(A=a, stream=stream)
    stream.synchronize()
    lower, upper = real.tril(a), real.triu(a, 1) + real.eye(900)
    assert real.allclose(lower @ upper, want)
