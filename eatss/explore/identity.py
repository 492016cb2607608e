"""What all rows of a sweep have in common, from the first variant that was measured."""

from __future__ import annotations

import json
from collections.abc import Collection
from hashlib import sha256

from eatss.codec import encode
from eatss.explore.lab import Done
from eatss.explore.nouns import SourceText
from eatss.explore.options import CAREFUL, SweepOptions
from eatss.measurement.provenance import package_revision
from eatss.store.nouns import Identity
from eatss.targets import TargetName
from eatss.version import __version__


def identity_of(
    done: Done,
    source: SourceText,
    target: TargetName,
    generator: str,
    varied: Collection[str],
    options: SweepOptions,
) -> Identity:
    """Return the identity of a sweep.

    Args:
        done: a variant that was measured.
        source: what is swept, and how it is read.
        target: who generates.
        generator: version of that.
        varied: parameters that the space varies.
        options: how the sweep goes.
    """
    assert done.tried is not None
    found = done.tried.measurement
    device = found.device
    chosen = {
        "first": encode(options.first),
        "careful": encode(CAREFUL),
        "meter": options.meter,
        "seed": options.seed,
        "objective": options.objective,
        "timeout_s": options.timeout_s,
        "compares": options.compares,
        "parameters": encode(source.parameters),
        "function": source.function,
        "scop": source.scop,
    }
    text = json.dumps(chosen, sort_keys=True, separators=(",", ":"))
    return Identity(
        program=found.program,
        source_hash=found.provenance.source_hash or "",
        target=target,
        generator=generator,
        dtype=found.dtype,
        defines=(*source.defines, *(f"-I{folder}" for folder in source.include_dirs)),
        sizes=tuple((name, value) for name, value in found.sizes if name not in varied),
        card="" if device is None else device.name,
        driver="" if device is None else device.driver or "",
        compiler="" if device is None else device.toolkit or "",
        options=sha256(text.encode()).hexdigest(),
    )


def generator_version() -> str:
    """Return the version of eatss, with the revision where it is run from a checkout."""
    revision, _ = package_revision()
    return f"eatss {__version__}" + (f" ({revision})" if revision else "")
