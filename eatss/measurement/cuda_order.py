"""Which card CUDA means by a number, for meters: NVML is asked by what measures with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from eatss.gpu.cuda_order import VISIBLE, Ask, CudaOrder, ListedCards, loaded_order, order_of
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
