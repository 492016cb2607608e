"""What ``eatss measure``, ``compare`` and ``meter`` print: figures, notes, counters, CSV."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from eatss.base.shown import energy_text, pairs_text, time_text
from eatss.base.text import bytes_text, counted, csv_text, equations
from eatss.measurement.energy_meter import CardEnergy
from eatss.measurement.foreign import ProgramEnergy
from eatss.measurement.measurement import (
    Cell,
    Comparison,
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
    "failed": "ended by a failure",
}
_RESTORING = {
    "none": "",
    "between windows": "overwritten inputs restored between windows",
    "inside windows": "overwritten inputs restored inside windows, their cost subtracted",
}

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
    known = () if device is None else (device.name, device.driver, device.toolkit)
    card = (f"{word}{one}" for word, one in zip(_CARD, known, strict=False) if one)
    return listed(*card, measurement.dtype, equations(measurement.sizes, " "))


_CARD = ("", "driver ", "CUDA ")


def _counters(measurements: Sequence[Measurement]) -> Table:
    """Return the counters of all kernels; a column a variant."""
    several = [found for found in measurements if found.counters is not None]
    rows: dict[tuple[str, str], list[str]] = {}
    for number, found in enumerate(several):
        for kernel in found.counters or ():
            cells = {counter_words(one.name): _amount(one) for one in kernel.counters}
            for title, text in {"launches": str(kernel.launches), **cells}.items():
                rows.setdefault((kernel.kernel, title), [""] * len(several))[number] = text
    lines = ((*named, *texts) for named, texts in rows.items())
    titles = ("kernel", "!counter", *(f">{found.variant}" for found in several))
    return listing(titles, lines, RIGHT)


def _amount(counter: Counter) -> str:
    value = counter.value
    if counter.unit == "byte":
        return bytes_text(int(value))
    return time_text(value) if counter.unit == "s" else f"{with_prefix(value)} {counter.unit}"


def _notes(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield pairs of a word and what is to be said under it, most important first."""
    if not measurement.ok:
        yield "why", f"{measurement.status}: {measurement.reason or 'no reason was given'}"
    method, windows = measurement.method, measurement.windows
    kernels = grouped_by(
        (pairs_text(sizes) or "none", kernel) for kernel, sizes in measurement.tile_sizes
    )
    yield "tiles", "; ".join(f"{', '.join(names)}: {text}" for text, names in kernels.items())
    if windows:
        yield "windows", _windows(measurement)
        if (net_j := measurement.net_energy_j) is not None:
            yield "net", f"{energy_text(net_j)} without what the idle card draws"
        yield "meters", "; ".join(_other_meters(measurement))
        loads = [window.during for window in windows if window.during is not None]
        yield "clocks", listed(*_clocks(loads), _throttling(loads))
        by = f"{method.compiler}, launched by {method.launched_by}" if method.launched_by else ""
        data = f"data: {method.data}" if method.data else ""
        yield "method", "; ".join(filter(None, (by, data, _RESTORING[method.restoring])))
        yield "checked", "; ".join(method.checked) or "nothing: results may be wrong"
    if measurement.device is not None and measurement.device.power_scope == "module":
        yield "note", MODULE_NOTE
    yield from (("note", note) for note in measurement.notes)
    # what follows from other gaps is not said again
    known = {measurement.reason, *(f"{one.what} is not known" for one in measurement.missing)}
    missing = grouped_by((one.reason, one.what) for one in measurement.missing)
    for reason, names in missing.items():
        if reason not in known:
            yield "missing", f"{', '.join(names)}: {reason}"


def _windows(measurement: Measurement) -> str:
    windows, method = measurement.windows, measurement.method
    shortest = min(method.least_window_s, *(window.duration_s for window in windows))
    text = f"{counted(len(windows), 'window')} of {figure(shortest, 2)} s or more; "
    updates = [window.readings[0].updates for window in windows if window.readings]
    if updates:
        least = min(method.least_updates, *updates)
        text += f"{least} or more values of the {windows[0].readings[0].meter} in each; "
    return text + _ENDED.get(method.ended, method.ended)


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


_CLOCKS = {
    "MHz": ("sm_clock_lowest_mhz", "sm_clock_highest_mhz"),
    "MHz memory": ("memory_clock_mhz",),
    "°C": ("temperature_c",),
}


def _clocks(loads: Sequence[LoadState]) -> Iterator[str]:
    """Yield clocks and temperature while the load ran."""
    for unit, names in _CLOCKS.items():
        values = {getattr(load, name) for load in loads for name in names} - {None}
        if values:
            yield f"{'–'.join(map(str, sorted({min(values), max(values)})))} {unit}"


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
    columns: Columns = {
        f"against {comparison.baseline}": "measurement.variant",
        "!speed-up": lambda row: ratio_text(row.speedup),
        "!energy ratio": lambda row: ratio_text(row.energy_ratio),
        "!PPW ratio": lambda row: ratio_text(row.ppw_ratio),
    }
    others = [row for row in comparison.rows if row.measurement.variant != comparison.baseline]
    return listing_of(others, columns, RIGHT)


def _shared_notes(measurements: Sequence[Measurement]) -> Table:
    """Return the notes; one that is the same for several variants stands there once."""
    measured = {found.variant for found in measurements if found.windows}
    variants = grouped_by((note, one.variant) for one in measurements for note in _notes(one))
    lines = [
        ("all measured" if 1 < len(measured) <= len(names) else "; ".join(names), word, Text(text))
        for (word, text), names in variants.items()
    ]
    return facts(sorted(lines, key=lambda line: line[1] != "why"), columns=2)


def program_energy_parts(found: ProgramEnergy) -> Parts:
    """Return what cards drew while a program ran."""
    runs = f" ({found.runs} runs, {time_text(found.time_s / found.runs)} each)"
    head = headed(shlex.join(found.command), f"  {time_text(found.time_s)}")
    head.append(runs if found.runs > 1 else "")
    head.append(f"  exit code {found.exit_code}" if found.exit_code else "", style="red")
    columns: Columns = {
        "": lambda one: one[0],
        "J": lambda one: one[1].energy_j,
        "J a run": lambda one: one[1].energy_j and one[1].energy_j / found.runs,
        "± J": lambda one: one[1].uncertainty_j,
        "W": lambda one: one[1].power_w,
        "peak W": lambda one: one[1].peak_power_w,
        "idle W before": lambda one: one[1].idle_power_w,
        "updates": lambda one: one[1].updates,
    }
    sources = sources_of(found)
    known = [one.energy_j for one in sources.values() if one.energy_j is not None]
    total = f"  together {energy_text(sum(known))}" if len(known) == len(sources) > 1 else None
    notes = (f"  {name}: {note}" for name, one in sources.items() for note in _source_notes(one))
    return [head, listing_of(sources.items(), columns), *filter(None, (total, *notes))]


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
