"""Which profile a characterisation belongs into."""

from __future__ import annotations

from pathlib import Path

from eatss.characterize.result import Subject
from eatss.diagnostics import input_error
from eatss.gpu.device import DetectedGpu
from eatss.gpu.match import match_profile, profile_from_device
from eatss.gpu.profile import GpuProfile
from eatss.gpu.this_machine import is_auto, load_profile


def profile_for(gpu: str, subject: Subject, output: Path) -> GpuProfile:
    """Return the profile that a card's figures are put into.

    Args:
        gpu: a name or path, or ``auto``: the profile at ``output`` if there is one, else the one
            that the record names, else the shipped one of such a card, else a new one from what
            the driver of this machine reports.
        subject: the card.
        output: where the calibrated profile will be.

    Raises:
        InputError: there is no such profile, it is of another kind of card (``EATSS-B007``), or
            auto found none (``EATSS-B008``).
    """
    if not is_auto(gpu):
        return same_kind(load_profile(gpu), subject)
    if output.is_file():
        return same_kind(load_profile(output), subject)
    if subject.profile:
        return same_kind(load_profile(subject.profile), subject)
    capability = divmod(subject.compute_capability, 10)
    named = DetectedGpu(
        name=subject.name,
        uuid="",
        readers=(),
        compute_capability=(capability[0], capability[1]),
        sm_count=subject.sm_count,
    )
    shipped = match_profile(named)
    return shipped if shipped is not None else _of_this_machine(subject)


def _of_this_machine(subject: Subject) -> GpuProfile:
    from eatss.gpu.detect import detect_gpus  # noqa: PLC0415 - asks the driver

    for gpu in detect_gpus():
        if gpu.name == subject.name:
            return profile_from_device(gpu)
    raise input_error(
        "EATSS-B008",
        f"no profile is known of a {subject.name}, and no such card is here to make one from",
        hint="name the profile to calibrate with --gpu",
    )


def same_kind(profile: GpuProfile, subject: Subject) -> GpuProfile:
    """Return a profile if it is of the kind of card that was characterised.

    Raises:
        InputError: ``EATSS-B007``: it is not.
    """
    major, minor = profile.compute_capability
    if (10 * major + minor, profile.sm_count) != (subject.compute_capability, subject.sm_count):
        raise input_error(
            "EATSS-B007",
            f"the profile {profile.name} is of another card: it has {profile.sm_count} SMs of "
            f"compute capability {major}.{minor}, the {subject.name} {subject.sm_count} of "
            f"{subject.compute_capability / 10:.1f}",
            hint="name the right profile with --gpu, or another file with -o",
        )
    return profile
