"""What the user chooses of the model, and one cell of the grid that is solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import Names, frozen
from eatss.base.options import option, parse_amount, parse_fraction, parse_shared_limit, shows_types
from eatss.base.targets import TARGETS, TargetName, told
from eatss.cards.profile import GpuProfile, Tf32

if TYPE_CHECKING:
    from fractions import Fraction

_option = partial(option, panel="Model")

ModelName = Literal["prediction", "paper", "artifact"]
"""How an objective is computed: the published one by the paper's rules, by those of its scripts
(``artifact``), others by the prediction of time and energy."""

ObjectiveName = str
"""What is best, a name of ``OBJECTIVES``: least energy, time, … or most of the paper's ``OBJ``."""

Auto = Literal["auto"]
SharedLimit = Literal["default", "opt-in"]
"""Shared memory of a block: the static limit of CUDA, or the most the card has on request."""

PUBLISHED: tuple[ModelName, ...] = ("paper", "artifact")

SPLITS: tuple[float, ...] = (0.0, 0.25, 0.5, 0.67, 0.75, 1.0)
"""The split factors that ``auto`` tries."""

_SPLITS_OF_SCRIPTS = (0.0, 0.125, 0.25, 0.333, 0.375, 0.5)
"""Those of the scripts, for one card or another; what a block may not have is left out there."""

WARP_FRACTIONS: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125)
"""The warp fractions that ``auto`` tries [EATSS, Sec. V-D]."""

DEFAULT_TIMEOUT_S = 20.0
"""Seconds the solver may take for one kernel where the user sets no limit."""


LONGEST_S = 60.0
"""Seconds of a search that is to reach a gap."""


def exact(value: float) -> Fraction:
    """Return the number a user wrote: 0.67 is 67/100, not the nearest binary fraction."""
    from fractions import Fraction  # noqa: PLC0415 - who chooses needs none

    return Fraction(repr(float(value)))


_RANGES: Mapping[str, tuple[tuple[type, ...], Callable[[Any], bool], str]] = {
    "split": ((int, float), lambda x: 0 <= x <= 1, "auto or a number from 0 to 1"),
    "warp_fraction": ((int, float), lambda x: 0 < x <= 1, "auto or a number above 0, at most 1"),
    "timeout_s": ((int, float), lambda x: x > 0, "a number of seconds, like 2s"),
    "gap": ((int, float), lambda x: 0 <= x < 1, "a share, like 1%"),
    "shared_per_block_bytes": ((int,), lambda x: x >= 0, "default, opt-in or a number of bytes"),
    "element_bytes": ((int,), lambda x: x >= 1, "a whole number of bytes, at least 1"),
}
"""Types and values of numbers, and how they are named; NaN is in no range."""


@frozen
class ModelOptions:
    """How to build and solve the model.

    ``split`` is the share of the combined L1 and shared memory that becomes shared
    memory, ``warp_fraction`` the alignment of tile sizes in warps; ``None`` tries
    the grid of :data:`SPLITS` × :data:`WARP_FRACTIONS`. ``uniform`` asks for one vector of
    sizes for the whole program. ``timeout_s`` bounds the solving of a published model for one
    kernel, all cells of the grid together (``None``: :data:`DEFAULT_TIMEOUT_S`), or the search for
    what is predicted best, for all kernels together (``None``: by a count of steps). That ends when
    nothing is a share of ``gap`` under the best. ``shared_per_block_bytes``
    replaces the profile's default limit of a block, up to its opt-in maximum.
    ``element_bytes`` replaces the width of the kernels' elements. ``tf32`` says whether tensor
    cores may multiply floats.

    Raises:
        InputError: a value is out of its range.
    """

    model: ModelName = "prediction"
    target: TargetName = "ppcg"
    objective: ObjectiveName = "energy"
    split: float | None = None
    warp_fraction: float | None = None
    uniform: bool = False
    timeout_s: float | None = None
    gap: float | None = None
    shared_per_block_bytes: int | None = None
    element_bytes: int | None = None
    tf32: Tf32 = "off"

    def __post_init__(self) -> None:
        """Check types and ranges."""
        if self.model in PUBLISHED:
            object.__setattr__(self, "objective", "paper")
        one_of("model", self.model, get_args(ModelName))
        for name, (kinds, fits, wanted) in _RANGES.items():
            value = getattr(self, name)
            is_number = isinstance(value, kinds) and not isinstance(value, bool)
            if value is not None and not (is_number and fits(value)):
                raise wrong(name, value, wanted)

    def shared_per_block(self, profile: GpuProfile) -> int:
        """Return the bytes of shared memory one block may have on ``profile``.

        Raises:
            InputError: the options ask for more than the card can give.
        """
        if self.shared_per_block_bytes is None:
            return profile.shared_per_block_bytes
        most = max(profile.shared_per_block_bytes, profile.shared_per_block_optin_bytes)
        if self.shared_per_block_bytes > most:
            raise input_error(
                "EATSS-M001",
                f"{self.shared_per_block_bytes} bytes of shared memory a block are more than "
                f"the {most} bytes that {profile.title} can give",
            )
        return self.shared_per_block_bytes

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells to solve: one where both are fixed, else the grid."""
        grid = _SPLITS_OF_SCRIPTS if self.model == "artifact" else SPLITS
        splits = grid if self.split is None else (self.split,)
        fractions = WARP_FRACTIONS if self.warp_fraction is None else (self.warp_fraction,)
        return tuple(Cell(split=s, warp_fraction=w) for s in splits for w in fractions)


@frozen
class Cell:
    """One choice of split factor and warp fraction."""

    split: float
    warp_fraction: float

    def alignment(self, profile: GpuProfile) -> int:
        """Return ``WAF``, the threads tile sizes are a multiple of [EATSS, Sec. IV-B]."""
        return max(1, int(exact(self.warp_fraction) * profile.threads_per_warp))

    def __str__(self) -> str:
        """Return the cell in words."""
        return f"split {self.split:g}, warp fraction {self.warp_fraction:g}"


@dataclass(frozen=True, kw_only=True)
class SelectKeywords:
    """What sizes are selected for, in the words of the user.

    Attributes:
        objective: ``"energy"`` (the default), ``"time"`` or ``"edp"`` of a run as predicted,
            ``"paper"``, the objective of EATSS, or another name of ``eatss.choose.OBJECTIVES``.
        model: For the paper's objective: ``"paper"`` keeps to the text of EATSS, ``"artifact"``
            to the scripts published with it.
        split: Share of L1 + shared memory that is shared, 0 to 1; ``"auto"`` tries the
            grid of Sec. V.
        warp_fraction: Tile sizes are multiples of this fraction of a warp; ``"auto"``
            tries the grid.
        uniform: One vector of tile sizes for the whole program, as in the paper.
        shared_per_block: Shared memory one block may have, in the model and in generated code:
            ``"default"``, the static limit of CUDA; ``"opt-in"``, the maximum of the card; or
            bytes. Not given, the model keeps to the former and code to the latter.
        tf32: Whether tensor cores may multiply floats in generated code: ``"off"``; ``"on"``,
            factors are rounded to TF32, 11 significant bits; ``"split"``, each factor is two
            numbers in TF32, nearly as exact as floats.
        timeout_s: Seconds that may be looked for better sizes, of all kernels, or of each kernel
            with the paper's objective (20 s by default); when it ends one, ``optimal`` says
            ``best found``.
        gap: The search ends when nothing is predicted this share under the best, 0.01 for 1 %
            (0.02 by default).
    """

    objective: Annotated[
        ObjectiveName | None,
        _option(
            metavar="NAME",
            help=f"What is to be least in a run as predicted: {told()}; or paper, the "
            "objective of the EATSS paper, or one that a package adds.",
        ),
    ] = None
    model: Annotated[
        ModelName | None,
        _option(
            kind=Literal["paper", "artifact"] | None,
            help="For --objective paper: by its text, or by the scripts published with "
            "it (artifact).",
        ),
    ] = None
    split: Annotated[
        float | Auto,
        _option(
            kind=str,
            made=partial(parse_fraction, "--split"),
            metavar="auto|0..1",
            help="Share of L1 + shared memory that is shared.",
        ),
    ] = "auto"
    warp_fraction: Annotated[
        float | Auto,
        _option(
            kind=str,
            made=partial(parse_fraction, "--warp-fraction"),
            metavar="auto|0..1",
            help="Sizes are multiples of this fraction of a warp.",
        ),
    ] = "auto"
    uniform: Annotated[bool, _option("--uniform", help="One vector of sizes for all kernels.")] = (
        False
    )
    shared_per_block: Annotated[
        int | SharedLimit | None,
        _option(
            kind=str | None,
            made=parse_shared_limit,
            metavar="default|opt-in|BYTES",
            help="Shared memory a block may have; default: default in the model, opt-in in code "
            "of eatss.",
        ),
    ] = None
    tf32: Annotated[
        Tf32,
        _option(
            help="Whether tensor cores may multiply floats in code of eatss: rounded to 11 bits "
            "(on), or as two such numbers each (split), nearly as exact as floats."
        ),
    ] = "off"
    timeout_s: Annotated[
        float | None,
        _option(
            "--within",
            kind=str | None,
            made=partial(parse_amount, "--within", "s", 1.0),
            metavar="SECONDS",
            help="Time to search for better sizes, for cuda between the layouts that are "
            "offered; default: as long as it pays, for cuda none.",
        ),
    ] = None
    gap: Annotated[
        float | None,
        _option(
            kind=str | None,
            made=partial(parse_amount, "--gap", "%", 0.01),
            metavar="PERCENT",
            help="Search until no sizes are predicted to be better by more than this; default: "
            "2% with --within, else as long as it pays.",
        ),
    ] = None


@shows_types
@dataclass(frozen=True, kw_only=True)
class SelectOptions(SelectKeywords):
    """What sizes are selected for.

    Attributes:
        target: What makes code from the sizes: ``"ppcg"``, or ``"cuda"`` for eatss itself.

    Raises:
        InputError: ``EATSS-C004`` a word is none of these, ``EATSS-C012`` options do not go
            together.
    """

    target: TargetName = "ppcg"

    def __post_init__(self) -> None:
        one_of("target", self.target, get_args(TargetName))
        if self.model is not None:
            one_of("model", self.model, get_args(ModelName))
        one_of("tf32", self.tf32, get_args(Tf32))
        model, _ = self.resolved()
        if self.tf32 != "off":
            check_target(self.target, ppcg={}, cuda={"tf32": True})
            if model in PUBLISHED:
                raise wrong("tf32", self.tf32, "off: the paper's objective has no place for it")

    def resolved(self) -> tuple[ModelName, ObjectiveName]:
        """Return how the objective is computed, and the objective.

        Raises:
            InputError: ``EATSS-C012``, they do not go together.
        """
        objective, model = self.objective, self.model
        grid = (self.split, self.warp_fraction)
        published = self.uniform or grid != ("auto", "auto")  # what only the paper's objective has
        if objective is not None:
            from eatss.choose.objectives import OBJECTIVES  # noqa: PLC0415 - it needs NumPy

            OBJECTIVES.get(objective)
        if (
            model in PUBLISHED
            or objective == "paper"
            or (published and (objective, model) == (None, None))
        ):
            if objective not in (None, "paper") or model not in (None, *PUBLISHED):
                raise input_error(
                    "EATSS-C012",
                    f"the model {model} has an objective of its own, not {objective}",
                    hint="leave out one of the two",
                )
            return model or "paper", "paper"
        if published:
            raise input_error(
                "EATSS-C012",
                "splits, warp fractions and one vector belong to the paper's objective, "
                f"not to {objective or 'energy'}",
                hint="leave them out, or take --objective paper",
            )
        return "prediction", objective or "energy"

    def shared_limit_bytes(self, profile: GpuProfile) -> int | None:
        """Return the shared memory one block may have, in bytes; ``None`` where nobody says."""
        return self.for_card(profile).shared_per_block_bytes

    def for_card(self, profile: GpuProfile) -> ModelOptions:
        """Return the options of the model for a card.

        Raises:
            InputError: ``EATSS-C004``, a value is out of its range.
        """
        model, objective = self.resolved()
        limits: dict[Any, Any] = {
            "default": profile.shared_per_block_bytes,
            "opt-in": profile.shared_per_block_optin_bytes,
        }
        timeout_s, gap = self.timeout_s, self.gap
        return ModelOptions(
            model=model,
            target=self.target,
            objective=objective,
            split=None if self.split == "auto" else self.split,
            warp_fraction=None if self.warp_fraction == "auto" else self.warp_fraction,
            uniform=self.uniform,
            timeout_s=float(timeout_s)
            if type(timeout_s) is int
            else timeout_s,  # 20 and 20.0 are one
            gap=float(gap) if type(gap) is int else gap,
            shared_per_block_bytes=limits.get(self.shared_per_block, self.shared_per_block),
            tf32=self.tf32,
        )


def longest_s(options: ModelOptions) -> float:
    """Return the seconds that a search may take, at most."""
    return options.timeout_s or LONGEST_S


def check_target(target: str, *, ppcg: Mapping[str, bool], cuda: Mapping[str, bool]) -> None:
    """Refuse options that belong to the other target.

    Args:
        target: what makes the code.
        ppcg: the options that only PPCG's code has, as the user spells them, and whether each is
            given.
        cuda: those that only generated code has, likewise.

    Raises:
        InputError: ``EATSS-C012``.
    """
    one_of("target", target, get_args(TargetName))
    others, other = (ppcg, "ppcg") if TARGETS[target].own else (cuda, "cuda")
    for name, is_given in others.items():
        if is_given:
            raise input_error(
                "EATSS-C012",
                f"{name} has no meaning for the target {target}",
                hint=f"leave it out, or take the target {other}",
            )


def one_of(option: str, value: str, known: Names) -> None:
    """Refuse a word that is none of those known.

    Raises:
        InputError: ``EATSS-C004``.
    """
    if value not in known:
        raise wrong(option, value, " or ".join(known))


def wrong(option: str, value: object, wanted: str) -> InputError:
    """Return the error of an option's value."""
    return input_error("EATSS-C004", f"{option} is {value!r}", hint=f"give {wanted}")
