"""Who generates the variants of a sweep, and what became of one as a row of a store."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain, count
from math import inf
from os import PathLike, fspath
from pathlib import Path

from eatss.base.codec import encode
from eatss.base.diagnostics import input_error
from eatss.base.files import StrPath, folder_named, is_c_text
from eatss.base.frozen import frozen
from eatss.base.shipped import located
from eatss.base.targets import TARGETS, ObjectiveName, SweepTarget
from eatss.base.text import Texts
from eatss.cards.this_machine import AUTO, CardLike
from eatss.choose.selection import KernelSelection
from eatss.frontend.options import Reading
from eatss.frontend.python import SourceLike
from eatss.measurement.measurement import Measurement
from eatss.ppcg_build.run import find_ppcg
from eatss.session.source import Source
from eatss.tune.jobs import CAREFUL, MakerJob, SweepOptions
from eatss.tune.points import Space
from eatss.tune.rows import Identity, Metrics, Row, Rows, cost
from eatss.version import __version__, package_revision


def measured_row(row: Row, found: Measurement) -> Row:
    """Return the row of a variant with what was measured of it."""
    time, energy = found.time_estimate, found.energy_estimate
    return replace(
        row,
        status=found.status,
        reason=found.reason,
        sizes=found.sizes,
        time_s=found.time_s,
        energy_j=found.energy_j,
        power_w=found.power_w,
        time_error=None if time is None else time.relative,
        energy_error=None if energy is None else energy.relative,
        flops=found.flops,
        metrics=(*row.metrics, *measured_metrics(found)),
        measurement=found,
    )


def contenders(rows: Sequence[Row], objective: ObjectiveName, count: int) -> Rows:
    """Return the rows that are worth measuring again: those with a role, and the best others."""
    if count == 0:
        return ()
    good = [row for row in rows if cost(row, objective) < inf]
    good.sort(key=lambda row: cost(row, objective))
    others = [row for row in good if not row.role]
    return (*(row for row in good if row.role), *others[:count])


def spread_over(rows: Sequence[Row], count: int) -> Rows:
    """Return so many rows, evenly from the first to the last, and all those with a role."""
    if count == 0:
        return ()
    places = {
        round(at * (len(rows) - 1) / max(1, count - 1)) for at in range(min(count, len(rows)))
    }
    return tuple(row for at, row in enumerate(rows) if at in places or row.role)


def measured_metrics(found: Measurement) -> Metrics:
    """Return the numbers of a measurement that may explain its time and energy.

    Of several kernels these are the most of each resource and the mean occupancy; counters that
    are shares or rates are averaged, all others added up.
    """
    kernels = found.resources or ()
    metrics: dict[str, float] = {}
    for name in ("registers", "local_bytes", "shared_bytes", "threads"):
        if kernels:
            metrics[name] = float(max(getattr(one, name) for one in kernels))
    during = [window.during for window in found.windows if window.during is not None]
    means = {
        "occupancy": [one.occupancy for one in kernels],
        "sm_clock_mhz": [one.sm_clock_mean_mhz for one in during],
    }
    for name, several in means.items():
        if known := [one for one in several if one is not None]:
            metrics[name] = sum(known) / len(known)
    if heat := [one.temperature_c for one in during if one.temperature_c is not None]:
        metrics["temperature_c"] = float(max(heat))
    counters = [counter for kernel in found.counters or () for counter in kernel.counters]
    for name in dict.fromkeys(counter.name for counter in counters):
        own = [counter for counter in counters if counter.name == name]
        is_share = any(one.unit in ("%", "ratio") or "/" in one.unit for one in own)
        metrics[name] = sum(one.value for one in own) / (len(own) if is_share else 1)
    return tuple(metrics.items())


def identity_of(
    found: Measurement, job: MakerJob, generator: str, options: SweepOptions
) -> Identity:
    """Return the identity of a sweep.

    Args:
        found: of a variant.
        job: what variants are made of.
        generator: version of who generates.
        options: how the sweep goes.
    """
    read = job.reading.frontend()
    device = found.device
    names = ("meter", "seed", "objective", "timeout_s", "compares")
    chosen = {
        "first": encode(options.first),
        "careful": encode(CAREFUL),
        "parameters": encode(read.parameter_values),
        "function": read.function,
        "scop": read.scop,
        **{name: getattr(options, name) for name in names},
    }
    text = json.dumps(chosen, sort_keys=True, separators=(",", ":"))
    return Identity(
        program=found.program,
        source_hash=found.provenance.source_hash or "",
        target=job.target,
        generator=generator,
        dtype=found.dtype,
        defines=(*read.defines, *(f"-I{folder}" for folder in read.include_dirs)),
        sizes=found.sizes,
        card="" if device is None else device.name,
        driver="" if device is None else device.driver or "",
        compiler="" if device is None else device.toolkit or "",
        options=sha256(text.encode()).hexdigest(),
    )


def generator_version() -> str:
    """Return the version of eatss, with the revision where it is run from a checkout."""
    revision, _ = package_revision()
    return f"eatss {__version__}" + (f" ({revision})" if revision else "")


def predicted_metrics(kernels: Sequence[KernelSelection]) -> Metrics:
    """Return the predictions of a whole program, where every kernel with tiles has one."""
    predicted = [kernel.predicted for kernel in kernels if kernel.tile_sizes]
    known = [one for one in predicted if one is not None]
    if not known or len(known) < len(predicted):
        return ()
    return predictions(sum(one.time_s for one in known), sum(one.energy_j for one in known))


def predictions(time_s: float, energy_j: float) -> Metrics:
    """Return what the model expects of a run, as metrics."""
    return (("predicted_time_s", time_s), ("predicted_energy_j", energy_j))


@frozen
class Generation:
    """Who generates variants, and of what.

    Attributes:
        gpu: ``"auto"`` for the card in this machine, the name of a profile, the path of one, or a
            profile.
        target: ``"cuda"`` for code of eatss, ``"ppcg"`` for PPCG's.
        space: Path of a space in TOML, or a space; ``None`` derives one from the program.
        reading: How the source is read.
        ppcg: PPCG, a command or a path.
        ppcg_arguments: Further arguments of it.
        keep: A folder that keeps the programs.
    """

    gpu: CardLike = AUTO
    target: SweepTarget = "cuda"
    space: StrPath | Space | None = None
    reading: Reading = Reading()
    ppcg: StrPath | None = None
    ppcg_arguments: Texts = ()
    keep: StrPath | None = None


def source_text(source: SourceLike) -> str:
    """Return a source as other processes can read it; loops in Python that are no file's are C."""
    if isinstance(source, str | PathLike):
        text = fspath(located(source))
        return text if is_c_text(text) else str(Path(text).absolute())
    return fspath(Source.of(source).c)


def ppcg_program(generation: Generation) -> str | None:
    """Return the path of PPCG where it generates.

    Raises:
        InputError: ``EATSS-R003``, there is none.
    """
    return find_ppcg(generation.ppcg) if not TARGETS[generation.target].own else None


def generator_of(generation: Generation) -> str:
    """Return the version of who generates."""
    program = ppcg_program(generation)
    if program is None:
        return generator_version()
    said = subprocess.run(  # noqa: S603
        [program, "--version"], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    lines = [line.strip() for line in said.splitlines()]
    version = next((line for line in lines if line.startswith("ppcg")), "PPCG")
    return " ".join((version, *generation.ppcg_arguments))


def made_folder(path: StrPath) -> Path:
    """Make a folder for programs.

    Raises:
        InputError: ``EATSS-W006``, it cannot be made.
    """
    folder = folder_named(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise input_error(
            "EATSS-W006",
            f"the folder '{folder}' cannot be made: {error.strerror}",
            hint="name another folder",
        ) from None
    return folder


def own_folder(parent: str, variant: str) -> Path:
    """Make and return a folder that nobody else has: ``VARIANT``, else ``VARIANT-2`` and so on."""
    names = chain([variant], (f"{variant}-{turn}" for turn in count(2)))
    folder = next(own for name in names if not (own := Path(parent) / name).exists())
    folder.mkdir(parents=True)
    return folder
