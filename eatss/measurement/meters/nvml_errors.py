"""What NVML's return codes mean: for each a sentence and what to do."""

from __future__ import annotations

from pathlib import Path

from eatss.containers import in_container
from eatss.measurement.meters.meter import MeterError

NOT_SUPPORTED = 3
NO_PERMISSION = 4
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
UNKNOWN = 999

LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED})
"""Codes after which nothing can be asked of the card any more."""

_AGAIN = "try again; if it stays, restart the machine or ask its administrator"
_ABSENT = frozenset({1, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, 17, 28})

_MEANING: dict[int, tuple[str, str]] = {
    1: ("NVML was not initialised", _AGAIN),
    2: (
        "the driver knows no such card, or rejects the question",
        "list the cards with `nvidia-smi -L` and name one by its number or UUID",
    ),
    NOT_SUPPORTED: (
        "this card does not offer it",
        "choose another meter (`--meter`); the energy counter needs a Volta card or newer",
    ),
    NO_PERMISSION: (
        "the driver does not permit it to this user",
        "ask the administrator for access to /dev/nvidia*",
    ),
    5: ("NVML is initialised already", _AGAIN),
    6: (
        "the driver does not find the card",
        "list the cards with `nvidia-smi -L` and name one by its number or UUID",
    ),
    7: ("the answer does not fit the space given", "install a newer nvidia-ml-py"),
    8: (
        "the card's power cables are not attached as they must be",
        "check the external power cables of the card",
    ),
    DRIVER_NOT_LOADED: (
        "the NVIDIA driver is not loaded",
        "load it with `modprobe nvidia`, or install it: https://www.nvidia.com/drivers",
    ),
    10: ("the driver did not answer in time", _AGAIN),
    11: ("the driver met a fault of the card's interrupt", _AGAIN),
    LIBRARY_NOT_FOUND: (
        "the library of NVML (libnvidia-ml.so.1) is not there",
        "install the NVIDIA driver, which brings it: https://www.nvidia.com/drivers",
    ),
    FUNCTION_NOT_FOUND: (
        "this driver or nvidia-ml-py is too old for it",
        "update the NVIDIA driver and nvidia-ml-py",
    ),
    14: (
        "the card's configuration memory (infoROM) is corrupted",
        "ask the administrator to run `nvidia-smi -q` and have the card repaired",
    ),
    GPU_IS_LOST: (
        "the GPU is lost: it fell off the bus or does not answer any more",
        "look for Xid errors with `dmesg | grep -i nvrm`; the machine must be restarted",
    ),
    RESET_REQUIRED: (
        "the GPU must be reset before it can be used again",
        "ask the administrator for `nvidia-smi --gpu-reset`, or restart the machine",
    ),
    17: (
        "the operating system refuses access to the driver",
        "ask the administrator for access to /dev/nvidia*",
    ),
    18: (
        "the loaded driver and the library of NVML have different versions",
        "restart the machine, or reload the driver, after the driver update",
    ),
    19: ("the card is in use", "wait for the other program to end"),
    20: ("there is not enough memory", "free memory of this machine"),
    21: ("the sensor has no data", "choose another meter (`--meter`)"),
    22: ("a virtual GPU with ECC does not offer it", "choose another meter (`--meter`)"),
    23: ("the driver ran out of resources", _AGAIN),
    24: ("the card does not offer this frequency", "choose another meter (`--meter`)"),
    25: (
        "driver and nvidia-ml-py speak different versions of the question",
        "update the NVIDIA driver and nvidia-ml-py",
    ),
    26: ("this driver has dropped the question", "install a newer nvidia-ml-py"),
    27: ("the card is not ready yet", "wait a moment and try again"),
    28: (
        "the driver finds no GPU",
        "check that the card is seated and shown by `lspci | grep -i nvidia`",
    ),
    29: ("the card is in a state in which it does not answer this", _AGAIN),
    30: ("the card does not offer this kind of reset", _AGAIN),
    UNKNOWN: ("the driver failed for a reason it does not name", _AGAIN),
}


class NvmlError(MeterError):
    """NVML refused; ``code`` is its return code, ``lost`` says that the card is gone."""

    def __init__(self, message: str, remedy: str, *, code: int) -> None:
        super().__init__(message, remedy)
        self.code = code

    @property
    def lost(self) -> bool:
        """Whether the card cannot be asked anything any more."""
        return self.code in LOST


def nvml_error(what: str, code: int, *, root: Path = Path("/")) -> NvmlError:
    """Return the error for a return code met while reading ``what``.

    Where the driver is absent in a container, the remedy is that of the container:
    the files of the driver come from its host.
    """
    sentence, remedy = _MEANING.get(
        code, (f"the driver failed with the unknown code {code}", "update nvidia-ml-py")
    )
    if code in _ABSENT and in_container(root):
        device = "" if (root / "dev/nvidiactl").exists() else ", /dev/nvidiactl is missing"
        sentence = f"{sentence} (in a container{device})"
        remedy = (
            "start the container with its GPU: install the NVIDIA container toolkit on the "
            "host and run `docker run --gpus all …` (Kubernetes: request nvidia.com/gpu)"
        )
    if code in {NO_PERMISSION, 17} and in_container(root):
        remedy = "let the container use the host's /dev/nvidia* with read and write permission"
    return NvmlError(f"{what}: {sentence}", remedy, code=code)
