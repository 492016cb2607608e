"""Why a program sees no card: the facts of this machine, and what they come to.

Asked are the driver's own libraries, not the packages of Python, so that a driver that is missing
is told from a package that is.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from eatss.containers import in_container

Version: TypeAlias = tuple[int, int]

_NVIDIA = "0x10de"
_DISPLAY = "0x03"
"""PCI class of display controllers, which cards without a display are too."""

_OK = 0
_NO_DEVICE = 100
_NOT_READY = 802
_NVML_NO_PERMISSION = 4
_NVML_MISMATCH = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFacts:
    """What this machine has of a driver and of cards; ``None`` where nobody answers.

    ``pci_cards`` are NVIDIA's cards on the bus, ``None`` where it cannot be read. ``kernel_driver``
    is the version of the module in the kernel, ``library`` that of NVML's library. ``devices`` are
    the files of the cards (``/dev/nvidia0``), ``closed`` those that this user may not open.
    ``nvml_code`` and ``cuda_code`` are what ``nvmlInit`` and ``cuInit`` return, ``None`` where
    their library is not there. ``nvml_cards`` and ``cuda_cards`` count the cards that they list;
    ``mig`` says that one of them is split and has no instance. ``cuda`` is the newest CUDA that the
    driver knows. ``visible`` is ``CUDA_VISIBLE_DEVICES``.
    """

    pci_cards: int | None = None
    kernel_driver: str | None = None
    library: str | None = None
    devices: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    nvml_code: int | None = None
    nvml_cards: int = 0
    cuda_code: int | None = None
    cuda_cards: int = 0
    mig: bool = False
    cuda: Version | None = None
    visible: str | None = None
    container: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether cards can be used; if not why, what to do, and the command to type."""

    good: bool
    found: str
    remedy: str = ""
    command: str = ""


def driver_verdict(facts: DriverFacts) -> Verdict:
    """Return what the facts say of the driver."""
    absent = _absent(facts)
    if absent is not None:
        return absent
    if facts.nvml_code == _NVML_MISMATCH:
        return _bad(
            f"the kernel has driver {facts.kernel_driver or 'of one version'} and the libraries "
            f"are of another{f', {facts.library}' if facts.library else ''}",
            "the driver was updated: restart the machine",
            "sudo reboot",
        )
    closed = facts.closed or facts.nvml_code == _NVML_NO_PERMISSION
    if closed and not facts.cuda_cards:
        named = ", ".join(facts.closed) or "the card"
        return _bad(
            f"this user may not open {named}",
            "let the container use the host's /dev/nvidia* with read and write permission"
            if facts.container
            else "join the group that owns the files, then log in again",
            "" if facts.container else "ls -l /dev/nvidia* && sudo usermod -aG video $USER",
        )
    if facts.cuda_code == _NOT_READY:
        return _bad(
            "the driver is still setting up the links between the cards",
            "start NVIDIA's fabric manager",
            "sudo systemctl start nvidia-fabricmanager",
        )
    version = facts.kernel_driver or facts.library or "of unknown version"
    newest = f", runs CUDA up to {facts.cuda[0]}.{facts.cuda[1]}" if facts.cuda else ""
    return Verdict(good=True, found=f"{version}{newest}")


def cards_verdict(facts: DriverFacts) -> Verdict:
    """Return what the facts say of the cards, where the driver is in order."""
    if facts.cuda_cards:
        count = f"{facts.cuda_cards} {'card' if facts.cuda_cards == 1 else 'cards'}"
        hidden = facts.nvml_cards > facts.cuda_cards and facts.visible is not None
        rest = f" of {facts.nvml_cards}" if hidden else ""
        why = f" (CUDA_VISIBLE_DEVICES={facts.visible})" if hidden else ""
        return Verdict(good=True, found=f"CUDA sees {count}{rest}{why}")
    if facts.visible is not None:
        what = "empty" if not facts.visible.strip() else f"'{facts.visible}'"
        there = facts.nvml_cards or len(facts.devices)
        return _bad(
            f"hidden: CUDA_VISIBLE_DEVICES is {what}" + (f", {there} there" if there else ""),
            "take the variable away, or name a card by its number, 0 for the first",
            "unset CUDA_VISIBLE_DEVICES",
        )
    if facts.mig:
        return _bad(
            "the card is split (MIG) and has no instance",
            "make an instance, or switch MIG off; needs the administrator",
            "sudo nvidia-smi mig -cgi 0 -C",
        )
    if facts.cuda_code not in (_OK, _NO_DEVICE, None):
        return _bad(
            f"CUDA does not start: cuInit returns {facts.cuda_code}",
            "see what the kernel says of the card, and restart the machine",
            "sudo dmesg | grep -iE 'nvrm|xid'",
        )
    return _bad(
        "the driver lists none",
        _OF_HOST if facts.container else "see that the card is seated and has its power cables",
        _DOCKER if facts.container else "lspci | grep -i nvidia",
    )


_OF_HOST = "start the container with its card: NVIDIA's container toolkit on the host, and"
_DOCKER = "docker run --gpus all …"


def _absent(facts: DriverFacts) -> Verdict | None:
    """Return why there is no driver to ask, ``None`` where there is one."""
    if facts.cuda_code is not None and (facts.kernel_driver or facts.devices or facts.cuda_cards):
        return None
    if facts.kernel_driver is not None and facts.container:
        return _bad(
            f"the host has driver {facts.kernel_driver}, which this container was not given",
            _OF_HOST,
            _DOCKER,
        )
    if facts.kernel_driver is not None:
        return _bad(
            f"the kernel has driver {facts.kernel_driver}, but libcuda.so.1 is not found",
            "install the driver's libraries of the same version",
            f"sudo apt-get install libnvidia-compute-{facts.kernel_driver.partition('.')[0]}",
        )
    if facts.container:
        return _bad("there is none in this container", _OF_HOST, _DOCKER)
    if facts.pci_cards:
        return _bad(
            f"not loaded, though there {_are(facts.pci_cards)} on the bus",
            "load the driver, or install it: https://www.nvidia.com/drivers",
            "sudo modprobe nvidia",
        )
    none = "and no NVIDIA card either" if facts.pci_cards == 0 else "that answers"
    return _bad(
        f"there is none, {none}" if facts.pci_cards == 0 else f"there is none {none}",
        "measuring needs an NVIDIA card and its driver: https://www.nvidia.com/drivers",
    )


def _are(cards: int) -> str:
    return "is a card" if cards == 1 else f"are {cards} cards"


def _bad(found: str, remedy: str, command: str = "") -> Verdict:
    return Verdict(good=False, found=found, remedy=remedy, command=command)


def look(
    root: Path = Path("/"), load: Callable[[str], Any] = ctypes.CDLL, visible: str | None = None
) -> DriverFacts:
    """Look at this machine.

    Args:
        root: where its files begin.
        load: loads a library of the driver, or raises ``OSError``.
        visible: the value of ``CUDA_VISIBLE_DEVICES``, ``None`` if it is not set.
    """
    devices = tuple(sorted(str(one) for one in (root / "dev").glob("nvidia[0-9]*")))
    nvml_code, nvml_cards, library, mig = _nvml(load)
    cuda_code, cuda_cards, cuda = _cuda(load)
    return DriverFacts(
        pci_cards=_pci_cards(root / "sys/bus/pci/devices"),
        kernel_driver=_kernel_driver(root / "proc/driver/nvidia/version"),
        library=library,
        devices=devices,
        closed=tuple(one for one in devices if not os.access(one, os.R_OK | os.W_OK)),
        nvml_code=nvml_code,
        nvml_cards=nvml_cards,
        cuda_code=cuda_code,
        cuda_cards=cuda_cards,
        mig=mig,
        cuda=cuda,
        visible=visible,
        container=in_container(root),
    )


def _pci_cards(folder: Path) -> int | None:
    if not folder.is_dir():
        return None
    return sum(
        _read(one / "vendor") == _NVIDIA and _read(one / "class").startswith(_DISPLAY)
        for one in folder.iterdir()
    )


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _kernel_driver(file: Path) -> str | None:
    found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", _read(file))
    return found[1] if found else None


def _nvml(load: Callable[[str], Any]) -> tuple[int | None, int, str | None, bool]:
    """Return what ``nvmlInit`` says, how many cards there are, the version, and whether MIG is."""
    try:
        nvml = load("libnvidia-ml.so.1")
    except OSError:
        return None, 0, None, False
    code = int(nvml.nvmlInit_v2())
    if code != _OK:
        return code, 0, None, False
    count, version = ctypes.c_uint(), ctypes.create_string_buffer(96)
    try:
        nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
        named = nvml.nvmlSystemGetDriverVersion(version, ctypes.c_uint(len(version))) == _OK
        mig = any(_is_split(nvml, number) for number in range(count.value))
    finally:
        nvml.nvmlShutdown()
    return code, count.value, version.value.decode() if named else None, mig


def _is_split(nvml: Any, number: int) -> bool:
    """Return whether a card is in MIG mode."""
    handle, now, later = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint()
    if nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(number), ctypes.byref(handle)) != _OK:
        return False
    asked = nvml.nvmlDeviceGetMigMode(handle, ctypes.byref(now), ctypes.byref(later))
    return bool(asked == _OK and now.value == 1)


def _cuda(load: Callable[[str], Any]) -> tuple[int | None, int, Version | None]:
    """Return what ``cuInit`` says, how many cards it sees, and the newest CUDA it runs."""
    try:
        driver = load("libcuda.so.1")
    except OSError:
        return None, 0, None
    count, number = ctypes.c_int(), ctypes.c_int()
    known = driver.cuDriverGetVersion(ctypes.byref(number)) == _OK
    version = (number.value // 1000, number.value % 1000 // 10) if known and number.value else None
    code = int(driver.cuInit(0))
    if code == _OK:
        driver.cuDeviceGetCount(ctypes.byref(count))
    return code, count.value, version
