"""The profile of the card in this machine, which ``auto`` stands for."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike

from eatss.diagnostics import input_error
from eatss.gpu.detect import Detection, detect, match_profile, profile_from_device
from eatss.gpu.load import given_profile
from eatss.gpu.profile import GpuProfile

AUTO = "auto"
"""The word for the card in this machine."""

_NO_NVML = object()
"""Stands in for NVML where only CUDA is to be asked."""


def profile_for(gpu: str | PathLike[str] | GpuProfile, device: int | str = 0) -> GpuProfile:
    """Return a profile; for ``"auto"`` that of the card in this machine.

    Raises:
        InputError: ``EATSS-E046`` there is no such card, ``EATSS-G0xx`` no such profile.
    """
    if gpu != AUTO:
        return given_profile(gpu)
    return profile_of_device(in_order_of_cuda(detect(), detect(nvml=_NO_NVML)), device)


def profile_of_cuda_device(device: int) -> GpuProfile:
    """Return the profile of a card by its number in CUDA's order; NVML is asked only if need be.

    Raises:
        InputError: as :func:`profile_for`.
    """
    seen = detect(nvml=_NO_NVML)
    if device < len(seen.gpus):
        known = match_profile(seen.gpus[device])
        if known is not None:
            return known
    return profile_for(AUTO, device)


def in_order_of_cuda(detection: Detection, by_cuda: Detection) -> Detection:
    """Return the cards that CUDA sees, in its order, which the number of a card refers to.

    ``CUDA_VISIBLE_DEVICES`` hides cards and changes their order; NVML always lists all.
    """
    known = {gpu.uuid: gpu for gpu in detection.gpus if gpu.uuid}
    visible = tuple(known.get(gpu.uuid, gpu) for gpu in by_cuda.gpus)
    return replace(detection, gpus=visible) if visible else detection


def profile_of_device(detection: Detection, device: int | str) -> GpuProfile:
    """Return the shipped profile of a detected card, or one built from what its driver reports.

    Args:
        detection: the cards, in the order that numbers refer to.
        device: the number of one, or its UUID.

    Raises:
        InputError: ``EATSS-E046`` there is no such card, ``EATSS-G030`` or ``EATSS-G031`` it
            reports too little.
    """
    found = next(
        (gpu for number, gpu in enumerate(detection.gpus) if device in (number, gpu.uuid)), None
    )
    if found is not None:
        return match_profile(found) or profile_from_device(found)
    if detection.gpus:
        names = "; ".join(f"{k}: {gpu.name}" for k, gpu in enumerate(detection.gpus))
        raise input_error(
            "EATSS-E046", f"there is no GPU {device}", hint=f"this machine has {names}"
        )
    reasons = "; ".join(detection.reasons) or "none answers"
    raise input_error(
        "EATSS-E046",
        f"no GPU to select for was found: {reasons}",
        hint="measuring needs an NVIDIA GPU with its driver, CuPy and NVML: eatss doctor says what "
        "is missing; programs for another machine are made with: eatss codegen FILE.c --gpu NAME "
        "-o DIR",
    )
