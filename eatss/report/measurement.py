"""What ``eatss measure``, ``compare`` and ``meter`` print: figures, notes, counters, CSV."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from eatss.base.shown import energy_text, pairs_text, time_text
from eatss.base.text import bytes_text, counted, csv_text, equations
from eatss.measurement.energy_meter import CardEnergy
from eatss.measurement.foreign import ProgramEnergy
from eatss.measurement.measurement import (
    Cell,
    Comparison,
    ComparisonRow,
    Counter,
    Estimate,
    LoadState,
    Measurement,
    Measurements,
    comparison_rows,
    measurement_rows,
)
from eatss.report.render import (
    MODULE_NOTE,
    RIGHT,
    Columns,
    Parts,
    apart,
    facts,
    figure,
    grouped_by,
    headed,
    listed,
    listing,
    listing_of,
    off_by,
    printed,
    ratio_text,
    with_prefix,
)

FIGURES: Columns = {
    "!ms": "time_s",
    "!±": lambda one: _off(one.time_estimate),
    "!J": "energy_j",
    "!± ": lambda one: _off(one.energy_estimate),
    "!W": "power_w",
    "!GFLOP/s": "gflops",
    "!GFLOP/J": "gflops_per_joule",
    "!windows": lambda one: len(one.windows) or None,
}
"""The figures of a measurement; one of two equal titles has a blank more."""

_COUNTERS = {
    "dram__bytes_read.sum": "DRAM read",
    "dram__bytes_write.sum": "DRAM written",
    "lts__t_sectors_srcunit_tex_op_read.sum": "L2 sectors read by L1",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "achieved occupancy",
    "smsp__inst_executed.sum": "warp instructions",
    "gpu__time_duration.sum": "time when counted",
}

CONTRADICTION = 10
"""Sensors that are off by the 5 % of their specification differ by less, in per cent."""

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

_STYLE = {"ok": "green", "unstable": "yellow", "rejected by the model": "yellow"}
_SHORT = {"ok": "ok", "unstable": "unstable", "rejected by the model": "rejected"}


def counter_words(name: str) -> str:
    """Return a counter's name in words; the name of anything else as it is."""
    return _COUNTERS.get(name, name)


def _table(rows: Sequence[Mapping[str, Cell]]) -> str:
    """Return rows of the same columns as CSV, nothing where there are none."""
    return csv_text(rows[0], rows) if rows else ""


def render_measurements(measurements: Sequence[Measurement], output: str) -> str:
    """Return measurements as ``table``, ``json`` or ``csv``."""
    if output == "csv":
        return _table([row for one in measurements for row in measurement_rows(one)])
    return printed(Measurements(measurements=tuple(measurements)), output)


def measurements_parts(found: Measurements) -> Parts:
    """Return several measurements, one after the other."""
    return apart(*map(measurement_parts, found.measurements))


def measurement_parts(measurement: Measurement) -> Parts:
    """Return a measurement for people: a head, figures, notes and counters."""
    variant = measurement.variant
    shown = f"  {variant}" if variant not in ("", measurement.program) else ""
    head = headed(measurement.program, shown).append("  ").append_text(_status(measurement))
    parts: Parts = [head, _subject(measurement)]
    if measurement.time_s is not None or measurement.energy_j is not None:
        columns = FIGURES | {"!idle W": "idle_power_w"}
        parts.append(listing_of([measurement], columns, RIGHT))
    failing = "" if measurement.ok else "red"
    lines = (
        (word, Text(text, style=failing if word == "why" else ""))
        for word, text in _notes(measurement)
    )
    parts.append(facts(lines))
    if measurement.counters is not None:
        parts += ["", _counters([measurement])]
    return parts


def _off(estimate: Estimate | None) -> Text:
    """Return half the interval as a percentage of the mean."""
    return Text("" if estimate is None else off_by(estimate.relative), style="dim")


def _status(measurement: Measurement) -> Text:
    return Text(measurement.status, style=_STYLE.get(measurement.status, "red"))


def _subject(measurement: Measurement) -> str:
    """Return the card, its software, the type and the sizes, in one line."""
    device = measurement.device
    parts = []
    if device is not None:
        driver = f"driver {device.driver}" if device.driver else ""
        parts = [device.name, driver, f"CUDA {device.toolkit}" if device.toolkit else ""]
    return listed(*parts, measurement.dtype, equations(measurement.sizes, " "))


def _counters(measurements: Sequence[Measurement]) -> Table:
    """Return the counters of all kernels; a column a variant where there are several."""
    several = [found for found in measurements if found.counters is not None]
    titles = [f">{found.variant}" if len(measurements) > 1 else ">" for found in several]
    rows: dict[tuple[str, str], list[str]] = {}
    for number, found in enumerate(several):
        for kernel in found.counters or ():
            cells = {counter_words(one.name): _amount(one) for one in kernel.counters}
            for title, text in {"launches": str(kernel.launches), **cells}.items():
                rows.setdefault((kernel.kernel, title), [""] * len(several))[number] = text
    lines = ((*named, *texts) for named, texts in rows.items())
    return listing(("kernel", "!counter", *titles), lines, RIGHT)


def _amount(counter: Counter) -> str:
    value = counter.value
    texts = {
        "byte": lambda: bytes_text(int(value)),
        "s": lambda: time_text(value),
        "%": lambda: f"{figure(value)} %",
    }
    return texts.get(counter.unit, lambda: with_prefix(value))()


def _notes(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield pairs of a word and what is to be said under it, most important first."""
    if measurement.reason or not measurement.ok:
        yield "why", f"{measurement.status}: {measurement.reason or 'no reason was given'}"
    yield "tiles", _tiles(measurement)
    if measurement.windows:
        net_j = measurement.net_energy_j
        loads = [window.during for window in measurement.windows if window.during is not None]
        yield "windows", _windows(measurement)
        if net_j is not None:
            yield "net", f"{energy_text(net_j)} without what the idle card draws"
        yield "meters", "; ".join(_other_meters(measurement))
        yield "clocks", "; ".join(filter(None, (_clocks(loads), _throttling(loads))))
        yield "method", _method(measurement)
    if measurement.device is not None and measurement.device.power_scope == "module":
        yield "note", MODULE_NOTE
    yield from (("note", note) for note in measurement.notes)
    checked = measurement.method.checked
    if measurement.windows or checked:
        yield "checked", "; ".join(checked) or "nothing: results may be wrong"
    # what follows from other gaps is not said again
    known = {measurement.reason, *(f"{one.what} is not known" for one in measurement.missing)}
    missing = grouped_by((one.reason, one.what) for one in measurement.missing)
    for reason, names in missing.items():
        if reason not in known:
            yield "missing", f"{', '.join(names)}: {reason}"


def _tiles(measurement: Measurement) -> str:
    """Return the tile sizes, of kernels that have the same ones together."""
    kernels = grouped_by(
        (pairs_text(sizes) or "none", kernel) for kernel, sizes in measurement.tile_sizes
    )
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
    pairs = grouped_by(
        (reading.meter, (reading.power_w, window.readings[0].power_w))
        for window in measurement.windows
        for reading in window.readings[1:]
    )
    for meter, values in pairs.items():
        other, first = map(sum, zip(*values, strict=True))
        if first > 0:
            percent = 100 * (other / first - 1)
            wrong = ": they contradict each other" if abs(percent) > CONTRADICTION else ""
            yield f"{meter}: {abs(percent):.1f} % {'more' if percent >= 0 else 'less'}{wrong}"


def _clocks(loads: Sequence[LoadState]) -> str:
    """Return clocks and temperature while the load ran."""
    parts = []
    for unit, names in (
        ("MHz", ("sm_clock_lowest_mhz", "sm_clock_highest_mhz")),
        ("MHz memory", ("memory_clock_mhz",)),
        ("°C", ("temperature_c",)),
    ):
        values = {getattr(load, name) for load in loads for name in names} - {None}
        if values:
            parts.append(f"{'–'.join(map(str, sorted({min(values), max(values)})))} {unit}")
    return ", ".join(parts)


def _throttling(loads: Sequence[LoadState]) -> str:
    known = [load.throttle for load in loads if load.throttle is not None]
    if not known:
        return "unknown whether anything held them back"
    reasons = dict.fromkeys(reason for reasons in known for reason in reasons)
    return f"held back: {', '.join(reasons)}" if reasons else "not held back"


def render_comparison(comparison: Comparison, output: str) -> str:
    """Return a comparison as ``table``, ``json`` or ``csv``."""
    if output == "csv":
        return _table(comparison_rows(comparison))
    return printed(comparison, output)


def comparison_parts(comparison: Comparison) -> Parts:
    """Return a comparison: figures, then ratios, then notes."""
    measurements = [row.measurement for row in comparison.rows]
    fullest = max(measurements, key=lambda found: (found.device is not None, bool(found.sizes)))
    counters = any(found.counters is not None for found in measurements)
    return apart(
        [headed(comparison.program, f"\n{_subject(fullest)}")],
        [_figures(measurements)],
        [_ratios(comparison)],
        [_shared_notes(measurements)],
        [Text(f"not alike: {note}", style="yellow") for note in comparison.notes],
        [_counters(measurements)] if counters else [],
    )


def _figures(measurements: Sequence[Measurement]) -> Table:
    """Return time, energy, power and rates, a row a variant."""
    columns: Columns = {
        "variant": "variant",
        "!": lambda one: Text(_SHORT.get(one.status, "failed"), style=_status(one).style),
        **FIGURES,
    }
    table = listing_of(measurements, columns, (0, 1, 0, 0))
    table.columns[0].min_width = 9
    return table


def _ratios(comparison: Comparison) -> Table:
    def cells(row: ComparisonRow) -> Iterator[str | Text]:
        ratios = (row.speedup, row.energy_ratio, row.ppw_ratio)
        yield row.measurement.variant
        yield from map(ratio_text, ratios) if any(ratios) else (_status(row.measurement), "", "")

    titles = (f"against {comparison.baseline}", "!speed-up", "!energy ratio", "!PPW ratio")
    others = [row for row in comparison.rows if row.measurement.variant != comparison.baseline]
    return listing(titles, map(cells, others), RIGHT)


def _shared_notes(measurements: Sequence[Measurement]) -> Table:
    """Return the notes; one that is the same for several variants stands there once."""
    measured = {found.variant for found in measurements if found.windows}
    variants = grouped_by((note, one.variant) for one in measurements for note in _notes(one))
    lines = []
    for (word, text), names in variants.items():
        everyone = len(measured) > 1 and measured <= set(names)
        lines.append(("all measured" if everyone else "; ".join(names), word, text))
    lines.sort(key=lambda line: (line[1] != "why", line[0] != "all measured"))
    grid = facts((), columns=2)
    last = ""
    for who, word, text in lines:
        grid.add_row("" if who == last else Text(who), word, Text(text))
        last = who
    return grid


def program_energy_parts(found: ProgramEnergy) -> Parts:
    """Return what cards drew while a program ran."""
    each_s = time_text(found.time_s / found.runs)
    runs = f" ({found.runs} runs, {each_s} each)" if found.runs > 1 else ""
    head = headed(shlex.join(found.command), f"  {time_text(found.time_s)}").append(runs)
    head.append(f"  exit code {found.exit_code}" if found.exit_code else "", style="red")
    sources = sources_of(found)
    rows: list[tuple[Any, ...]] = [
        (name, one.energy_j, one.uncertainty_j, *_powers(one), one.updates)
        for name, one in sources.items()
    ]
    if len(sources) > 1:
        known = [one.energy_j for one in sources.values() if one.energy_j is not None]
        whole_j = sum(known) if len(known) == len(sources) else None
        off_j = sum(one.uncertainty_j or 0.0 for one in sources.values())
        rows.append(("sum", whole_j, off_j, whole_j and whole_j / found.time_s, "", "", ""))
    titles = ["", "J", "± J", "W", "peak W", "idle W before", "updates"]
    if found.runs > 1:
        titles.insert(3, "J a run")
        rows = [(*row[:3], row[1] and row[1] / found.runs, *row[3:]) for row in rows]
    notes = [
        f"{name}: {note}" if len(sources) > 1 else note
        for name, one in sources.items()
        for note in _source_notes(one)
    ]
    return [head, listing(titles, rows), *(Text(f"  {note}") for note in dict.fromkeys(notes))]


def _powers(one: CardEnergy) -> tuple[float | None, ...]:
    return one.power_w, one.peak_power_w, one.idle_power_w


def sources_of(found: ProgramEnergy) -> dict[str, CardEnergy]:
    """Return cards by name; of several with the start of UUIDs."""
    several = len(found.cards) > 1
    sources = {}
    for card in found.cards:
        uuid = card.device.uuid if card.device and several else None
        name = card.device.name if card.device else card.name
        sources[f"{name} {(uuid or '')[:12]}".strip()] = card
    return sources


def power_csv(found: ProgramEnergy) -> str:
    """Return power over time as CSV: card, seconds since the program began, watts."""
    rows = [
        {"device": name, "time_s": f"{one.time_s:.4f}", "power_w": f"{one.power_w:.3f}"}
        for source in found.cards
        for name in [(source.device and source.device.uuid) or source.name]
        for one in source.trace
    ]
    return _table(rows) or "device,time_s,power_w\n"


def _source_notes(source: CardEnergy) -> Iterator[str]:
    if source.device is not None and source.device.power_scope == "module":
        yield MODULE_NOTE
    if source.energy_j is None or source.uncertainty_j is None:
        reasons = [one.reason for one in source.missing if one.what.startswith("energy")]
        yield from (f"no energy: {reason}" for reason in reasons)
