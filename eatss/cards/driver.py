"""Why a program sees no card: the facts of this machine, and what they come to.

Asked are the driver's own libraries, not the packages of Python, so that a driver that is missing
is told from a package that is.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from eatss.base.compilers import in_container
from eatss.base.frozen import frozen

Version: TypeAlias = tuple[int, int]

_NVIDIA = "0x10de"
_DISPLAY = "0x03"
"""PCI class of display controllers, which cards without a display are too."""

_NVML, _CUDA = "libnvidia-ml.so.1", "libcuda.so.1"

_OK = 0
_STUB = 34
_NO_DEVICE = 100
_NOT_READY = 802
_NVML_NO_PERMISSION = 4
_NVML_MISMATCH = 18


@frozen
class DriverFacts:
    """What this machine has of a driver and of cards; ``None`` where nobody answers.

    ``pci_cards`` are NVIDIA's cards on the bus, ``None`` where it cannot be read. ``kernel_driver``
    is the version of the module in the kernel, ``library`` that of NVML's library. ``devices`` are
    the files of the cards (``/dev/nvidia0``), ``closed`` those that this user may not open.
    ``nvml_code`` and ``cuda_code`` are what ``nvmlInit`` and ``cuInit`` return, ``None`` where
    their library is not there. ``nvml_cards`` and ``cuda_cards`` count the cards that they list;
    ``mig`` says that each of them is split and has no instance. ``cuda`` is the newest CUDA that
    the driver knows. ``visible`` is ``CUDA_VISIBLE_DEVICES``. ``nvml_lacks`` and ``cuda_lacks`` are
    functions that were asked for and that the libraries have not: old ones, or stubs.
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
    nvml_lacks: tuple[str, ...] = ()
    cuda_lacks: tuple[str, ...] = ()


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


def counted(cards: int) -> str:
    """Return so many cards in words."""
    return f"{cards} {'card' if cards == 1 else 'cards'}"


def driver_verdict(facts: DriverFacts) -> Verdict:
    """Return what the facts say of the driver."""
    absent = _absent(facts)
    if absent is not None:
        return absent
    if facts.nvml_code == _NVML_MISMATCH:
        return bad(
            f"the kernel has driver {facts.kernel_driver or 'of one version'} and the libraries "
            f"are of another{f', {facts.library}' if facts.library else ''}",
            "the driver was updated: restart the machine",
            "sudo reboot",
        )
    closed = facts.closed or facts.nvml_code == _NVML_NO_PERMISSION
    if closed and not facts.cuda_cards:
        named = ", ".join(facts.closed) or "the card"
        return bad(
            f"this user may not open {named}",
            "let the container use the host's /dev/nvidia* with read and write permission"
            if facts.container
            else "join the group that owns the files, then log in again",
            "" if facts.container else "ls -l /dev/nvidia* && sudo usermod -aG video $USER",
        )
    if facts.cuda_code == _NOT_READY:
        return bad(
            "the driver is still setting up the links between the cards",
            "start NVIDIA's fabric manager",
            "sudo systemctl start nvidia-fabricmanager",
        )
    if facts.cuda_code == _STUB:
        return bad(
            f"{_CUDA} is a stub, which is there to link programs and runs none",
            "take the folder of stubs out of the path of libraries",
            _WHICH,
        )
    version = facts.kernel_driver or facts.library or "of unknown version"
    newest = f", runs CUDA up to {facts.cuda[0]}.{facts.cuda[1]}" if facts.cuda else ""
    lacks = [
        _lacking(library, names)
        for library, names in ((_NVML, facts.nvml_lacks), (_CUDA, facts.cuda_lacks))
        if names
    ]
    return Verdict(good=True, found="; ".join([f"{version}{newest}", *lacks]))


_WHICH = "ldconfig -p | grep -E 'libcuda|libnvidia-ml'; echo $LD_LIBRARY_PATH"


def nvml_lacking(facts: DriverFacts) -> str:
    """Return what NVML's library lacks, in words; "" if it has all that was asked for."""
    return _lacking(_NVML, facts.nvml_lacks) if facts.nvml_lacks else ""


def _lacking(library: str, names: tuple[str, ...]) -> str:
    return f"{library} is old or a stub: it has no {', '.join(names)}"


def cards_verdict(facts: DriverFacts) -> Verdict:
    """Return what the facts say of the cards, where the driver is in order."""
    if facts.cuda_cards:
        hidden = facts.nvml_cards > facts.cuda_cards and facts.visible is not None
        rest = f" of {facts.nvml_cards}" if hidden else ""
        why = f" (CUDA_VISIBLE_DEVICES={facts.visible})" if hidden else ""
        return Verdict(good=True, found=f"CUDA sees {counted(facts.cuda_cards)}{rest}{why}")
    if facts.mig:
        return bad(
            "the card is split (MIG) and has no instance",
            "make an instance, or switch MIG off; needs the administrator",
            "sudo nvidia-smi mig -cgi 0 -C",
        )
    if facts.cuda_code not in (_OK, _NO_DEVICE):
        return _silent(f"CUDA does not start: cuInit returns {facts.cuda_code}")
    there = facts.nvml_cards or len(facts.devices)
    if facts.cuda_code == _NO_DEVICE and facts.visible is not None and _hides(facts.visible, there):
        what = "empty" if not facts.visible.strip() else f"'{facts.visible}'"
        return bad(
            f"hidden: CUDA_VISIBLE_DEVICES is {what}, {there} there",
            "take the variable away, or name a card by its number, 0 for the first",
            "unset CUDA_VISIBLE_DEVICES",
        )
    if facts.nvml_cards:
        return _silent(f"CUDA sees none, though NVML lists {facts.nvml_cards}")
    return bad(
        "the driver lists none",
        _OF_HOST if facts.container else "see that the card is seated and has its power cables",
        _DOCKER if facts.container else "lspci | grep -i nvidia",
    )


def _hides(visible: str, there: int) -> bool:
    """Return whether the variable may hide all cards: 0 names one wherever there are cards."""
    return there > 0 and visible.partition(",")[0].strip() != "0"


def _silent(found: str) -> Verdict:
    return bad(
        found,
        "see what the kernel says of the card, and restart the machine",
        "sudo dmesg | grep -iE 'nvrm|xid'",
    )


_OF_HOST = "start the container with its card: NVIDIA's container toolkit on the host, and"
_DOCKER = "docker run --gpus all …"


def _absent(facts: DriverFacts) -> Verdict | None:
    """Return why there is no driver to ask, ``None`` where there is one."""
    answers = facts.kernel_driver or facts.devices or facts.cuda_cards or facts.nvml_cards
    if answers and facts.cuda_code is not None:
        return None
    kernel_driver, command = facts.kernel_driver, ""
    if answers and facts.cuda_lacks:
        found = _lacking(_CUDA, facts.cuda_lacks)
        remedy = "see which library is found, and install that of the driver"
        command = _WHICH
    elif kernel_driver is not None and facts.container:
        found = f"the host has driver {kernel_driver}, which this container was not given"
        remedy, command = _OF_HOST, _DOCKER
    elif kernel_driver is not None:
        found = f"the kernel has driver {kernel_driver}, but {_CUDA} is not found"
        remedy = "install the driver's libraries of the same version"
        command = f"sudo apt-get install libnvidia-compute-{kernel_driver.partition('.')[0]}"
    elif facts.nvml_cards:
        found = f"NVML lists {facts.nvml_cards}, but {_CUDA} is not found"
        remedy = "install the driver's libraries, or name their folder in LD_LIBRARY_PATH"
        command = _WHICH
    elif facts.container:
        found, remedy, command = "there is none in this container", _OF_HOST, _DOCKER
    elif facts.pci_cards:
        are = "is a card" if facts.pci_cards == 1 else f"are {facts.pci_cards} cards"
        found = f"not loaded, though there {are} on the bus"
        remedy = "load the driver, or install it: https://www.nvidia.com/drivers"
        command = "sudo modprobe nvidia"
    else:
        none = " that answers" if facts.pci_cards is None else ", and no NVIDIA card either"
        found = f"there is none{none}"
        remedy = "measuring needs an NVIDIA card and its driver: https://www.nvidia.com/drivers"
    return bad(found, remedy, command)


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
    facts = DriverFacts(
        pci_cards=_pci_cards(root / "sys/bus/pci/devices"),
        kernel_driver=_kernel_driver(root / "proc/driver/nvidia/version"),
        devices=devices,
        closed=tuple(one for one in devices if not os.access(one, os.R_OK | os.W_OK)),
        visible=visible,
        container=in_container(root),
    )
    return _with_cuda(_with_nvml(facts, load), load)


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


class _Library:
    """A library of the driver; functions that it has not are listed in place of being called."""

    def __init__(self, loaded: Any) -> None:
        self._loaded = loaded
        self._lacks: dict[str, None] = {}

    def call(self, name: str, *values: Any) -> int | None:
        """Return the code that a function returns, ``None`` if there is no such function."""
        try:
            function = getattr(self._loaded, name)
        except AttributeError:
            self._lacks[name] = None
            return None
        return int(function(*values))

    @property
    def lacks(self) -> tuple[str, ...]:
        """The functions that were not there, in the order they were asked for."""
        return tuple(self._lacks)


def _with_nvml(facts: DriverFacts, load: Callable[[str], Any]) -> DriverFacts:
    """Add what NVML says: its code, how many cards there are, the version, whether MIG is."""
    try:
        nvml = _Library(load(_NVML))
    except OSError:
        return facts
    code = nvml.call("nvmlInit_v2")
    if code != _OK:
        return replace(facts, nvml_code=code, nvml_lacks=nvml.lacks)
    count, version = ctypes.c_uint(), ctypes.create_string_buffer(96)
    try:
        nvml.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        asked = nvml.call("nvmlSystemGetDriverVersion", version, ctypes.c_uint(len(version)))
        mig = count.value > 0 and all(_is_unusable(nvml, number) for number in range(count.value))
    finally:
        nvml.call("nvmlShutdown")
    return replace(
        facts,
        nvml_code=code,
        nvml_cards=count.value,
        library=version.value.decode() if asked == _OK else None,
        mig=mig,
        nvml_lacks=nvml.lacks,
    )


def _is_unusable(nvml: _Library, number: int) -> bool:
    """Return whether a card is in MIG mode and has no instance."""
    card, now, later = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint()
    if nvml.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(number), ctypes.byref(card)) != _OK:
        return False
    mode = nvml.call("nvmlDeviceGetMigMode", card, ctypes.byref(now), ctypes.byref(later))
    if mode != _OK or now.value != 1:
        return False
    most, instance = ctypes.c_uint(), ctypes.c_void_p()
    nvml.call("nvmlDeviceGetMaxMigDeviceCount", card, ctypes.byref(most))
    return not any(
        nvml.call(
            "nvmlDeviceGetMigDeviceHandleByIndex",
            card,
            ctypes.c_uint(place),
            ctypes.byref(instance),
        )
        == _OK
        for place in range(most.value)
    )


def _with_cuda(facts: DriverFacts, load: Callable[[str], Any]) -> DriverFacts:
    """Add what ``cuInit`` says, how many cards CUDA sees, and the newest CUDA it runs."""
    try:
        driver = _Library(load(_CUDA))
    except OSError:
        return facts
    count, number = ctypes.c_int(), ctypes.c_int()
    known = driver.call("cuDriverGetVersion", ctypes.byref(number)) == _OK and number.value
    code = driver.call("cuInit", 0)
    if code == _OK:
        driver.call("cuDeviceGetCount", ctypes.byref(count))
    return replace(
        facts,
        cuda_code=code,
        cuda_cards=count.value,
        cuda=(number.value // 1000, number.value % 1000 // 10) if known else None,
        cuda_lacks=driver.lacks,
    )
