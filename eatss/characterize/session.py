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

from eatss.characterize.bench import Bench, CupyBench
from eatss.characterize.benchmark import Benchmark, Group
from eatss.characterize.result import (
    Record,
    Subject,
    hashed,
    read_record,
    result_line,
    write_record,
)
from eatss.characterize.run import Chip, Skipped, Step, characterise, check_card, suite
from eatss.diagnostics import Diagnostic, InputError, input_error
from eatss.frozen import frozen
from eatss.measurement.cupy_card import CupyCard
from eatss.measurement.measurement import DeviceInfo
from eatss.measurement.metering import Metering
from eatss.measurement.meters.meter import MeterError
from eatss.measurement.provenance import package_revision

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
    chip = _chip(card)
    bench = CupyBench(card)
    return run_bench(
        bench,
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
    metering = _metering(bench)
    check_card(bench, metering, force=force)
    subject = replace(_subject(info, sm_count, profile), meter=metering.primary)
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
            if isinstance(one, Skipped):
                warnings.append(one.diagnostic)
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


def _metering(bench: Bench) -> Metering:
    try:
        return Metering(bench.card, "auto")
    except MeterError as error:
        raise input_error("EATSS-B003", str(error), hint=error.remedy or None) from None


def _chip(card: CupyCard) -> Chip:
    place = card.compile_target
    properties = card.memory.cupy.cuda.runtime.getDeviceProperties(place.device)
    return Chip(
        sms=int(properties["multiProcessorCount"]),
        l2_bytes=int(properties["l2CacheSize"]),
        capability=place.capability,
    )


def _subject(info: DeviceInfo, sm_count: int, profile: str) -> Subject:
    revision, _ = package_revision()
    return Subject(
        name=info.name,
        card=hashed(info.uuid),
        profile=profile,
        compute_capability=info.compute_capability or 0,
        sm_count=sm_count,
        driver=info.driver,
        toolkit=info.toolkit,
        power_limit_w=info.power_limit_w,
        revision=revision,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


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
    for what, then, now in (
        ("card", record.subject.card, subject.card),
        ("driver", record.subject.driver, subject.driver),
        ("compiler", record.subject.toolkit, subject.toolkit),
        ("power limit", record.subject.power_limit_w, subject.power_limit_w),
        ("energy meter", record.subject.meter, subject.meter),
    ):
        if then != now:
            raise _of_another(path, what, then, now)
    # what has no energy though it should is measured again
    whole = (one for one in record.results if one.window_s is None or one.energy_j is not None)
    return replace(record, results=tuple(whole))


def _of_another(path: Path, what: str, then: object, now: object) -> InputError:
    return input_error(
        "EATSS-B005",
        f"{path} was begun with another {what}: {then}, not {now}",
        hint="give another file with --record, or begin anew with --fresh",
    )
