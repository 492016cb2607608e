"""Cache files of Kernel Tuner: a sweep as one, and back.

Such a file has the parameters, and by their values what was found of each configuration: ``time``
in milliseconds, what observers add (``nvml_energy`` in joules, ``nvml_power`` in watts), metrics of
the user, times in milliseconds that it took, and the name of an error. It has no units and says
nothing of the source. Kernel Tuner passes over names that it does not know, so what it has no place
for stands beside: ``eatss`` of the file, ``eatss_status`` and ``eatss_reason`` of a configuration.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, get_args

import tomlkit

from eatss.base.codec import MisfitError, decode, encode
from eatss.base.diagnostics import InputError, input_error
from eatss.measurement.measurement import Status
from eatss.tune.point import Value, variant_key
from eatss.tune.store.identity import variables
from eatss.tune.store.nouns import Identity, Role, Row, Rows, Sweep

_ERRORS: Mapping[Status, str] = {
    "rejected by the model": "InvalidConfig",
    "compile error": "CompilationFailedConfig",
    "launch error": "RuntimeFailedConfig",
    "wrong result": "RuntimeFailedConfig",
    "timeout": "RuntimeFailedConfig",
}
_STATUSES: Mapping[str, Status] = {
    "InvalidConfig": "rejected by the model",
    "CompilationFailedConfig": "compile error",
    "RuntimeFailedConfig": "launch error",
    "ErrorConfig": "launch error",
}
_ENERGIES = ("nvml_energy", "ps_energy", "tegra_energy", "energy")
_POWERS = ("nvml_power", "ps_power", "tegra_power", "power")
_MAKING = ("compile_time",)
_ON_THE_CARD = ("benchmark_time", "verification_time")
_SEARCHING = ("strategy_time", "framework_time")
_OF_A_RUN = ("time", "times", "timestamp", *_MAKING, *_ON_THE_CARD, *_SEARCHING)
_RATE = "GFLOP/s"
"""Kernel Tuner's own examples call the metric so; it tells how many operations there are."""

_FAILED_MS = 1e20
"""What old versions wrote as the time of a configuration that failed."""

_LARGEST = 1 << 63
"""Whole numbers of a store are smaller."""

_OURS = ("eatss_status", "eatss_reason", "eatss_role", "eatss_card", "__error__")


_Object: TypeAlias = Mapping[str, Any]
"""An object of JSON."""


def cache_bytes(sweep: Sweep) -> bytes:
    """Return a cache file: the latest row of each variant, all of one card.

    Raises:
        InputError: ``EATSS-D031``, there are several cards.
    """
    rows = _of_the_space(sweep, latest_of_one_card(sweep, "a cache of Kernel Tuner"))
    names = list(dict.fromkeys(name for row in rows for name, _ in row.values))
    head = {
        "device_name": sweep.identity.card,
        "kernel_name": sweep.identity.program,
        "problem_size": [size for _, size in sweep.identity.sizes] or [1],
        "tune_params_keys": names,
        "tune_params": {name: _distinct(rows, name) for name in names},
        "objective": "time",
        "eatss": {"identity": encode(sweep.identity), "space": sweep.space},
    }
    entries = [f"{json.dumps(_key(row, names))}: {json.dumps(_entry(row))}" for row in rows]
    body = ",\n".join(entries)  # it ends as Kernel Tuner wants it, to append to it
    return f'{json.dumps(head)[:-1]},\n"cache": {{\n{body}}}\n}}'.encode()


def _of_the_space(sweep: Sweep, rows: Rows) -> Rows:
    """Return the rows whose values have the names of the space: others have only a role."""
    names = variables(sweep.space)
    own = tuple(row for row in rows if {name for name, _ in row.values} == names)
    return own or rows


def sweep_of_cache(document: object, path: Path) -> Sweep:
    """Return what a cache file holds.

    Energy is what the first of ``nvml_energy``, ``ps_energy``, ``tegra_energy`` and ``energy`` says
    that there is, in joules; likewise power. Other numbers are metrics.

    Raises:
        InputError: ``EATSS-D032``, it is no cache file of Kernel Tuner.
    """
    found = _object(document, path, "it is no object")
    names, entries = found.get("tune_params_keys"), found.get("cache")
    if not isinstance(names, list) or not isinstance(entries, dict):
        raise _no_cache(path, "it has no 'tune_params_keys' or no 'cache'")
    if not all(isinstance(name, str) for name in names):
        raise _no_cache(path, "'tune_params_keys' has what is no text")
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError, ValueError):
        raise _no_cache(path, "it has text that is none, or numbers that are too long") from None
    identity, space = _about(found, names, path)
    rows, at_s = [], 0.0
    for key, entry in entries.items():
        row = _row(_object(entry, path, f"'{key}' is no object"), key, names, identity, path)
        at_s += row.made_s + row.card_s + _seconds(entry, _SEARCHING)
        rows.append(replace(row, at_s=at_s))
    return Sweep(identity=identity, space=space, cards=(), rows=tuple(rows))


def latest_of_one_card(sweep: Sweep, what: str) -> Rows:
    """Return the latest row of each variant.

    Raises:
        InputError: ``EATSS-D031``, they are of several cards.
    """
    cards = sorted({row.card for row in sweep.rows if row.card is not None})
    if len(cards) > 1:
        raise input_error(
            "EATSS-D031",
            f"{what} is of one card, the sweep is of {len(cards)}",
            hint=f"choose one with --card: {', '.join(cards)}",
        )
    found: dict[str, Row] = {}
    for row in sweep.latest:
        known = found.get(row.variant)
        if known is None or row.measured or not known.measured:
            found[row.variant] = row
    return tuple(found.values())


def _distinct(rows: Iterable[Row], name: str) -> list[Value]:
    """Return the values of a variable: numbers in order, then others as they came."""
    found = {json.dumps(value): value for row in rows for own, value in row.values if own == name}
    return sorted(
        found.values(),
        key=lambda one: (isinstance(one, str), 0.0 if isinstance(one, str) else float(one)),
    )


def _key(row: Row, names: list[str]) -> str:
    values = dict(row.values)
    return ",".join(str(values.get(name)) for name in names)


def _entry(row: Row) -> dict[str, Any]:
    entry: dict[str, Any] = dict(row.values)
    if row.measured and row.time_s is not None:
        entry["time"] = row.time_s * 1e3
        entry["times"] = runtimes_ms(row)
        entry |= {"nvml_energy": row.energy_j} if row.energy_j is not None else {}
        entry |= {"nvml_power": row.power_w} if row.power_w is not None else {}
    else:
        entry["time"] = entry["__error__"] = _ERRORS.get(row.status, "ErrorConfig")
    entry |= {_RATE: row.gflops} if row.gflops is not None else {}
    entry |= {name: value for name, value in row.metrics if name not in entry}
    return entry | {
        "compile_time": row.made_s * 1e3,
        "verification_time": 0.0,
        "benchmark_time": row.card_s * 1e3,
        "strategy_time": 0.0,
        "framework_time": 0.0,
        "timestamp": row.created,
        "eatss_status": row.status,
        "eatss_reason": row.reason,
        "eatss_role": row.role,
        "eatss_card": row.card,
    }


def runtimes_ms(row: Row) -> list[float]:
    """Return the mean time of a run in each window, in milliseconds; one where they are unknown."""
    windows = () if row.measurement is None else row.measurement.windows
    found = [window.time_s * 1e3 for window in windows]
    return found or ([] if row.time_s is None else [row.time_s * 1e3])


def _row(entry: _Object, key: str, names: list[str], identity: Identity, path: Path) -> Row:
    for name in names:
        if not _is_value(entry.get(name)):
            raise _no_cache(
                path, f"'{key}' has no value of '{name}', or one that is no usual number or text"
            )
    values = tuple((name, entry[name]) for name in names)
    status, reason = _status(entry)
    card = entry.get("eatss_card")
    measured = status in ("ok", "unstable")
    time_s, rate = _number(entry, "time") if measured else None, _number(entry, _RATE)
    operations = 0.0 if rate is None or time_s is None else rate * time_s * 1e6
    flops = round(operations) if 0.5 < operations < _LARGEST else None
    energy, power = (
        next((name for name in every if (_number(entry, name) or 0.0) > 0), "")
        for every in (_ENERGIES, _POWERS)
    )
    known = {*names, *_OF_A_RUN, *_OURS, energy, power, *([_RATE] if flops is not None else [])}
    return Row(
        variant=variant_key(dict(values)),
        values=values,
        role=next((one for one in get_args(Role) if one == entry.get("eatss_role")), ""),
        card=card if isinstance(card, str) else None,
        status=status,
        reason=reason,
        sizes=identity.sizes,
        time_s=None if time_s is None else time_s / 1e3,
        energy_j=None if time_s is None else _number(entry, energy),
        power_w=None if time_s is None else _number(entry, power),
        flops=flops,
        metrics=tuple(
            (name, float(value))
            for name, value in entry.items()
            if name not in known and _is_number(value)
        ),
        made_s=_seconds(entry, _MAKING),
        card_s=_seconds(entry, _ON_THE_CARD),
        strategy="kernel-tuner",
        created=str(entry.get("timestamp", "")),
    )


def _status(entry: _Object) -> tuple[Status, str]:
    error = next((one for one in entry.values() if isinstance(one, str) and one in _STATUSES), None)
    time_ms = _number(entry, "time")
    failed = error is not None or time_ms is None or not 0 < time_ms < _FAILED_MS
    status: Status = _STATUSES[error or "ErrorConfig"] if failed else "ok"
    for own in get_args(Status):
        if own == entry.get("eatss_status") and (own in ("ok", "unstable")) is not failed:
            status = own
    reason = str(entry.get("eatss_reason", "")) or (f"Kernel Tuner: {error}" if error else "")
    return status, reason or ("Kernel Tuner gives no time" if failed else "")


def _about(found: _Object, names: list[str], path: Path) -> tuple[Identity, str]:
    own = found.get("eatss")
    if isinstance(own, dict) and isinstance(own.get("space"), str):
        try:
            return decode(Identity, own.get("identity")), own["space"]
        except MisfitError as error:
            raise _no_cache(path, f"eatss.identity: {error}") from None
    size = found.get("problem_size")
    sizes = size if isinstance(size, list) else [size]
    axes = zip("xyz", sizes, strict=False)
    identity = Identity(
        program=str(found.get("kernel_name", "")),
        source_hash="",
        target="cuda",
        generator="kernel_tuner",
        dtype="",
        defines=(),
        sizes=tuple((f"size_{a}", n) for a, n in axes if _is_value(n) and type(n) is int),
        card=str(found.get("device_name", "")),
        driver="",
        compiler="",
        options="",
    )
    return identity, _space(identity.program, found.get("tune_params"), names)


def _space(program: str, parameters: object, names: list[str]) -> str:
    """Return the parameters and their values as a space in TOML; restrictions are not known."""
    lists = parameters if isinstance(parameters, dict) else {}
    iterators = tomlkit.table()
    for name in names:
        values = lists.get(name)
        iterators[name] = list(filter(_is_value, values)) if isinstance(values, list) else []
    document = tomlkit.document()
    document["name"] = program or "imported"
    document["iterators"] = iterators
    return tomlkit.dumps(document)


def _number(entry: _Object, name: str) -> float | None:
    value = entry.get(name)
    return float(value) if _is_number(value) else None


def _is_number(value: object) -> TypeGuard[int | float]:
    """Return whether it is a number that a float can hold, a finite one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def _is_value(value: object) -> TypeGuard[Value]:
    if isinstance(value, int):
        return abs(value) < _LARGEST
    return isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))


def _seconds(entry: _Object, names: tuple[str, ...]) -> float:
    return sum(_number(entry, name) or 0.0 for name in names) / 1e3


def _object(value: object, path: Path, why: str) -> _Object:
    if not isinstance(value, Mapping):
        raise _no_cache(path, why)
    return value


def _no_cache(path: Path, why: str) -> InputError:
    return input_error(
        "EATSS-D032",
        f"'{path}' is no cache file of Kernel Tuner: {why}",
        hint="take the file that tune_kernel(cache=...) wrote",
    )
