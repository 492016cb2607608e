"""The profile that a user gives, which may be ``auto``: that of the card in this machine."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from eatss.base.diagnostics import Diagnostic, Severity, input_error
from eatss.base.files import StrPath
from eatss.base.forked import anew
from eatss.base.frozen import frozen
from eatss.base.targets import CardNumber
from eatss.cards.load import named_profile
from eatss.cards.profile import GpuProfile

if TYPE_CHECKING:
    from eatss.cards.detect import DetectedGpu, Detection

CardLike: TypeAlias = StrPath | GpuProfile
"""A profile, or what names one: a shipped one, a file, ``"auto"``."""

AUTO = "auto"
"""The word for the card in this machine."""


@frozen
class CardHere:
    """A card of this machine with its profile.

    ``derived`` tells that no profile is of such a card, and this one has its driver's figures.
    """

    gpu: DetectedGpu
    profile: GpuProfile
    derived: bool

    @property
    def note(self) -> Diagnostic:
        """Which card ``auto`` took, in words."""
        took, hint = f": the profile {self.profile.name}", None
        if self.derived:
            took = "; no profile is of such a card, so its driver's figures are taken, and prices "
            took += "and rates are guessed from them"
            hint = "eatss profiles auto shows them; eatss characterize measures what is guessed"
        message = f"auto is the {self.gpu.name} of this machine{took}"
        return Diagnostic(code="EATSS-G032", message=message, severity=Severity.NOTE, hint=hint)


def load_profile(gpu: CardLike, device: CardNumber = 0) -> GpuProfile:
    """Return the profile that a user gives.

        load_profile("a100")
        load_profile("./mycard.toml")
        load_profile("auto")

    Args:
        gpu: Name or alias of a card, ``"auto"`` for the one in this machine, path of a TOML
            profile, or a profile.
        device: For ``"auto"``: the card's number in CUDA's order, or its UUID.

    Raises:
        InputError: ``EATSS-C004`` it is none of these, ``EATSS-G0xx`` there is no such profile, or
            its file is wrong. For ``"auto"``: ``EATSS-E046`` there is no such card, ``EATSS-G030``
            it reports too little.
    """
    if isinstance(gpu, GpuProfile):
        return gpu
    if is_auto(gpu):
        return card_here(device).profile
    if isinstance(gpu, str | PathLike):
        return named_profile(gpu)
    raise input_error(
        "EATSS-C004",
        f"gpu is {gpu!r}",
        hint="give the name of a card, auto, the path of a profile, or a profile",
    )


def is_auto(gpu: object) -> bool:
    """Return whether what a user gives stands for the card in this machine."""
    return isinstance(gpu, str) and gpu.strip().lower() == AUTO


def card_here(device: CardNumber = 0) -> CardHere:
    """Return a card of this machine with its profile: a known one, or one that is derived.

    Args:
        device: its number in CUDA's order, or its UUID.

    Raises:
        InputError: as :func:`load_profile` for ``"auto"``.
    """
    from eatss.cards.detect import detect  # noqa: PLC0415

    found = detect()
    anew()  # what loading a driver takes is not the program's
    return card_of(found, device)


def card_of(detection: Detection, device: CardNumber) -> CardHere:
    """Return a detected card with the known profile of such a card, or one of its own figures.

    Args:
        detection: the cards, in the order that numbers refer to.
        device: the number of one, or its UUID.

    Raises:
        InputError: ``EATSS-E046`` there is no such card, ``EATSS-G030`` it reports too little.
    """
    from eatss.cards.match import match_profile, profile_from_device  # noqa: PLC0415

    found = next(
        (gpu for number, gpu in enumerate(detection.gpus) if device in (number, gpu.uuid)), None
    )
    if found is not None:
        known = match_profile(found)
        return CardHere(
            gpu=found, profile=known or profile_from_device(found), derived=known is None
        )
    if detection.gpus:
        names = "; ".join(f"{k}: {gpu.name}" for k, gpu in enumerate(detection.gpus))
        raise input_error(
            "EATSS-E046", f"there is no GPU {device}", hint=f"this machine has {names}"
        )
    reasons = "; ".join(detection.reasons) or "none answers"
    raise input_error(
        "EATSS-E046",
        f"no GPU was found in this machine: {reasons}",
        hint="name a card instead of auto, such as h200 (eatss profiles lists them), "
        "unless you measure, which needs one here; eatss doctor says what is missing",
    )
