"""What a verification found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Device: TypeAlias = Literal["cpu", "gpu"]

Status: TypeAlias = Literal[
    "ok",
    "wrong result",
    "out of bounds",
    "not refused",
    "compile error",
    "launch error",
    "barrier",
    "shared memory",
    "crash",
    "timeout",
]
"""``out of bounds``: memory beside an array was written; ``not refused``: the entry ran, or gave
another code, at sizes that one of its assumptions excludes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first element, in row-major order, that is not what the original computes.

    Values are decimal text that names the floating-point number exactly.
    """

    array: str
    indices: tuple[int, ...]
    expected: str
    actual: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeResult:
    """What happened at one choice of sizes.

    ``worst_error`` is the largest absolute difference from the original, ``bound`` what rounding
    allows for that element (0 where every bit has to be equal). ``compared`` counts elements,
    ``not_finite`` those of them that the original leaves infinite or not a number, ``loose`` those
    whose bound exceeds their own value, so that the comparison says little of them.
    """

    launcher: str
    sizes: tuple[tuple[str, int], ...]
    status: Status
    message: str = ""
    worst_error: float = 0.0
    bound: float = 0.0
    compared: int = 0
    not_finite: int = 0
    loose: int = 0
    difference: Difference | None = None
    original_time_s: float = 0.0
    generated_time_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A generated program compared with the C it was made from.

    ``status`` is that of the first size that failed, ``message`` says what happened there.
    ``bit_equal`` tells that floating-point results had to agree in every bit. ``compile_time_s``
    and ``run_time_s`` are wall-clock times of the compilers and of everything else.
    """

    program: str
    device: Device
    status: Status
    message: str
    bit_equal: bool
    results: tuple[SizeResult, ...]
    compile_time_s: float
    run_time_s: float

    @property
    def ok(self) -> bool:
        """Whether the program does what the original does."""
        return self.status == "ok"

    def to_dict(self) -> dict[str, Any]:
        """Return the verification as plain JSON types; sizes as an object by name."""
        plain = asdict(self)
        for result in plain["results"]:
            result["sizes"] = dict(result["sizes"])
        return plain


def size_result_from_dict(document: dict[str, Any]) -> SizeResult:
    """Read what ``dataclasses.asdict`` and JSON made of a :class:`SizeResult`."""
    difference = document["difference"]
    return SizeResult(
        **{
            **document,
            "sizes": tuple((name, value) for name, value in document["sizes"]),
            "difference": None
            if difference is None
            else Difference(**{**difference, "indices": tuple(difference["indices"])}),
        }
    )
