"""The card that a command is for, and a word on which one ``auto`` is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.cli.messages import report_warnings
from eatss.cli.progress import working

if TYPE_CHECKING:
    from eatss.cli.options import FindingsFormat
    from eatss.gpu import GpuProfile


def given_card(gpu: str, diagnostics: FindingsFormat = "text", device: int | str = 0) -> GpuProfile:
    """Return the profile of a card that a command names; say on stderr which one ``auto`` is.

    Args:
        gpu: a name, a path, or ``auto``.
        diagnostics: how it is said.
        device: of ``auto``: number in CUDA's order, or UUID.

    Raises:
        InputError: as ``eatss.load_profile``.
    """
    from eatss.gpu.this_machine import card_here, is_auto, load_profile  # noqa: PLC0415 - slow

    if not is_auto(gpu):
        return load_profile(gpu)
    with working("asking the driver for its card"):
        found = card_here(device)
    report_warnings((found.note,), diagnostics)
    return found.profile
