"""Cards: what measuring on them may fail with, which one a user names, CuPy and its errors.

Cards as users name them are numbers as CUDA counts, UUIDs, ``"all"``; each is found in the driver.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import Any, Protocol, TypeAlias

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.targets import CardNumber
from eatss.base.text import one_line
from eatss.cards.detect import VISIBLE, DetectedGpu, cuda_cards, cuda_order
from eatss.measurement.measurement import Status
from eatss.measurement.meters.meter import MeterError
from eatss.measurement.meters.nvml import NvmlDevice
from eatss.measurement.options import checked_device


class VariantError(Exception):
    """A variant cannot be measured: a word for it, and whether the card is lost to this process."""

    status: Status = "launch error"
    lost = False


class CompileError(VariantError):
    """The program does not compile; the text is what the compiler said."""

    status: Status = "compile error"


class WrongResultError(VariantError):
    """The program computes something else than the original; the text says what."""

    status: Status = "wrong result"


class LaunchError(VariantError):
    """A kernel could not be launched or failed while running; the text says why.

    ``lost`` says that the card or its context is of no use any more to this process,
    ``timed_out`` (status ``timeout``) that a run took longer than it may.
    """

    def __init__(self, message: str, *, lost: bool = False, timed_out: bool = False) -> None:
        super().__init__(message)
        self.lost = lost
        if timed_out:
            self.status = "timeout"


@frozen
class Difference:
    """How results differ from those of the reference: ``worst`` is relative to ``allowed`` = 1."""

    equal: bool
    argument: str
    worst: float
    message: str


class SteadyLoad(Protocol):
    """Something that can be run again and again while meters look."""

    def reset(self) -> None:
        """Put random data into everything that is read and poison what is only written."""
        ...

    def timed(self, count: int, *, restoring: bool = False) -> float:
        """Run and wait; return the seconds of all runs by the card's clock, restoring left out.

        Raises:
            LaunchError: the card refused or a kernel failed.
        """
        ...


class NotComparedError(Exception):
    """The program cannot be compared with the original here; the text says why."""


Gpus: TypeAlias = CardNumber | Sequence[CardNumber]
"""Numbers as CUDA counts, UUIDs, ``"all"``, or several of them."""

ALL = "all"


@frozen
class NamedCard:
    """A card: its name for people, and what the driver finds it by.

    ``device`` is its UUID, or the driver's number where it tells none; ``reason`` says why there is
    no such card, ``""`` if there may be.
    """

    name: str
    device: CardNumber
    reason: str = ""


def checked_gpus(gpus: Gpus) -> Gpus:
    """Return cards that are named as cards can be.

    Raises:
        InputError: ``EATSS-E048``.
    """
    for one in gpus if isinstance(gpus, Sequence) and not isinstance(gpus, str) else (gpus,):
        if one != ALL:
            checked_device(one, "gpus")
    return gpus


def named_cards(gpus: Gpus, *, module: Any = None) -> tuple[NamedCard, ...]:
    """Return the cards that are meant, each once; of ``"all"`` one that says why there is none.

    Args:
        gpus: how the user names them.
        module: what stands in for ``pynvml``, and for CUDA's order.
    """
    named = [gpus] if isinstance(gpus, int | str) else list(gpus)
    numbered = any(isinstance(one, int) or one == ALL for one in named)
    order = cuda_order() if numbered and module is None else None
    if ALL in named:
        why = "CUDA sees no card"
        try:
            with closing(NvmlDevice(0, module=module)) if order is None else nullcontext() as card:
                named = list(range(len(order or ()) if card is None else card.count()))
        except MeterError as error:
            named, why = [], error.whole
        if not named:
            return (NamedCard(name="card 0", device=0, reason=why),)
    cards = (_named(one, order) for one in named)
    return tuple({card.device: card for card in cards}.values())


def _named(one: CardNumber, order: Sequence[str] | None) -> NamedCard:
    name = f"card {one}"
    if isinstance(one, str) or order is None:  # the driver's order, where CUDA cannot be asked
        return NamedCard(name=name, device=one)
    if one < len(order):
        return NamedCard(name=name, device=order[one])
    reason = f"there is no {name}: CUDA sees {len(order)}, counted from 0 (see {VISIBLE})"
    return NamedCard(name=name, device=one, reason=reason)


def import_cupy() -> Any:
    """Return the module CuPy.

    Raises:
        InputError: ``EATSS-E021``, it is not installed or does not load.
    """
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise input_error(
            "EATSS-E021",
            f"CuPy does not load: {one_line(error)}",
            hint="pip install 'eatss[cuda13]', or 'eatss[cuda12]' where the driver is of CUDA 12",
        ) from None


def cuda_card(cupy: Any, device: CardNumber) -> tuple[int, DetectedGpu]:
    """Return the number of a card in CUDA's order, and the card, by its number or its UUID.

    Raises:
        InputError: ``EATSS-E022``, CUDA finds none, or none of this number
            or UUID.
    """
    try:
        cards = cuda_cards(cupy)
    except RuntimeError as error:
        cards, seen = (), f"none ({one_line(error)})"
    else:
        seen = ", ".join(card.uuid or f"card {number}" for number, card in enumerate(cards))
    for number, card in enumerate(cards):
        if device in (number, card.uuid):
            return number, card
    raise input_error(
        "EATSS-E022",
        f"there is no card {device}: CUDA sees {seen}",
        hint="see nvidia-smi -L; CUDA_VISIBLE_DEVICES hides cards and renumbers them; start a "
        "container with its GPUs",
    )


_LOST = {4, 46, 214, 220, 226, 227, 700, 702, 709, 710, *range(714, 722), 999}
"""Errors after which every call of the process fails (CUDA driver and runtime API, error codes).

The driver shuts down, devices are unavailable; ECC or NVLink errors; illegal address, launch
timeout, context destroyed, assert; hardware stack, illegal instruction, alignment, space, pc,
failure, external device; unknown.
"""

_OUT_OF_MEMORY = 2


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn errors of CUDA and CuPy into a :class:`LaunchError`; ``doing`` says what was done."""
    try:
        yield
    except LaunchError:
        raise
    except Exception as error:
        found = launch_error(error, doing)
        if found is None:
            raise
        raise found from error


def launch_error(error: Exception, doing: str) -> LaunchError | None:
    """Return an error of CUDA or CuPy as a sentence, ``None`` for any other error."""
    if isinstance(error, MemoryError):
        return LaunchError(f"{doing}: the card's memory is too small ({one_line(error, 300)})")
    kind, code = type(error).__name__, getattr(error, "status", None)
    if not isinstance(code, int) and kind != "CompileException":
        return None
    lost = code in _LOST and kind != "NVRTCError"  # which counts its errors apart
    return LaunchError(f"{doing}: {one_line(error, 300)}", lost=lost)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory was too small."""
    return isinstance(error, MemoryError) or getattr(error, "status", None) == _OUT_OF_MEMORY
