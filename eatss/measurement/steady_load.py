"""A load under which a card draws the same power for seconds: chains of multiply-adds."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

from eatss.gpu.cuda_uuid import cuda_uuid
from eatss.measurement.meters.meter import MeterError

_ELEMENTS = 1 << 22
_IN_FLIGHT = 4
_CHAINS = """
    float a = x, b = x + 0.1f, c = x + 0.2f, d = x + 0.3f;
    for (int step = 0; step < 4096; ++step) {
        a = fmaf(a, 0.999f, x);
        b = fmaf(b, 0.998f, x);
        c = fmaf(c, 0.997f, x);
        d = fmaf(d, 0.996f, x);
    }
    y = a + b + c + d;
"""


def steady_load(uuid: str | None, *, cupy: Any = None) -> Callable[[float], None]:
    """Return a function that keeps a card busy for some seconds and waits for the end.

    Args:
        uuid: the card's UUID as NVML tells it; CUDA may count the cards otherwise.
        cupy: what stands in for the module ``cupy``.

    Raises:
        MeterError: CuPy does not work here or does not see the card.
    """
    module = cupy if cupy is not None else _import_cupy()
    try:
        index = _cuda_index(module, uuid)
        with module.cuda.Device(index):
            values = module.random.default_rng(0).random(_ELEMENTS, dtype=module.float32)
            kernel = module.ElementwiseKernel(
                "float32 x", "float32 y", _CHAINS, "eatss_steady_load"
            )
            out = module.empty_like(values)
            kernel(values, out)
            module.cuda.runtime.deviceSynchronize()
    except MeterError:
        raise
    except Exception as error:  # CuPy and CUDA have errors of their own
        raise _broken(error) from error

    def run(seconds: float) -> None:
        end_s = time.perf_counter() + seconds
        try:
            with module.cuda.Device(index):
                while time.perf_counter() < end_s:
                    for _ in range(_IN_FLIGHT):
                        kernel(values, out)
                    module.cuda.runtime.deviceSynchronize()
        except Exception as error:  # likewise
            raise _broken(error) from error

    return run


def _cuda_index(cupy: Any, uuid: str | None) -> int:
    runtime = cupy.cuda.runtime
    if uuid is None:
        return 0
    for index in range(runtime.getDeviceCount()):
        if cuda_uuid(runtime.getDeviceProperties(index)) == uuid:
            return index
    raise MeterError(
        f"CUDA does not see the card {uuid}", "look at CUDA_VISIBLE_DEVICES, which may hide it"
    )


def _import_cupy() -> Any:
    try:
        return importlib.import_module("cupy")
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise _broken(error) from error
        raise MeterError(
            "no load can be made: CuPy is not installed", "pip install 'eatss[gpu]'"
        ) from None
    except Exception as error:  # a broken installation raises anything
        raise _broken(error) from error


def _broken(error: Exception) -> MeterError:
    detail = " ".join(str(error).split())[:200]
    return MeterError(
        f"no load can be made: {type(error).__name__}: {detail}",
        "look at the line of CuPy in `eatss doctor`",
    )
