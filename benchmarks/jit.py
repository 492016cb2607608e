"""Callables on a card: how much a call costs, how long the first takes, graphs, a service.

python benchmarks/jit.py            # all, on a card
python benchmarks/jit.py --cpu      # the service alone, on the CPU, at tiny sizes
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eatss
from benchmarks.recorded import geometric_mean

KERNELS = Path(__file__).resolve().parent.parent / "kernels"
CALLS = 10_000
THREADS = 4


def say(line: str = "") -> None:
    """Print a line at once; what was measured lasts if the machine does not."""
    print(line, flush=True)


def main() -> int:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--first-call", metavar="KERNEL", help="of the first call, in a process")
    given = parser.parse_args()
    if given.first_call:
        return first_call(given.first_call)
    with tempfile.TemporaryDirectory(prefix="eatss-bench-") as folder:
        os.environ["EATSS_CACHE_DIR"] = folder
        if given.cpu:
            service(np, given.calls, "CPU", THREADS)
        else:
            on_card(given.calls)
    return 0


def on_card(calls: int) -> None:
    """Run the parts that need a card."""
    import cupy  # noqa: PLC0415 - other parts need none

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    driver = cupy.cuda.runtime.driverGetVersion()
    say(f"eatss.jit on {name}, CUDA driver {driver}, CuPy {cupy.__version__}")
    starts()
    overhead(cupy)
    graphs(cupy)
    classes(cupy)
    for threads in (1, THREADS):
        service(cupy, calls, name, threads)


# -- the first call ---------------------------------------------------------------------------


def first_call(kernel: str) -> int:
    """Time the first call in this process; CuPy, its context and the arrays are there."""
    import cupy  # noqa: PLC0415

    n = 1000
    rng = cupy.random.default_rng(0)
    arrays = {name: rng.random((n, n)) for name in ("A", "B", "C", "D", "tmp")}
    cupy.cuda.Device().synchronize()
    began = time.perf_counter()
    function = eatss.jit(KERNELS / f"{kernel}.c")
    imported = time.perf_counter()
    call(function, arrays)
    cupy.cuda.Device().synchronize()
    ended = time.perf_counter()
    heavy = [name for name in ("z3", "islpy", "clang.cindex") if name in sys.modules]
    print(json.dumps({"import_s": imported - began, "call_s": ended - imported, "heavy": heavy}))
    return 0


def call(function: Any, arrays: dict[str, Any]) -> None:
    """Call a product with what it takes."""
    scalars = {"alpha": 1.5, "beta": 1.2}
    takes = set(function.__signature__.parameters)
    function(**{k: v for k, v in {**arrays, **scalars}.items() if k in takes})


def starts() -> None:
    """Time first calls: nothing kept, the disk warm, and machine code alone missing."""
    say()
    say("first call, n = 1000, in a new process (CuPy, context, arrays there)")
    say(f"  {'kernel':10s} {'cache':22s} {'import':>9s} {'call':>9s} {'together':>9s}")
    for kernel in ("gemm", "syrk"):
        with tempfile.TemporaryDirectory(prefix="eatss-cold-") as folder:
            for label, runs in (("none", 1), ("warm disk", 3)):
                times = [_first_call(kernel, folder) for _ in range(runs)]
                one = min(times, key=lambda each: each["import_s"] + each["call_s"])
                both = one["import_s"] + one["call_s"]
                say(
                    f"  {kernel:10s} {label:22s} {one['import_s']:7.3f} s {one['call_s']:7.3f} s "
                    f"{both:7.3f} s" + (f"  loads {', '.join(one['heavy'])}" * bool(one["heavy"]))
                )


def _first_call(kernel: str, cache: str) -> dict[str, Any]:
    said = subprocess.run(
        [sys.executable, __file__, "--first-call", kernel],
        env={**os.environ, "EATSS_CACHE_DIR": f"{cache}/cache", "CUDA_CACHE_DISABLE": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    result: dict[str, Any] = json.loads(said.splitlines()[-1])
    return result


# -- warm calls -------------------------------------------------------------------------------


def overhead(cupy: Any) -> None:
    """Time warm calls on the host, beside CuPy's RawKernel with as many arguments."""
    rng = cupy.random.default_rng(2)
    n = 64
    a, b, c = (rng.random((n, n)) for _ in range(3))
    gemm = eatss.jit(KERNELS / "gemm.c")
    raw = cupy.RawKernel(
        'extern "C" __global__ void k(double alpha, double beta, double *c, const double *a, '
        "const double *b) { if (alpha < 0) c[0] = a[0] + b[0] + beta; }",
        "k",
    )
    grid, block = (1,), (32,)
    ways: dict[str, Callable[[], object]] = {
        "RawKernel": lambda: raw(grid, block, (1.5, 1.2, c, a, b)),
        "eatss, CuPy arrays": lambda: gemm(alpha=1.5, beta=1.2, C=c, A=a, B=b),
        "eatss, in order": lambda: gemm(1.5, 1.2, c, a, b),
        "eatss, stream given": lambda: gemm(1.5, 1.2, c, a, b, stream=cupy.cuda.Stream.null),
    }
    try:
        import torch  # noqa: PLC0415 - not everybody has it
    except ImportError:
        pass
    else:
        ta, tb, tc = (torch.rand(n, n, dtype=torch.float64, device="cuda") for _ in range(3))
        ways["eatss, PyTorch tensors"] = lambda: gemm(alpha=1.5, beta=1.2, C=tc, A=ta, B=tb)
    ways["eatss, interface only"] = lambda: gemm(
        alpha=1.5, beta=1.2, C=_Interface(c), A=_Interface(a), B=_Interface(b)
    )
    for way in ways.values():
        way()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(9):  # by turns, so that drift hits all alike
        for name, way in ways.items():
            times[name].append(_per_call_us(cupy, way))
    say()
    say("a warm call on the host, median of nine rounds of 500 calls by turns")
    base = median(times["RawKernel"])
    for name, own in times.items():
        say(f"  {name:24s} {median(own):7.2f} us  beyond RawKernel {median(own) - base:+.2f}")


class _Interface:
    """An array that has nothing but ``__cuda_array_interface__``."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__
        self._array = array


def _per_call_us(cupy: Any, way: Callable[[], object]) -> float:
    cupy.cuda.Device().synchronize()
    began = time.perf_counter()
    for _ in range(500):
        way()
    taken = time.perf_counter() - began
    cupy.cuda.Device().synchronize()
    return 1e6 * taken / 500


# -- host loops -------------------------------------------------------------------------------


def graphs(cupy: Any) -> None:
    """Time programs with many launches: one by one, and as the graph that a callable keeps."""
    rng = cupy.random.default_rng(3)
    say()
    say("host loops: launch by launch, and replayed as a graph (least of 5, card's clock)")
    n = 2000
    spd = rng.random((n, n))
    spd = spd @ spd.T + n * cupy.eye(n)
    for kernel in ("lu", "cholesky", "trmm", "jacobi-2d"):
        function = eatss.jit(KERNELS / f"{kernel}.c")
        made = arguments(function, rng, dict.fromkeys(("N", "NI"), n))
        if kernel in ("lu", "cholesky"):
            made["A"] = spd.copy()
        kept = {name: value.copy() for name, value in made.items() if hasattr(value, "copy")}
        # other addresses each time, so that no graph is kept of them
        others = [{k: v.copy() if k in kept else v for k, v in made.items()} for _ in range(6)]
        one_by_one, replayed = [], []
        for moved in others:
            for name, value in kept.items():
                made[name][...] = value
            one_by_one.append(_on_card_ms(cupy, partial(function, **moved)))
            replayed.append(_on_card_ms(cupy, partial(function, **made)))
        say(
            f"  {kernel:10s} {min(one_by_one[1:]):8.3f} ms  {min(replayed[2:]):8.3f} ms   "
            f"graphs kept {function.info().graphs}"
        )


def arguments(function: Any, rng: Any, sizes: dict[str, int]) -> dict[str, Any]:
    """Return random arguments of a callable at sizes; those that it does not have are left out."""
    takes = function.__signature__.parameters
    own = {name: value for name, value in sizes.items() if name in takes}
    made: dict[str, Any] = {name: 1.5 for name, one in takes.items() if one.default is one.empty}
    for name, spec in function.arrays(**own).items():
        made[name] = rng.random(spec.shape).astype(spec.dtype)
    return {
        **made,
        **{
            name: value
            for name, value in own.items()
            if takes[name].default is not takes[name].empty
        },
    }


def _on_card_ms(cupy: Any, way: Callable[[], object]) -> float:
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    cupy.cuda.Device().synchronize()
    begin.record()
    way()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end))


# -- sizes as constants or not ----------------------------------------------------------------


def classes(cupy: Any) -> None:
    """Time programs selected for the class of a size beside those selected for the very size."""
    rng = cupy.random.default_rng(8)
    say()
    say("selected for the class of a size, and for the very size (least of 5 by turns)")
    every: list[float] = []
    for kernel in ("gemm", "syrk", "atax", "mvt", "covariance"):
        ratios = []
        for n in (1000, 1151, 1500, 2047, 2500, 3333):
            both = {
                flag: eatss.jit(KERNELS / f"{kernel}.c", exact_sizes=flag) for flag in (True, False)
            }
            names = ("N", "M", "NI", "NJ", "NK", "NX", "NY")
            values = arguments(both[True], rng, dict.fromkeys(names, n))
            times: dict[bool, list[float]] = {True: [], False: []}
            for _ in range(6):
                for flag, function in both.items():
                    times[flag].append(_on_card_ms(cupy, partial(function, **values)))
            ratios.append(min(times[False][1:]) / min(times[True][1:]))
        shown = "  ".join(f"{ratio:.3f}" for ratio in ratios)
        say(f"  {kernel:10s} class / exact at 1000, 1151, 1500, 2047, 2500, 3333: {shown}")
        every += ratios
    say(f"  geometric mean {geometric_mean(every):.3f}")


# -- a service --------------------------------------------------------------------------------


def service(xp: Any, calls: int, where: str, threads: int) -> None:
    """Call from threads: results right, memory flat, how long calls take."""
    gemm, atax = eatss.jit(KERNELS / "gemm.c"), eatss.jit(KERNELS / "atax.c")
    small = xp is np
    sizes = (9, 17, 33) if small else (64, 200, 333)
    rng = np.random.default_rng(5)
    local = threading.local()

    def arrays(n: int) -> dict[str, Any]:
        """Return the arrays of a thread, made once, with what has to come out."""
        kept = getattr(local, "kept", None)
        if kept is None:
            kept = local.kept = {}
        if n not in kept:
            a, b, x = (xp.asarray(rng.random(s)) for s in ((n, n), (n, n), n))
            kept[n] = {
                "a": a, "b": b, "x": x, "c": xp.zeros((n, n)), "y": xp.empty(n),
                "tmp": xp.empty(n), "product": a @ b, "normal": a.T @ (a @ x),
            }  # fmt: skip
        found: dict[str, Any] = kept[n]
        return found

    def one(number: int) -> tuple[float, float]:
        n = sizes[number % len(sizes)]
        own = arrays(n)
        if number % 2:
            began = time.perf_counter()
            gemm(alpha=1.0, beta=0.0, C=own["c"], A=own["a"], B=own["b"])
            taken = time.perf_counter() - began
            far = xp.abs(own["c"] - own["product"]).max()
        else:
            began = time.perf_counter()
            atax(A=own["a"], x=own["x"], y=own["y"], tmp=own["tmp"])
            taken = time.perf_counter() - began
            far = xp.abs(own["y"] - own["normal"]).max()
        return taken, float(far) / n / n

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(calls // 5)))
        before, device_before = _resident_mib(), _device_mib(xp)
        with _collections() as pauses:
            found = list(pool.map(one, range(calls)))
        grown, device_grown = _resident_mib() - before, _device_mib(xp) - device_before
    times = sorted(seconds for seconds, _ in found)
    worst = max(far for _, far in found)
    shares = {str(share): _share(times, share) for share in (50, 90, 99, 99.9, 100)}
    say()
    of = "1 thread" if threads == 1 else f"{threads} threads"
    say(f"{calls} calls of gemm and atax at sizes {sizes} from {of}, {where}")
    say("  share of calls  " + "".join(f"{share + ' %':>11s}" for share in shares))
    say("  within          " + "".join(f"{1e6 * s:8.1f} us" for s in shares.values()))
    longest = 1e6 * max(pauses, default=0.0)
    say(f"  longest pause of Python's garbage collector {longest:.1f} us")
    say(f"  worst relative difference {worst:.1e}")
    say(f"  memory grew by {grown:.2f} MiB on the host, {device_grown:.2f} MiB on the card")


def _share(times: list[float], percent: float) -> float:
    return times[round(percent / 100 * (len(times) - 1))]


@contextmanager
def _collections() -> Iterator[list[float]]:
    """Note how long the collections of garbage took, in seconds."""
    began, pauses = [0.0], []

    def note(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            began[0] = time.perf_counter()
        else:
            pauses.append(time.perf_counter() - began[0])

    gc.callbacks.append(note)
    try:
        yield pauses
    finally:
        gc.callbacks.remove(note)


def _resident_mib() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def _device_mib(xp: Any) -> float:
    if xp is np:
        return 0.0
    free, total = xp.cuda.runtime.memGetInfo()
    return float(total - free) / 2**20


if __name__ == "__main__":
    raise SystemExit(main())
