"""One characterisation: a card and a file in, a record out; what is there already is kept.

Codes: B005 the record is of another card or of other software, B006 no benchmark of that group.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, get_args

from eatss.base.diagnostics import Diagnostic, input_error
from eatss.base.frozen import frozen
from eatss.measurement.characterize.bench import Bench, CupyBench
from eatss.measurement.characterize.benchmark import Benchmark, Group
from eatss.measurement.characterize.result import (
    Record,
    Subject,
    hashed,
    read_record,
    result_line,
    write_record,
)
from eatss.measurement.characterize.run import Chip, Step, characterise, check_card, suite
from eatss.measurement.cupy_card import CupyCard
from eatss.measurement.metering import Metering
from eatss.measurement.meters.meter import MeterError
from eatss.version import package_revision

OnStep = Callable[[Step], None]


@frozen
class Characterised:
    """A record, and warnings about benchmarks that gave no result."""

    record: Record
    warnings: tuple[Diagnostic, ...]


def characterise_card(
    path: Path,
    *,
    device: int | str = 0,
    profile: str = "",
    groups: Sequence[str] = (),
    fresh: bool = False,
    force: bool = False,
    progress: OnStep | None = None,
) -> Characterised:
    """Run the benchmarks on a card of this machine and keep every result as soon as it is there.

    Args:
        path: of the record. Benchmarks that it holds are not run again.
        device: the card's number as CUDA counts those it sees, or its UUID.
        profile: name of the profile that the card is known by, for the record.
        groups: run only benchmarks of these groups; all if empty.
        fresh: begin a new record.
        force: run even where other programs compute on the card.
        progress: told what runs next.

    Raises:
        InputError: there is no card, it is busy or tells no energy, or the record is of another.
        LaunchError: the card is lost; what was finished is in the record.
    """
    card = CupyCard(device)
    place = card.compile_target
    properties = card.memory.cupy.cuda.runtime.getDeviceProperties(place.device)
    chip = Chip(
        sms=int(properties["multiProcessorCount"]),
        l2_bytes=int(properties["l2CacheSize"]),
        capability=place.capability,
    )
    return run_bench(
        CupyBench(card),
        chosen(suite(chip), groups),
        path,
        sm_count=chip.sms,
        profile=profile,
        fresh=fresh,
        force=force,
        progress=progress,
    )


def run_bench(
    bench: Bench,
    benchmarks: Sequence[Benchmark],
    path: Path,
    *,
    sm_count: int,
    profile: str = "",
    fresh: bool = False,
    force: bool = False,
    progress: OnStep | None = None,
) -> Characterised:
    """Run benchmarks on a card and keep a record; see :func:`characterise_card`."""
    info = bench.card.info
    try:
        metering = Metering(bench.card, "auto")
    except MeterError as error:
        raise input_error("EATSS-B003", str(error), hint=error.remedy or None) from None
    check_card(bench, metering, force=force)
    subject = Subject(
        name=info.name,
        card=hashed(info.uuid),
        profile=profile,
        compute_capability=info.compute_capability or 0,
        sm_count=sm_count,
        driver=info.driver,
        toolkit=info.toolkit,
        power_limit_w=info.power_limit_w,
        revision=package_revision()[0],
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        meter=metering.primary,
    )
    before = None if fresh else _known(path, subject)
    known = () if before is None else before.results
    if before is not None and before.subject.revision != subject.revision:
        both = f"{before.subject.revision}, {subject.revision}"
        subject = replace(subject, revision=both)
    found, warnings = list(known), []
    with _opened(path) as file:
        file.write(write_record(Record(subject=subject, results=known)))
        file.truncate()
        file.flush()
        for one in characterise(
            bench, metering, benchmarks, finished={k.name for k in known}, progress=progress
        ):
            if isinstance(one, Diagnostic):
                warnings.append(one)
                continue
            found.append(one)
            file.write(result_line(one))
            file.flush()
            os.fsync(file.fileno())
    record = Record(subject=subject, results=tuple(found))
    return Characterised(record=record, warnings=tuple(warnings))


def chosen(benchmarks: Sequence[Benchmark], groups: Sequence[str]) -> tuple[Benchmark, ...]:
    """Return the benchmarks of some groups, all where none is named.

    Raises:
        InputError: ``EATSS-B006``: there is no such group.
    """
    known = get_args(Group)
    for group in groups:
        if group not in known:
            raise input_error(
                "EATSS-B006",
                f"there are no benchmarks '{group}'",
                hint=f"choose among {', '.join(known)}",
            )
    return tuple(one for one in benchmarks if not groups or one.group in groups)


def _opened(path: Path) -> IO[str]:
    try:
        return path.open("r+" if path.exists() else "w", encoding="utf-8")
    except OSError as error:
        raise input_error(
            "EATSS-C009", f"cannot write the record {path}: {error.strerror}"
        ) from None


def _known(path: Path, subject: Subject) -> Record | None:
    """Return what a record of the same card has with its energy, ``None`` if there is none."""
    if not path.exists() or b"\n" not in path.read_bytes()[:4096]:
        return None  # there is none, or it was cut off in its first line
    record = read_record(path)
    for what, field in (
        ("card", "card"),
        ("driver", "driver"),
        ("compiler", "toolkit"),
        ("power limit", "power_limit_w"),
        ("energy meter", "meter"),
    ):
        then, now = (getattr(one, field) for one in (record.subject, subject))
        if then != now:
            raise input_error(
                "EATSS-B005",
                f"{path} was begun with another {what}: {then}, not {now}",
                hint="give another file with --record, or begin anew with --fresh",
            )
    # what has no energy though it should is measured again
    whole = (one for one in record.results if one.window_s is None or one.energy_j is not None)
    return replace(record, results=tuple(whole))
