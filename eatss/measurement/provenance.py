"""Where a measurement comes from: hashes of source and options."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from eatss.base.codec import encode
from eatss.measurement.options import MeasureOptions
from eatss.program import Program


def option_hash(program: Program | None, options: MeasureOptions) -> str:
    """Return the hash of everything chosen in measuring and compiling."""
    chosen: dict[str, object] = {"measure": encode(options)}
    if program is not None:
        chosen["compile"] = {
            "flags": encode(program.flags),
            "compute_capability": program.compute_capability,
            "parameters": encode(program.parameters),
            "defines": encode(program.original.defines),
        }
    text = json.dumps(chosen, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def source_hash_of(program: Program | None, directory: Path | None) -> tuple[str | None, str]:
    """Return the hash of the original C file, or ``None`` and why there is none."""
    if program is None or directory is None:
        return None, "nothing was generated"
    try:
        content = (directory / program.original.file).read_bytes()
    except OSError as error:
        return None, f"'{program.original.file}' cannot be read: {error.strerror}"
    return sha256(content).hexdigest(), ""
