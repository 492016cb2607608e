"""Hand-made measurements for tests of reports."""

from __future__ import annotations

from typing import Any

from eatss.measurement.measurement import (
    Comparison,
    ComparisonRow,
    DeviceInfo,
    Estimate,
    LoadState,
    Measurement,
    Method,
    Missing,
    Provenance,
    Ratio,
    Reading,
    Window,
)

LOAD = LoadState(
    samples=9,
    sm_clock_lowest_mhz=1545,
    sm_clock_mean_mhz=1755.0,
    sm_clock_highest_mhz=1980,
    memory_clock_mhz=3201,
    temperature_c=63,
    throttle=("power cap",),
)


def window(time_s: float = 7.0e-3, energy_j: float = 4.8) -> Window:
    power_w = energy_j / time_s
    meters = (("NVML energy counter", 1.0), ("NVML power samples", 1.012))
    return Window(
        duration_s=2.04,
        runs=291,
        time_s=time_s,
        energy_j=energy_j,
        power_w=power_w,
        readings=tuple(
            Reading(
                meter=name,
                energy_j=energy_j * 291 * factor,
                span_s=2.0,
                power_w=power_w * factor,
                updates=20,
            )
            for name, factor in meters
        ),
        during=LOAD,
    )


def method(**changes: Any) -> Method:
    values: dict[str, Any] = {
        "meter": "NVML energy counter",
        "compiler": "nvrtc",
        "launched_by": "graph",
        "restoring": "between windows",
        "target": 0.01,
        "least_window_s": 2.0,
        "least_updates": 20,
        "warm_up_s": 1.0,
        "seed": 0,
        "checked": ("the original at NI=37 NJ=41 NK=43",),
        "ended": "interval",
    }
    return Method(**(values | changes))


def measured(variant: str = "selected", scale: float = 1.0, **changes: Any) -> Measurement:
    """Return a good measurement; ``scale`` multiplies time and energy."""
    time_s, energy_j = 7.0e-3 * scale, 4.8 * scale
    flops = 128_000_000_000
    values: dict[str, Any] = {
        "program": "gemm",
        "variant": variant,
        "status": "ok",
        "reason": "",
        "sizes": (("NI", 4000), ("NJ", 4000), ("NK", 4000)),
        "tile_sizes": (("kernel0", (("i", 32), ("j", 64), ("k", 16))),),
        "dtype": "double",
        "time_s": time_s,
        "energy_j": energy_j,
        "net_energy_j": energy_j - 94 * time_s,
        "power_w": energy_j / time_s,
        "idle_power_w": 94.1,
        "time_estimate": Estimate(mean=time_s, low=time_s * 0.999, high=time_s * 1.001, count=5),
        "energy_estimate": Estimate(
            mean=energy_j, low=energy_j * 0.994, high=energy_j * 1.006, count=5
        ),
        "operations": None,
        "flops": flops,
        "least_bytes": 512_000_000,
        "gflops": flops / time_s / 1e9,
        "gflops_per_joule": flops / energy_j / 1e9,
        "method": method(),
        "windows": (window(time_s, energy_j),) * 5,
        "device": DeviceInfo(
            name="NVIDIA H200",
            uuid="GPU-0",
            compute_capability=90,
            driver="580.159",
            toolkit="13.0",
            power_limit_w=700.0,
        ),
        "provenance": Provenance(
            eatss_version="0.1.0",
            revision=None,
            source_hash="00",
            text_hash="11",
            option_hash="22",
            created="2026-11-21T12:00:00+00:00",
            host="node1",
        ),
    }
    return Measurement(**(values | changes))


def failed(variant: str, status: str, reason: str) -> Measurement:
    """Return a measurement without any value."""
    nothing: dict[str, Any] = dict.fromkeys(
        (
            *("time_s", "energy_j", "net_energy_j", "power_w", "idle_power_w"),
            *("time_estimate", "energy_estimate", "gflops", "gflops_per_joule"),
        )
    )
    return measured(
        variant,
        status=status,
        reason=reason,
        windows=(),
        method=method(ended="failed", checked=()),
        missing=(Missing(what="time_s", reason="the program failed"),),
        **nothing,
    )


def ratio(value: float, width: float = 0.01) -> Ratio:
    return Ratio(value=value, low=value * (1 - width), high=value * (1 + width))


def comparison(*others: ComparisonRow, program: str = "gemm", baseline: str = "32") -> Comparison:
    """Return rows beside a baseline, which stands last."""
    one = ratio(1.0, 0.0)
    last = ComparisonRow(
        measurement=measured(baseline, 2.0), speedup=one, energy_ratio=one, ppw_ratio=one
    )
    return Comparison(program=program, baseline=baseline, rows=(*others, last))


def row(
    variant: str = "selected", speedup: float = 2.0, energy: float = 0.5, width: float = 0.01
) -> ComparisonRow:
    return ComparisonRow(
        measurement=measured(variant, 2.0 / speedup),
        speedup=ratio(speedup, width),
        energy_ratio=ratio(energy, width),
        ppw_ratio=ratio(1 / energy, width),
    )


def failed_row(variant: str, status: str = "wrong result", reason: str = "C differs") -> Any:
    return ComparisonRow(
        measurement=failed(variant, status, reason),
        speedup=None,
        energy_ratio=None,
        ppw_ratio=None,
    )
