"""Measurements as tables, notes in sentences, hardware counters and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eatss.base.shown import pairs_text
from eatss.measurement.measurement import (
    Cell,
    Counter,
    LoadState,
    Measurement,
    Measurements,
    measurement_rows,
)
from eatss.report.render import (
    MODULE_NOTE,
    NONE,
    RIGHT,
    apart,
    bytes_amount,
    counted,
    equations,
    facts,
    figure,
    headed,
    listing,
    milliseconds,
    printed,
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
    several = [found for found in measurements if found.counters is not None]
    table = listing(("kernel", "!counter"), (), RIGHT)
    for found in several:
        variant = found.variant if len(measurements) > 1 else ""
        table.add_column(variant, header_style="dim", justify="right")
    rows: dict[str, dict[str, list[str]]] = {}
    for number, found in enumerate(several):
        for kernel in found.counters or ():
            own = rows.setdefault(kernel.kernel, {})
            cells = [("launches", str(kernel.launches))]
            cells += [(counter_words(c.name), amount(c)) for c in kernel.counters]
            for title, text in cells:
                own.setdefault(title, [""] * len(several))[number] = text
    for name, own in rows.items():
        for place, (title, texts) in enumerate(own.items()):
            table.add_row("" if place else name, title, *texts)
    return table


def amount(counter: Counter) -> str:
    """Return a counter's value with its unit."""
    if counter.unit == "byte":
        return bytes_amount(counter.value)
    if counter.unit == "s":
        return f"{milliseconds(counter.value)} ms"
    if counter.unit == "%":
        return f"{figure(counter.value, 3)} %"
    return with_prefix(counter.value)


def csv_text(rows: Sequence[Mapping[str, Cell]]) -> str:
    """Return rows as CSV; what was not measured is empty and stands in ``missing``."""
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
_LAUNCHED = {"graph": "a CUDA graph", "stream": "a stream", "host code": "compiled host code"}
_DATA = {
    "dominant": "random numbers in [0, 1) with a heavy diagonal",
    "offset": "random numbers in [1, 2)",
    "small": "random numbers in [0, 1/n), n the longest extent",
}
"""Kinds of data other than the first choice, [0, 1)."""


def subject(measurement: Measurement) -> str:
    """Return the card, its software, the type and the sizes, in one line."""
    device = measurement.device
    parts = [] if device is None else [device.name]
    if device is not None and device.driver:
        parts.append(f"driver {device.driver}")
    if device is not None and device.toolkit:
        parts.append(f"CUDA {device.toolkit}")
    return ", ".join(filter(None, (*parts, measurement.dtype, equations(measurement.sizes))))


def notes(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield pairs of a word and what is to be said under it, most important first."""
    if measurement.reason or not measurement.ok:
        reason = measurement.reason or "no reason was given"
        yield "why", f"{measurement.status}: {reason}"
    said = [("tiles", _tiles(measurement))]
    if measurement.windows:
        net_j = measurement.net_energy_j
        said += [
            ("windows", _windows(measurement)),
            ("net", "" if net_j is None else f"{figure(net_j)} J without what the idle card draws"),
            ("meters", "; ".join(_other_meters(measurement))),
            ("clocks", _clocks(measurement)),
            ("method", _method(measurement)),
        ]
    if measurement.device is not None and measurement.device.power_scope == "module":
        said.append(("note", MODULE_NOTE))
    yield from (pair for pair in said if pair[1])
    yield from (("note", note) for note in measurement.notes)
    checked = measurement.method.checked
    if measurement.windows or checked:
        yield "checked", "; ".join(checked) or "nothing: results may be wrong"
    # what follows from other gaps is not said again
    known = {measurement.reason, *(f"{one.what} is not known" for one in measurement.missing)}
    reasons: dict[str, list[str]] = {}
    for missing in measurement.missing:
        if missing.reason not in known:
            reasons.setdefault(missing.reason, []).append(missing.what)
    for reason, names in reasons.items():
        yield "missing", f"{', '.join(names)}: {reason}"


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


def _tiles(measurement: Measurement) -> str:
    """Return the tile sizes, of kernels that have the same ones together."""
    kernels: dict[str, list[str]] = {}
    for kernel, sizes in measurement.tile_sizes:
        kernels.setdefault(pairs_text(sizes) or "none", []).append(kernel)
    if len(kernels) == 1:
        return next(iter(kernels))
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in kernels.items())


def _windows(measurement: Measurement) -> str:
    windows, method = measurement.windows, measurement.method
    shortest = min(method.least_window_s, *(window.duration_s for window in windows))
    text = f"{counted(len(windows), 'window')} of {figure(shortest, 2)} s or more; "
    updates = [window.readings[0].updates for window in windows if window.readings]
    if updates:
        least = min(method.least_updates, *updates)
        text += f"{least} or more values of the {windows[0].readings[0].meter} in each; "
    return text + _ENDED[method.ended]


def _method(measurement: Measurement) -> str:
    method = measurement.method
    parts = []
    if method.compiler is not None and method.launched_by is not None:
        parts.append(f"{method.compiler}, launched by {_LAUNCHED[method.launched_by]}")
    if method.data not in (None, "uniform"):
        parts.append(f"data: {_DATA.get(method.data or '', method.data)}")
    return "; ".join(filter(None, (*parts, _RESTORING[method.restoring])))


def _other_meters(measurement: Measurement) -> Iterator[str]:
    """Yield how far other meters' power is from that of the first one, over the same windows."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for window in measurement.windows:
        for reading in window.readings[1:]:
            both = (reading.power_w, window.readings[0].power_w)
            pairs.setdefault(reading.meter, []).append(both)
    for meter, values in pairs.items():
        other, first = map(sum, zip(*values, strict=True))
        if first > 0:
            percent = 100 * (other / first - 1)
            yield f"{meter}: {abs(percent):.1f} % {'more' if percent >= 0 else 'less'}"


def _clocks(measurement: Measurement) -> str:
    """Return clocks, temperature and what held the clocks back while the load ran."""
    loads = [window.during for window in measurement.windows if window.during is not None]
    parts = []
    for unit, values in (
        ("MHz", [c for one in loads for c in (one.sm_clock_lowest_mhz, one.sm_clock_highest_mhz)]),
        ("MHz memory", [one.memory_clock_mhz for one in loads]),
        ("°C", [one.temperature_c for one in loads]),
    ):
        known = sorted({value for value in values if value is not None})
        if known:
            parts.append(f"{'–'.join(map(str, dict.fromkeys((known[0], known[-1]))))} {unit}")
    return "; ".join(filter(None, (", ".join(parts), throttling(loads))))


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
    if output == "csv":
        return csv_text([row for one in measurements for row in measurement_rows(one)])
    return printed(Measurements(measurements=tuple(measurements)), output)


def measurements_parts(found: Measurements) -> list[RenderableType]:
    """Return what is told of several, one after the other."""
    return apart(*map(measurement_parts, found.measurements))


def measurement_parts(measurement: Measurement) -> list[RenderableType]:
    """Return a measurement for people: a head, figures, notes and counters."""
    variant = measurement.variant
    shown = f"  {variant}" if variant not in ("", measurement.program) else ""
    head = headed(measurement.program, shown).append("  ").append_text(status_text(measurement))
    parts: list[RenderableType] = [head, subject(measurement)]
    if measurement.time_s is not None or measurement.energy_j is not None:
        row = [text for _, text in figures(measurement)]
        idle = figure(measurement.idle_power_w, 3)
        titles = (*FIGURES[:5], "!>idle W", *FIGURES[5:])
        cells = [(*row[:5], idle, *row[5:])]
        parts.append(listing(titles, cells, RIGHT))
    failing = "" if measurement.ok else "red"
    parts.append(
        facts(
            (word, Text(text, style=failing if word == "why" else ""))
            for word, text in notes(measurement)
        )
    )
    if measurement.counters is not None:
        parts += ["", counters_table([measurement])]
    return parts


def status_text(measurement: Measurement) -> Text:
    """Return the status, coloured."""
    return Text(measurement.status, style=_STYLE.get(measurement.status, "red"))


FIGURES = ("!>ms", "!±", "!>J", "!±", "!>W", "!>GFLOP/s", "!>GFLOP/J", "!>windows")
"""Titles of the figures of a measurement."""


def figures(found: Measurement) -> Iterator[tuple[str, Text]]:
    """Yield the figures of a measurement by their titles."""
    texts: tuple[str | Text, ...] = (
        milliseconds(found.time_s),
        Text(spread(found.time_estimate), style="dim"),
        figure(found.energy_j),
        Text(spread(found.energy_estimate), style="dim"),
        figure(found.power_w, 3),
        figure(found.gflops),
        figure(found.gflops_per_joule, 3),
        str(len(found.windows)) if found.windows else NONE,
    )
    for title, text in zip(FIGURES, texts, strict=True):
        yield title, Text(text) if isinstance(text, str) else text
