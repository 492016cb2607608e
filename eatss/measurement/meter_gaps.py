"""Why meters of a card were not taken: told once, when the card is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from eatss.measurement.card import MeteredCard
from eatss.measurement.job import CardOpened
from eatss.measurement.measurement import Missing

if TYPE_CHECKING:
    from eatss.measurement.metering import Metering


@runtime_checkable
class TellsMeterReasons(Protocol):
    """A card that knows why it does not offer some meters; not every card does."""

    def meter_reasons(self) -> tuple[Missing, ...]:
        """Return what ``meters`` left out the last time it was asked, and why."""
        ...


def card_opened(card: MeteredCard, metering: Metering) -> CardOpened:
    """Return what is to be told of a card that works and of its meters."""
    return CardOpened(
        device=card.info,
        meter=metering.primary,
        no_meter=metering.failure,
        meter_gaps=_gaps(card),
    )


def no_sensor(card: MeteredCard) -> str:
    """Say that a card has no meter at all, and why not each."""
    reasons = "; ".join(f"{gap.what}: {gap.reason}" for gap in _gaps(card))
    sentence = "no sensor of energy or power answers here"
    return f"{sentence}: {reasons}" if reasons else f"{sentence}; eatss doctor says more"


def _gaps(card: MeteredCard) -> tuple[Missing, ...]:
    return card.meter_reasons() if isinstance(card, TellsMeterReasons) else ()
