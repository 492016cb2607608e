"""What measuring needs of a card: the border between trials and CUDA.

Cards as users name them: numbers as CUDA counts, UUIDs, ``"all"``; each found in the driver.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Protocol, TypeAlias

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.cards.detect import VISIBLE, cuda_order
from eatss.measurement.measurement import (
    Status,
)
from eatss.measurement.meters.meter import MeterError
from eatss.measurement.meters.nvml import NvmlDevice


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


Gpus: TypeAlias = int | str | Sequence[int | str]
"""Numbers as CUDA counts, UUIDs, ``"all"``, or several of them."""

ALL = "all"


@frozen
class NamedCard:
    """A card: its name for people, and what the driver finds it by.

    ``device`` is its UUID, or the driver's number where it tells none; ``reason`` says why there is
    no such card, ``""`` if there may be.
    """

    name: str
    device: int | str
    reason: str = ""


def checked_gpus(gpus: Gpus) -> Gpus:
    """Return cards that are named as cards can be.

    Raises:
        InputError: ``EATSS-E048``.
    """
    several = isinstance(gpus, Sequence) and not isinstance(gpus, str)
    for one in gpus if several else (gpus,):  # type: ignore[union-attr]
        good = isinstance(one, int) and not isinstance(one, bool) and one >= 0
        if not good and not (
            one == ALL or (isinstance(one, str) and one.startswith(("GPU-", "MIG-")))
        ):
            raise input_error(
                "EATSS-E048",
                f"gpus has {one!r}, which names no card",
                hint="give numbers as CUDA counts from 0, UUIDs as nvidia-smi -L lists them, "
                'a list of them, "all", or [] for none',
            )
    return gpus


def named_cards(gpus: Gpus, *, module: Any = None) -> tuple[NamedCard, ...]:
    """Return the cards that are meant, each once; of ``"all"`` one that says why there is none.

    Args:
        gpus: how the user names them.
        module: what stands in for ``pynvml``, and for CUDA's order.
    """
    named: list[int | str] = [gpus] if isinstance(gpus, int | str) else list(gpus)
    numbered = any(isinstance(one, int) or one == ALL for one in named)
    order = cuda_order() if numbered and module is None else None
    if ALL in named:
        try:
            if order is None:
                with closing(NvmlDevice(0, module=module)) as card:
                    named = list(range(card.count()))
            else:
                named = list(range(len(order)))
        except MeterError as error:
            return (NamedCard(name="card 0", device=0, reason=error.whole),)
        if not named:
            return (NamedCard(name="card 0", device=0, reason="CUDA sees no card"),)
    cards = (_named(one, order) for one in named)
    return tuple({card.device: card for card in cards}.values())


def _named(one: int | str, order: Sequence[str] | None) -> NamedCard:
    name = f"card {one}"
    if isinstance(one, str) or order is None:  # the driver's order, where CUDA cannot be asked
        return NamedCard(name=name, device=one)
    if one < len(order):
        return NamedCard(name=name, device=order[one])
    visible = f", {VISIBLE}={os.environ[VISIBLE]}" if VISIBLE in os.environ else ""
    reason = f"there is no {name}: CUDA sees {len(order)}, counted from 0{visible}"
    return NamedCard(name=name, device=one, reason=reason)
