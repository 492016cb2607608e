"""Which package of CuPy does for a driver: each is made for one CUDA."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import metadata

from eatss.machine.driver_access import Verdict, Version
from eatss.machine.requirements import WHOLE, Requirement

NEWEST = 13
"""The CUDA whose CuPy is proposed where no driver says what it runs."""

_PACKAGE = re.compile(r"cupy(?:-cuda(\d+)x)?")
_DEVELOPING = frozenset(("all", "dev"))


def installed_cupy() -> dict[str, str]:
    """Return the packages of CuPy that are installed, with their versions."""
    found = {}
    for one in metadata.distributions():
        name = (one.metadata["Name"] or "").lower()
        if _PACKAGE.fullmatch(name):
            found[name] = one.version
    return found


def cupy_verdict(
    installed: Mapping[str, str],
    cuda: Version | None,
    required: Sequence[Requirement],
    distribution: str = WHOLE,
) -> Verdict:
    """Return whether what is installed does.

    Args:
        installed: packages of CuPy with their versions.
        cuda: the newest CUDA that the driver runs, ``None`` if there is no driver.
        required: what eatss requires, with the extras that have CuPy.
        distribution: what eatss is installed as, whose extras are named.
    """
    major = cuda[0] if cuda else NEWEST
    command = install_command(major, required, distribution)
    if not installed:
        return Verdict(
            good=False, found="not installed", remedy=_install_text(major, cuda), command=command
        )
    names = sorted(installed)
    if len(names) > 1:
        return Verdict(
            good=False,
            found=f"{' and '.join(names)} are both installed, and spoil each other",
            remedy="keep one",
            command=f"pip uninstall -y {' '.join(names)} && {command}",
        )
    ((name, version),) = installed.items()
    found = _PACKAGE.fullmatch(name)
    made_for = int(found[1]) if found and found[1] else None
    if made_for is not None and cuda is not None and made_for > cuda[0]:
        return Verdict(
            good=False,
            found=f"{name} {version} is for CUDA {made_for}, and the driver runs CUDA up to "
            f"{cuda[0]}.{cuda[1]}",
            remedy=f"take the CuPy for CUDA {cuda[0]}, or update the driver",
            command=f"pip uninstall -y {name} && {command}",
        )
    versions = _versions(required)
    if not Requirement(name=name, versions=versions).takes(version):
        return Verdict(
            good=False,
            found=f"{name} {version}, and eatss needs {versions}",
            remedy="install a version that does",
            command=f"pip install '{name}{versions}'",
        )
    return Verdict(good=True, found=f"{name} {version}")


def install_command(major: int, required: Sequence[Requirement], distribution: str = WHOLE) -> str:
    """Return what to type for the CuPy of a CUDA: the extra that has it, if there is one."""
    name = f"cupy-cuda{major}x"
    extras = sorted(one.extra for one in required if one.name == name and one.extra)
    chosen = [one for one in extras if one not in _DEVELOPING]
    if chosen:
        return f"pip install '{distribution}[{chosen[0]}]'"
    return f"pip install '{name}{_versions(required)}'"


def _versions(required: Sequence[Requirement]) -> str:
    return next((one.versions for one in required if one.name.startswith("cupy")), "")


def _install_text(major: int, cuda: Version | None) -> str:
    if cuda is None:
        return "install it, on a machine with a card and its driver"
    return f"install the one for CUDA {major}, which this driver runs"
