"""Why a program sees no card: the facts of this machine, and what they come to.

CUDA's own library is asked, not a package of Python, so that a driver that is missing is told from
a package that is.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from eatss.base.compilers import in_container
from eatss.base.frozen import frozen

Version: TypeAlias = tuple[int, int]

_CUDA = "libcuda.so.1"
_OK, _STUB, _NO_DEVICE, _NOT_READY, _MISMATCH = 0, 34, 100, 802, 803


@frozen
class DriverFacts:
    """What this machine has of a driver and of cards; ``None`` where nobody answers.

    ``kernel_driver`` is the version of the module in the kernel. ``devices`` are the files of the
    cards (``/dev/nvidia0``), ``closed`` those that this user may not open. ``cuda_code`` is what
    ``cuInit`` returns, ``None`` where its library is not there, ``cuda_cards`` counts the cards
    that it lists, and ``cuda`` is the newest CUDA that the driver knows. ``visible`` is
    ``CUDA_VISIBLE_DEVICES``.
    """

    kernel_driver: str | None = None
    devices: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    cuda_code: int | None = None
    cuda_cards: int = 0
    cuda: Version | None = None
    visible: str | None = None
    container: bool = False


@frozen
class Verdict:
    """Whether cards can be used; if not why, what to do, and the command to type."""

    good: bool
    found: str
    remedy: str = ""
    command: str = ""


def bad(found: str, remedy: str, command: str = "") -> Verdict:
    """Return what is wrong, what to do, and what to type."""
    return Verdict(good=False, found=found, remedy=remedy, command=command)


_OF_HOST = "start the container with its card: NVIDIA's container toolkit on the host, and"
_DOCKER = "docker run --gpus all …"
_SITE = "https://www.nvidia.com/drivers"


def driver_verdict(facts: DriverFacts) -> Verdict:
    """Return what the facts say of the driver: the first of these that holds."""
    known, absent = facts.kernel_driver, facts.cuda_code is None
    refused = bool(facts.closed) and not facts.cuda_cards
    in_kernel = f"the kernel has driver {known}"
    rows = (
        (absent and facts.container, f"there is no {_CUDA} in this container", _OF_HOST, _DOCKER),
        (
            absent and known is not None,
            f"{in_kernel}, but {_CUDA} is not found",
            "install the driver's libraries of the same version",
            f"sudo apt-get install libnvidia-compute-{(known or '').partition('.')[0]}",
        ),
        (absent, "there is none", f"measuring needs an NVIDIA card and its driver: {_SITE}", ""),
        (
            refused,
            f"this user may not open {', '.join(facts.closed)}",
            "join the group that owns the files (in a container: let it use the host's), then "
            "log in again",
            "ls -l /dev/nvidia* && sudo usermod -aG video $USER",
        ),
        (
            facts.cuda_code == _MISMATCH,
            f"{in_kernel} and the libraries are of another",
            "the driver was updated: restart the machine",
            "sudo reboot",
        ),
        (
            facts.cuda_code == _NOT_READY,
            "the driver is still setting up the links between the cards",
            "start NVIDIA's fabric manager",
            "sudo systemctl start nvidia-fabricmanager",
        ),
        (
            facts.cuda_code == _STUB,
            f"{_CUDA} is a stub, which is there to link programs and runs none",
            "take the folder of stubs out of the path of libraries",
            "ldconfig -p | grep libcuda; echo $LD_LIBRARY_PATH",
        ),
    )
    newest = f", runs CUDA up to {facts.cuda[0]}.{facts.cuda[1]}" if facts.cuda else ""
    wrong = (bad(*said) for holds, *said in rows if holds)
    return next(wrong, Verdict(good=True, found=f"{known or 'of unknown version'}{newest}"))


def cards_verdict(facts: DriverFacts) -> Verdict:
    """Return what the facts say of the cards, where the driver is in order."""
    if facts.cuda_cards:
        cards = f"{facts.cuda_cards} {'card' if facts.cuda_cards == 1 else 'cards'}"
        return Verdict(good=True, found=f"CUDA sees {cards}")
    if facts.cuda_code == _NO_DEVICE and facts.visible is not None:
        return bad(
            f"CUDA sees none, and CUDA_VISIBLE_DEVICES is '{facts.visible}'",
            "take the variable away, or name a card by its number, 0 for the first",
            "unset CUDA_VISIBLE_DEVICES",
        )
    if facts.container and not facts.devices:
        return bad("the driver lists none", _OF_HOST, _DOCKER)
    return bad(
        f"CUDA sees none: cuInit returns {facts.cuda_code}",
        "see what the kernel says of the card, and restart the machine; a card that is split "
        "(MIG) needs an instance",
        "sudo dmesg | grep -iE 'nvrm|xid'; nvidia-smi -L",
    )


def look(root: Path = Path("/"), load: Callable[[str], Any] = ctypes.CDLL) -> DriverFacts:
    """Look at this machine.

    Args:
        root: where its files begin.
        load: loads a library of the driver, or raises ``OSError``.
    """
    devices = tuple(sorted(str(one) for one in (root / "dev").glob("nvidia[0-9]*")))
    version = root / "proc/driver/nvidia/version"
    text = version.read_text(encoding="ascii", errors="replace") if version.exists() else ""
    found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", text)
    code, count, number = None, ctypes.c_int(), ctypes.c_int()
    try:
        driver = load(_CUDA)
        driver.cuDriverGetVersion(ctypes.byref(number))
        code = int(driver.cuInit(0))
        if code == _OK:
            driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError):  # no library, or one without the functions
        pass
    return DriverFacts(
        kernel_driver=found[1] if found else None,
        devices=devices,
        closed=tuple(one for one in devices if not os.access(one, os.R_OK | os.W_OK)),
        cuda_code=code,
        cuda_cards=count.value,
        cuda=(number.value // 1000, number.value % 1000 // 10) if number.value else None,
        visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
        container=in_container(root),
    )
