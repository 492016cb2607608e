"""Measurements as tables, notes in sentences, hardware counters and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO

from rich.console import JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from eatss.codec import json_text
from eatss.measurement.measurement import (
    Cell,
    Comparison,
    Counter,
    LoadState,
    Measurement,
    Measurements,
    comparison_rows,
    measurement_rows,
)
from eatss.report.render import (
    MODULE_NOTE,
    NONE,
    bytes_amount,
    figure,
    render,
    scaled,
    spread,
    with_prefix,
)

_TITLES = {
    "dram__bytes_read.sum": "DRAM read",
    "dram__bytes_write.sum": "DRAM written",
    "lts__t_sectors_srcunit_tex_op_read.sum": "L2 sectors read by L1",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "achieved occupancy",
    "smsp__inst_executed.sum": "warp instructions",
    "gpu__time_duration.sum": "time when counted",
}


def counter_words(name: str) -> str:
    """Return a counter's name in words; the name of anything else as it is."""
    return _TITLES.get(name, name)


def counters_table(measurements: Sequence[Measurement]) -> Table:
    """Return the counters of all kernels; a column a variant where there are several."""
    counted = [found for found in measurements if found.counters is not None]
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("kernel", header_style="dim", overflow="fold")
    table.add_column("counter", header_style="dim", no_wrap=True)
    for found in counted:
        table.add_column(
            found.variant if len(measurements) > 1 else "", header_style="dim", justify="right"
        )
    rows: dict[str, dict[str, list[str]]] = {}
    for number, found in enumerate(counted):
        for kernel in found.counters or ():
            own = rows.setdefault(kernel.kernel, {})
            cells = [("launches", str(kernel.launches))]
            cells += [(counter_words(c.name), amount(c)) for c in kernel.counters]
            for title, text in cells:
                own.setdefault(title, [""] * len(counted))[number] = text
    for name, own in rows.items():
        lead = name
        for title, texts in own.items():
            table.add_row(lead, title, *texts)
            lead = ""
    return table


def amount(counter: Counter) -> str:
    """Return a counter's value with its unit."""
    if counter.unit == "byte":
        return bytes_amount(counter.value)
    if counter.unit == "s":
        return f"{figure(counter.value * 1e3)} ms"
    if counter.unit == "%":
        return f"{figure(counter.value, 3)} %"
    return with_prefix(counter.value)


def measurements_csv(measurements: Sequence[Measurement]) -> str:
    """Return measurements; what was not measured is empty and stands in ``missing``."""
    return _csv([row for measurement in measurements for row in measurement_rows(measurement)])


def comparison_csv(comparison: Comparison) -> str:
    """Return the rows of a comparison with their ratios."""
    return _csv(comparison_rows(comparison))


def _csv(rows: Sequence[Mapping[str, Cell]]) -> str:
    buffer = StringIO()
    if rows:
        writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return buffer.getvalue()


_ENDED = {
    "interval": "interval narrow enough",
    "budget": "the budget ended before the interval was narrow enough",
    "interrupted": "interrupted",
    "failed": "ended by a failure",
    "cut short": "cut short",
}
_RESTORING = {
    "none": "",
    "between windows": "overwritten inputs restored between windows",
    "inside windows": "overwritten inputs restored inside windows, their cost subtracted",
}


_DATA = {
    "dominant": "random numbers in [0, 1) with a heavy diagonal",
    "offset": "random numbers in [1, 2)",
    "small": "random numbers in [0, 1/n), n the longest extent",
}
"""Kinds of data other than the first choice, [0, 1)."""


def subject(measurement: Measurement) -> str:
    """Return the card, its software, the type and the sizes, in one line."""
    device = measurement.device
    parts: list[str] = []
    if device is not None:
        parts.append(device.name)
        parts += [f"driver {device.driver}"] if device.driver else []
        parts += [f"CUDA {device.toolkit}"] if device.toolkit else []
    parts.append(measurement.dtype)
    sizes = " ".join(f"{name}={value}" for name, value in measurement.sizes)
    return ", ".join([*parts, *([sizes] if sizes else [])])


def notes(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield pairs of a word and what is to be said under it, most important first."""
    if measurement.reason or not measurement.ok:
        reason = measurement.reason or "no reason was given"
        yield "why", f"{measurement.status}: {reason}"
    yield from _named("tiles", _tiles(measurement))
    if measurement.windows:
        yield "windows", _windows(measurement)
        yield from _named("net", _net(measurement))
        yield from _named("meters", "; ".join(_other_meters(measurement)))
        yield "clocks", _clocks(measurement)
        yield from _named("method", _method(measurement))
    if measurement.device is not None and measurement.device.power_scope == "module":
        yield "note", MODULE_NOTE
    for note in measurement.notes:
        yield "note", note
    if measurement.windows or measurement.method.checked:
        yield "checked", "; ".join(measurement.method.checked) or "nothing: results may be wrong"
    yield from _missing(measurement)


def shared_notes(
    measurements: Sequence[Measurement],
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield notes of several measurements, each once, with the variants it is for."""
    found: dict[tuple[str, str], list[str]] = {}
    for measurement in measurements:
        for note in notes(measurement):
            found.setdefault(note, []).append(measurement.variant)
    for (word, text), variants in found.items():
        yield tuple(variants), word, text


def _missing(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield what has no value, by reason; what follows from other gaps is not said again."""
    known = {measurement.reason}
    known |= {f"{missing.what} is not known" for missing in measurement.missing}
    reasons: dict[str, list[str]] = {}
    for missing in measurement.missing:
        if missing.reason not in known:
            reasons.setdefault(missing.reason, []).append(missing.what)
    for reason, names in reasons.items():
        yield "missing", f"{', '.join(names)}: {reason}"


def _named(word: str, text: str) -> Iterator[tuple[str, str]]:
    if text:
        yield word, text


def _tiles(measurement: Measurement) -> str:
    """Return the tile sizes, of kernels that have the same ones together."""
    kernels: dict[str, list[str]] = {}
    for kernel, sizes in measurement.tile_sizes:
        text = ", ".join(f"{loop} {size}" for loop, size in sizes) or "none"
        kernels.setdefault(text, []).append(kernel)
    if len(kernels) == 1:
        return next(iter(kernels))
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in kernels.items())


def _windows(measurement: Measurement) -> str:
    windows, method = measurement.windows, measurement.method
    shortest = min(method.least_window_s, *(window.duration_s for window in windows))
    several = "s" if len(windows) > 1 else ""
    parts = [f"{len(windows)} window{several} of {figure(shortest, 2)} s or more"]
    updates = [window.readings[0].updates for window in windows if window.readings]
    if updates:
        least = min(method.least_updates, *updates)
        parts.append(f"{least} or more values of the {windows[0].readings[0].meter} in each")
    return "; ".join([*parts, _ENDED[method.ended]])


def _method(measurement: Measurement) -> str:
    method = measurement.method
    parts = []
    if method.compiler is not None and method.launched_by is not None:
        ways = {"graph": "a CUDA graph", "stream": "a stream", "host code": "compiled host code"}
        how = ways[method.launched_by]
        parts.append(f"{method.compiler}, launched by {how}")
    if method.data not in (None, "uniform"):
        parts.append(f"data: {_DATA.get(method.data or '', method.data)}")
    return "; ".join([*parts, *filter(None, [_RESTORING[method.restoring]])])


def _net(measurement: Measurement) -> str:
    if measurement.net_energy_j is None:
        return ""
    return f"{figure(measurement.net_energy_j)} J without what the idle card draws"


def _other_meters(measurement: Measurement) -> Iterator[str]:
    """Yield how far other meters' power is from that of the first one, over the same windows."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for window in measurement.windows:
        for reading in window.readings[1:]:
            pairs.setdefault(reading.meter, []).append(
                (reading.power_w, window.readings[0].power_w)
            )
    for meter, values in pairs.items():
        other, first = (sum(power) for power in zip(*values, strict=True))
        if first > 0:
            percent = 100 * (other / first - 1)
            yield f"{meter}: {abs(percent):.1f} % {'more' if percent >= 0 else 'less'}"


def _clocks(measurement: Measurement) -> str:
    """Return clocks, temperature and what held the clocks back while the load ran."""
    loads = [window.during for window in measurement.windows if window.during is not None]
    clocks = [(load.sm_clock_lowest_mhz, load.sm_clock_highest_mhz) for load in loads]
    parts = (
        _range([clock for pair in clocks for clock in pair], "MHz"),
        _range([load.memory_clock_mhz for load in loads], "MHz memory"),
        _range([load.temperature_c for load in loads], "°C"),
    )
    return "; ".join(filter(None, (", ".join(filter(None, parts)), throttling(loads))))


def _range(values: Sequence[int | None], unit: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    lowest, highest = min(known), max(known)
    return f"{lowest} {unit}" if lowest == highest else f"{lowest}–{highest} {unit}"


def throttling(loads: Sequence[LoadState]) -> str:
    """Return what held the clocks back under the load, in words."""
    known = [load.throttle for load in loads if load.throttle is not None]
    if not known:
        return "unknown whether anything held them back"
    reasons = dict.fromkeys(reason for reasons in known for reason in reasons)
    return f"held back: {', '.join(reasons)}" if reasons else "not held back"


_STYLE = {"ok": "green", "unstable": "yellow", "rejected by the model": "yellow"}


def render_measurements(measurements: Sequence[Measurement], output: str) -> str:
    """Return measurements as ``table``, ``json`` or ``csv``."""
    if output == "json":
        return json_text(Measurements(measurements=tuple(measurements)))
    if output == "csv":
        return measurements_csv(measurements)
    parts: list[RenderableType] = []
    for measurement in measurements:
        parts += [*([""] if parts else []), *measurement_parts(measurement)]
    return render(*parts)


def measurement_parts(measurement: Measurement) -> list[RenderableType]:
    """Return a measurement for people: a head, figures, notes and counters."""
    head = Text(measurement.program, style="bold")
    if measurement.variant not in ("", measurement.program):
        head.append(f"  {measurement.variant}", style="not bold")
    head.append("  ")
    head.append_text(status_text(measurement))
    parts: list[RenderableType] = [head, Text(subject(measurement))]
    if measurement.time_s is not None or measurement.energy_j is not None:
        parts.append(_figures(measurement))
    parts.append(_notes(measurement))
    if measurement.counters is not None:
        parts += ["", counters_table([measurement])]
    return parts


def status_text(measurement: Measurement) -> Text:
    """Return the status, coloured."""
    return Text(measurement.status, style=_STYLE.get(measurement.status, "red"))


def _figures(measurement: Measurement) -> Table:
    names = ("ms", "±", "J", "±", "W", "idle W", "GFLOP/s", "GFLOP/J", "windows")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in names:
        justify: JustifyMethod = "left" if name == "±" else "right"
        table.add_column(name, justify=justify, header_style="dim", no_wrap=True)
    table.add_row(
        scaled(measurement.time_s, 1e3),
        Text(spread(measurement.time_estimate), style="dim"),
        figure(measurement.energy_j),
        Text(spread(measurement.energy_estimate), style="dim"),
        figure(measurement.power_w, 3),
        figure(measurement.idle_power_w, 3),
        figure(measurement.gflops),
        figure(measurement.gflops_per_joule, 3),
        str(len(measurement.windows)) if measurement.windows else NONE,
    )
    return table


def _notes(measurement: Measurement) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for word, text in notes(measurement):
        failing = word == "why" and not measurement.ok
        grid.add_row(word, Text(text, style="red" if failing else ""))
    return grid
