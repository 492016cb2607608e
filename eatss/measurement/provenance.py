"""Where a measurement comes from: hashes of source and options, the revision of eatss."""

from __future__ import annotations

import json
import subprocess
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from eatss.codec import encode
from eatss.measurement.options import MeasureOptions
from eatss.program import Program

_GIT_LIMIT_S = 10.0


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


@lru_cache
def package_revision() -> tuple[str | None, str]:
    """Return the git revision of eatss, or ``None`` and why there is none.

    ``-dirty`` follows it where files differ from those of the revision.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None, "eatss is installed, not run from a checkout"
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
    command += ["--exclude=*"]
    try:
        said = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, text=True, timeout=_GIT_LIMIT_S, check=True
        )
    except FileNotFoundError:
        return None, "git is not installed"
    except subprocess.TimeoutExpired:
        return None, f"git did not answer within {_GIT_LIMIT_S:g} s"
    except subprocess.CalledProcessError as error:
        return None, f"git says: {error.stderr.strip()}"
    return said.stdout.strip(), ""
