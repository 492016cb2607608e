"""Cards as users name them: numbers as CUDA counts, UUIDs, ``"all"``; each found in the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from operator import index
from typing import Any, SupportsIndex, TypeAlias

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.cards.cuda_order import VISIBLE, Ask, CudaOrder, ListedCards, loaded_order, order_of
from eatss.measurement.measurement import Missing
from eatss.measurement.meters.meter import MeterError
from eatss.measurement.meters.nvml import NvmlDevice, import_pynvml


def cuda_order(
    environment: Mapping[str, str],
    *,
    module: Any = None,
    loaded: Callable[[], tuple[str, ...] | None] | None = None,
    ask: Ask | None = None,
) -> CudaOrder:
    """Return the cards in CUDA's order.

    Args:
        environment: where ``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER`` are looked for.
        module: what stands in for ``pynvml``.
        loaded: asks CUDA if this process has it loaded already; ``None`` if it has not.
        ask: asks CUDA in another process; by default once for the same variables and cards.

    Raises:
        MeterError: neither CUDA nor the driver can be asked, and no variable names cards.
    """
    told = loaded_order(loaded)
    if told is not None:
        return told
    try:
        listed = _listed(module)
    except MeterError:
        if VISIBLE not in environment:
            raise
        listed = None
    return order_of(listed, environment, ask)


def _listed(module: Any) -> ListedCards:
    """Return the cards as NVML lists them."""
    module = module if module is not None else import_pynvml()
    uuids: list[str] = []
    names: list[str] = []
    while True:
        try:
            card = NvmlDevice(len(uuids), module=module)
        except MeterError:
            if not uuids:
                raise
            return ListedCards(uuids=tuple(uuids), names=tuple(names), module=module)
        with closing(card):
            uuids.append(card.uuid)
            names.append(card.name)


def full_uuid(begun: str, module: Any = None) -> str:
    """Return the UUID of the one card whose UUID begins so, or that has this instance (MIG).

    A text that fits no card, or several, or that cannot be looked up, is returned as it is.
    """
    try:
        return _listed(module).card(begun) or begun
    except MeterError:
        return begun


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


@frozen
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
        return NamedCards(cards=(), missing=(Missing(what="energy", reason=error.whole),))
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
