"""The shape of a profile document, as pydantic models.

A document is what a TOML file holds, and also what ``GpuProfile.to_dict`` returns:
each figure is a table ``{ value, source }``, each source is a table of
``[sources]``. The ranges below are wide; they are there to catch a figure given in
the wrong unit (a cache of 192 bytes, a clock of 1410000 MHz), not to judge a card.

Importing this module imports pydantic, so only ``eatss.cards.document`` does, and
only when a profile is read.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from eatss.base.text import BYTES_OF_UNIT

NAME_PATTERN = r"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$"

_UNITS = {"B": 1, **BYTES_OF_UNIT}
_SIZE = re.compile(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*([A-Za-z]+)\s*", re.ASCII)
_DECIMAL_UNITS = {"kb": "KiB", "mb": "MiB", "gb": "GiB", "tb": "TiB"}


def parse_size(value: object) -> object:
    """Turn ``"192 KiB"`` into 196608 bytes; leave an integer as it is.

    Raises:
        PydanticCustomError: the text is not a number with a unit of bytes.
    """
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value)
    if match is None:
        raise PydanticCustomError(
            "size", 'is neither a number of bytes nor a size such as "192 KiB"'
        )
    number, unit = match.groups()
    if unit.lower() in _DECIMAL_UNITS and unit not in _UNITS:
        raise PydanticCustomError(
            "size_unit",
            "has the unit {unit}, which may mean 1000 or 1024",
            {"unit": unit, "instead": _DECIMAL_UNITS[unit.lower()]},
        )
    if unit not in _UNITS:
        raise PydanticCustomError(
            "size_unit", "has the unknown unit {unit}", {"unit": unit, "instead": "KiB"}
        )
    whole, _, fraction = number.partition(".")
    scale = 10 ** len(fraction)
    size, rest = divmod(int(whole + fraction) * _UNITS[unit], scale)
    if rest:
        raise PydanticCustomError("size", "is not a whole number of bytes")
    return size


KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40

Threads = Annotated[int, Field(ge=1, le=65536)]
Registers = Annotated[int, Field(ge=1, le=2**24)]
SmCount = Annotated[int, Field(ge=1, le=65536)]
Clock = Annotated[int, Field(ge=1, le=20000)]
OnChipBytes = Annotated[int, Field(ge=KIB, le=64 * MIB), BeforeValidator(parse_size)]
L2Bytes = Annotated[int, Field(ge=KIB, le=16 * GIB), BeforeValidator(parse_size)]
MemoryBytes = Annotated[int, Field(ge=MIB, le=64 * TIB), BeforeValidator(parse_size)]
Bandwidth = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Gflops = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Watts = Annotated[float, Field(gt=0, le=1e5, allow_inf_nan=False)]
Measured = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
Note = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$")]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]


_Value = TypeVar("_Value")


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Figure(_Strict, Generic[_Value]):
    """One figure and the key of its source."""

    value: _Value
    source: Text


_UNKNOWN: Any = Field(default=None)
"""A figure that may be left out, but not be null."""


class Figures(_Strict):
    """The table ``[figures]``; its keys are the fields of ``GpuProfile``."""

    threads_per_block: Figure[Threads]
    threads_per_warp: Figure[Threads]
    registers_per_sm: Figure[Registers]
    registers_per_block: Figure[Registers]
    registers_per_thread: Figure[Registers]
    l1_shared_bytes: Figure[OnChipBytes]
    l2_bytes: Figure[L2Bytes]

    sm_count: Figure[SmCount]
    max_threads_per_sm: Figure[Threads]
    max_blocks_per_sm: Figure[Threads]
    shared_per_sm_bytes: Figure[OnChipBytes]
    shared_per_block_bytes: Figure[OnChipBytes]
    shared_per_block_optin_bytes: Figure[OnChipBytes]
    base_clock_mhz: Figure[Clock] = _UNKNOWN
    boost_clock_mhz: Figure[Clock] = _UNKNOWN
    memory_bytes: Figure[MemoryBytes]
    bandwidth_gb_s: Figure[Bandwidth]
    peak_fp64_gflops: Figure[Gflops] = _UNKNOWN
    peak_fp64_tensor_gflops: Figure[Gflops] = _UNKNOWN
    peak_fp32_gflops: Figure[Gflops] = _UNKNOWN
    peak_tf32_tensor_gflops: Figure[Gflops] = _UNKNOWN
    tdp_w: Figure[Watts] = _UNKNOWN


class SourceEntry(_Strict):
    """One table ``[sources.KEY]``."""

    title: Text
    url: Text | None = None


class CoefficientEntry(_Strict):
    """One coefficient of ``[calibration.coefficients]`` with the ends of its interval."""

    value: Measured
    low: Measured
    high: Measured
    spread: Measured | None = None


class CalibrationEntry(_Strict):
    """The table ``[calibration]``."""

    cards: list[Text]
    driver: Text
    toolkit: Text
    date: Text
    revision: Text
    power_limit_w: Measured
    r_squared: Annotated[float, Field(le=1, allow_inf_nan=False)]
    median_residual: Measured
    worst_residual: Measured
    benchmarks: Annotated[int, Field(ge=0)]
    coefficients: dict[Text, CoefficientEntry]


class Document(_Strict):
    """A whole profile document."""

    schema_version: Literal[1]
    name: Name
    title: Text
    aliases: list[Name] = []
    architecture: Text
    compute_capability: Annotated[str, Field(pattern=r"^\d{1,2}\.\d$")]
    figures: Figures
    sources: dict[Text, SourceEntry]
    notes: dict[Text, Note] = {}
    calibration: CalibrationEntry | None = None
