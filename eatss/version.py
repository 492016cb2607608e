"""The version of eatss; the packages are built with it. The revision of a checkout."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

__version__ = "0.1.0"

_GIT_LIMIT_S = 10.0


@lru_cache
def package_revision(root: Path | None = None) -> tuple[str | None, str]:
    """Return the git revision of eatss, or ``None`` and why there is none.

    ``-dirty`` follows it where files differ from those of the revision.

    Args:
        root: the checkout, by default that of this file.
    """
    import subprocess  # noqa: PLC0415 - loads slowly

    checkout = root or Path(__file__).resolve().parents[1]
    if not (checkout / ".git").exists():
        return None, "eatss is installed, not run from a checkout"
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        said = subprocess.check_output(  # noqa: S603 - a fixed command
            [*command, "--exclude=*"], text=True, stderr=subprocess.PIPE, timeout=_GIT_LIMIT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        return None, f"git does not tell: {error}"
    return said.strip(), ""
