"""What the front end is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from eatss.base.diagnostics import Diagnostics, input_error
from eatss.base.files import StrPath
from eatss.base.frozen import frozen
from eatss.base.options import Words, option, parse_numbers, shows_types

if TYPE_CHECKING:
    from eatss.polyhedral.scop import Scop

_option = partial(option, panel="Source")


@frozen
class FrontendOptions:
    """Options of one run.

    ``include_dirs`` and ``defines`` (``"NAME=VALUE"`` or ``"NAME"``) are those of a C
    compiler. ``function`` restricts the run to the regions of one function, ``scop`` to
    one region (counted from 0 over the whole file). ``parameter_values`` fixes
    parameters in the context.
    """

    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    function: str | None = None
    scop: int | None = None
    parameter_values: tuple[tuple[str, int], ...] = ()


@frozen
class FrontendResult:
    """The regions of a file in source order, and warnings about them."""

    scops: tuple[Scop, ...]
    warnings: Diagnostics


DtypeName = Literal["float", "double", "_Float16"]
"""Floating-point types that C can be read in."""

DtypeWord = Literal[DtypeName, "half"]
"""What a user calls them: ``"half"`` is ``_Float16``."""

Recompute = Literal["auto", "all", "none"]
"""Which arrays are computed anew where they are read."""


@dataclass(frozen=True, kw_only=True)
class ReadingKeywords:
    """How C is read, in the words of the user.

    Attributes:
        dtype: Overrides the floating-point type of the source; ``"half"`` is ``_Float16``.
        defines: Preprocessor macros, as a mapping or as ``"NAME=VALUE"`` strings.
        include_dirs: Folders searched for included files.
        parameters: Values of integer parameters of the region (``{"n": 4000}``).
        function: Only regions of this function.
        scop: Only the region with this number, from 0.
        recompute: Which arrays code of eatss computes anew where it reads them, instead of storing
            and loading them: ``"auto"`` as the prediction for the card says (none with a
            ``schedule``), ``"all"`` that can be, ``"none"``.
    """

    dtype: Annotated[
        DtypeWord | None,
        _option(
            kind=Literal["float", "double", "half"] | None,
            help="Floating-point type to select for; default: as written.",
        ),
    ] = None
    defines: Annotated[
        Mapping[str, str | int] | Sequence[str],
        _option("-D", kind=Words, metavar="NAME[=VALUE]", help="Define a macro, as for cc."),
    ] = ()
    include_dirs: Annotated[
        Sequence[StrPath],
        _option("-I", kind=list[Path] | None, metavar="DIR", help="Search DIR for headers."),
    ] = ()
    parameters: Annotated[
        Mapping[str, int] | None,
        _option(
            "--param",
            kind=Words,
            made=partial(parse_numbers, "--param", "n=4000"),
            metavar="NAME=VALUE",
            help="Fix an integer parameter of the region (a size passed as an argument).",
        ),
    ] = None
    function: Annotated[
        str | None, _option(metavar="NAME", help="Only regions in this function.")
    ] = None
    scop: Annotated[int | None, _option(metavar="N", min=0, help="Only region N, from 0.")] = None
    recompute: Annotated[
        Recompute,
        _option(
            help="Arrays that code of eatss computes anew where it reads them: as the prediction "
            "says, all that can be, or none."
        ),
    ] = "auto"


@dataclass(frozen=True, kw_only=True)
class PpcgReadingKeywords(ReadingKeywords):
    """How C is read where PPCG's kernels are known.

    Attributes:
        ppcg_schedule: Path of a schedule that PPCG saved (``ppcg --save-schedule``): sizes are for
            the kernels that PPCG makes of it. Without it eatss schedules as PPCG does, and
            ``warnings`` say where that is not sure.
    """

    ppcg_schedule: Annotated[
        StrPath | None,
        _option(
            kind=Path | None,
            metavar="FILE",
            help="Take the kernels of a schedule that PPCG saved (ppcg --save-schedule=FILE).",
        ),
    ] = None


@shows_types
@dataclass(frozen=True, kw_only=True)
class Reading(PpcgReadingKeywords):
    """How C is read.

    Raises:
        InputError: ``EATSS-A001``, the type is none; ``EATSS-C004``, ``recompute``
            is, or something is of another kind than it takes.
    """

    def __post_init__(self) -> None:
        for name, given, kind, example in (
            ("parameters", self.parameters or {}, Mapping, "values by name: {'n': 4000}"),
            ("defines", self.defines, Mapping | Sequence, "macros by name: {'N': 4000}"),
            ("include_dirs", self.include_dirs, Sequence, "a list of folders"),
        ):
            if isinstance(given, str) or not isinstance(given, kind):
                raise input_error("EATSS-C004", f"{name} is {given!r}", hint=f"give {example}")
        if self.recompute not in get_args(Recompute):
            raise input_error(
                "EATSS-C004", f"recompute is {self.recompute!r}", hint="give auto, all or none"
            )
        known = get_args(DtypeWord)
        if self.dtype not in (None, *known):
            raise input_error(
                "EATSS-A001",
                f"unknown dtype '{self.dtype}'",
                hint=f"write one of: {', '.join(known)}",
            )

    @property
    def type_name(self) -> DtypeName | None:
        """What C calls the type that overrides that of the source."""
        return "_Float16" if self.dtype == "half" else self.dtype

    def frontend(self) -> FrontendOptions:
        """Return what the front end is asked."""
        defines = self.defines
        if isinstance(defines, Mapping):
            defines = tuple(f"{name}={value}" for name, value in defines.items())
        return FrontendOptions(
            include_dirs=tuple(map(str, self.include_dirs)),
            defines=tuple(defines),
            function=self.function,
            scop=self.scop,
            parameter_values=tuple(sorted((self.parameters or {}).items())),
        )
