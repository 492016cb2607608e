"""Cards as users name them: numbers as CUDA counts, UUIDs, ``"all"``; each found in the driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, SupportsIndex, TypeAlias

from eatss.diagnostics import input_error
from eatss.gpu.cuda_order import CudaOrder
from eatss.measurement.cuda_order import cuda_order, full_uuid
from eatss.measurement.measurement import Missing
from eatss.measurement.meters.meter import MeterError

Gpus: TypeAlias = int | str | Sequence[int | str]
"""Numbers as CUDA counts, UUIDs, ``"all"``, or several of them."""

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCard:
    """A card: its name for people, and what the driver finds it by.

    ``device`` is its UUID, or the driver's number where it tells none; ``reason`` says why there is
    no such card, ``""`` if there may be.
    """

    name: str
    device: int | str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCards:
    """Cards in the order they were named, each once; ``counted`` says how numbers are meant.

    ``missing`` says what is not sure of that, or why there is none.
    """

    cards: tuple[NamedCard, ...]
    counted: str = ""
    missing: tuple[Missing, ...] = ()


def checked_gpus(gpus: Gpus, argument: str = "gpus") -> Gpus:
    """Return cards that are named as cards can be; whole numbers of any type as ``int``.

    Args:
        gpus: cards as a user names them.
        argument: what the user gave them as.

    Raises:
        InputError: ``EATSS-E064``.
    """
    if isinstance(gpus, str):
        return gpus if gpus == ALL else _checked(gpus, argument)
    if isinstance(gpus, Iterable) and not isinstance(gpus, bytes | bytearray | memoryview):
        return tuple(_checked(one, argument) for one in gpus)
    return _checked(gpus, argument)


def _checked(one: object, argument: str) -> int | str:
    if isinstance(one, SupportsIndex) and not isinstance(one, bool) and index(one) >= 0:
        return index(one)
    if isinstance(one, str) and one.startswith(("GPU-", "MIG-")):
        return one
    raise input_error(
        "EATSS-E064",
        f"{argument} has {one!r}, which names no card",
        hint="give numbers as CUDA counts from 0, UUIDs as nvidia-smi -L lists them, "
        'a list of them, "all", or [] for none',
    )


def named_cards(gpus: Gpus, environment: Mapping[str, str], *, module: Any = None) -> NamedCards:
    """Return the cards that are meant.

    Args:
        gpus: how the user names them.
        environment: where the variables of CUDA are looked for.
        module: what stands in for ``pynvml``.
    """
    listed: list[int | str] = [gpus] if isinstance(gpus, int | str) else list(gpus)
    if all(isinstance(one, str) and one != ALL for one in listed):
        return NamedCards(cards=_once(_by_uuid(str(one), module) for one in listed))
    try:
        order = cuda_order(environment, module=module)
    except MeterError as error:
        if ALL not in listed:  # opening the cards says the same
            return NamedCards(
                cards=_once(NamedCard(name=f"card {one}", device=one) for one in listed)
            )
        reason = f"{error} ({error.remedy})" if error.remedy else str(error)
        return NamedCards(cards=(), missing=(Missing(what="energy", reason=reason),))
    missing = [Missing(what="numbers of cards", reason=order.doubt)] if order.doubt else []
    if ALL in listed:
        listed = list(range(len(order.cards)))
        if not listed:
            reason = f"there is no card: CUDA sees none ({order.how})"
            missing.append(Missing(what="energy", reason=reason))
    cards = _once(
        _by_uuid(one, module) if isinstance(one, str) else _by_number(one, order) for one in listed
    )
    return NamedCards(cards=cards, counted=order.how, missing=tuple(missing))


def _by_uuid(uuid: str, module: Any) -> NamedCard:
    return NamedCard(name=f"card {uuid}", device=full_uuid(uuid, module))


def _by_number(number: int, order: CudaOrder) -> NamedCard:
    name, count = f"card {number}", len(order.cards)
    if 0 <= number < count:
        return NamedCard(name=name, device=order.cards[number])
    sees = "no card" if not count else f"{count} card" + "s" * (count > 1)
    reason = f"there is no {name}: CUDA sees {sees} ({order.how})"
    return NamedCard(name=name, device=number, reason=reason)


def _once(cards: Any) -> tuple[NamedCard, ...]:
    found: dict[tuple[int | str, str], NamedCard] = {}
    for card in cards:
        found.setdefault((card.device, card.reason), card)
    return tuple(found.values())
