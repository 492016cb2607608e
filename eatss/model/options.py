"""What the user chooses of the model, and one cell of the grid that is solved."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from eatss.diagnostics import input_error
from eatss.gpu.profile import GpuProfile

ModelName = Literal["prediction", "eatss", "paper"]
"""How an objective is computed: the published one by the paper's rules or with exact footprints
(``eatss``), others by the prediction of time and energy."""

TargetName = Literal["ppcg", "cuda"]
"""What makes code from the sizes: PPCG, or eatss itself."""

ObjectiveName = str
"""What is best, a name of ``OBJECTIVES``: least energy, time, … or most of the paper's ``OBJ``."""

PUBLISHED: tuple[ModelName, ...] = ("eatss", "paper")

SPLITS: tuple[float, ...] = (0.0, 0.25, 0.5, 0.67, 0.75, 1.0)
"""The split factors that ``auto`` tries."""

WARP_FRACTIONS: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125)
"""The warp fractions that ``auto`` tries [EATSS, Sec. V-D]."""

DEFAULT_TIMEOUT_S = 20.0
"""Seconds the solver may take for one kernel where the user sets no limit."""


def exact(value: float) -> Fraction:
    """Return the number a user wrote: 0.67 is 67/100, not the nearest binary fraction."""
    return Fraction(repr(float(value)))


def _require_number(name: str, value: object, *, whole: bool = False) -> None:
    kinds = int if whole else (int, float)
    if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
        kind = "a whole number" if whole else "a number"
        raise input_error(
            "EATSS-M009", f"{name} is {value!r}, which is not {kind}", hint="None takes the default"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How to build and solve the model.

    ``split`` is the share of the combined L1 and shared memory that becomes shared
    memory, ``warp_fraction`` the alignment of tile sizes in warps; ``None`` tries
    the grid of :data:`SPLITS` × :data:`WARP_FRACTIONS`. ``uniform`` asks for one vector of
    sizes for the whole program. ``timeout_s`` bounds the solving of one kernel, all cells
    of the grid together (``None``: :data:`DEFAULT_TIMEOUT_S`). ``shared_per_block_bytes``
    replaces the profile's default limit of a block, up to its opt-in maximum.
    ``element_bytes`` replaces the width of the kernels' elements.

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
    shared_per_block_bytes: int | None = None
    element_bytes: int | None = None

    def __post_init__(self) -> None:
        """Check types and ranges."""
        for name in ("split", "warp_fraction", "timeout_s"):
            _require_number(name, getattr(self, name))
        for name in ("shared_per_block_bytes", "element_bytes"):
            _require_number(name, getattr(self, name), whole=True)
        if self.model not in get_args(ModelName):
            raise input_error(
                "EATSS-M001",
                f"there is no model {self.model!r}",
                hint="write eatss or paper, or leave it out and name an objective",
            )
        if self.model in PUBLISHED:
            object.__setattr__(self, "objective", "paper")
        self._check_ranges()
        self._check_prediction()

    def _check_prediction(self) -> None:
        published = {
            "one vector for all kernels": self.uniform,
            "a warp fraction": self.warp_fraction is not None,
            "a split factor": self.split is not None,
        }
        what = next((name for name, given in published.items() if given), None)
        if self.model == "prediction" and what is not None:
            raise input_error(
                "EATSS-M012",
                f"the objective {self.objective} has no place for {what}",
                hint="leave it out, or take --objective paper",
            )

    def _check_ranges(self) -> None:
        if self.split is not None and not 0 <= self.split <= 1:
            raise input_error(
                "EATSS-M002",
                f"the split factor is {self.split:g}, which is not between 0 and 1",
                hint="0 gives all of the combined memory to the L1 cache, 1 all to shared memory",
            )
        if self.warp_fraction is not None and not 0 < self.warp_fraction <= 1:
            raise input_error(
                "EATSS-M003",
                f"the warp fraction is {self.warp_fraction:g}, which is not above 0 and at most 1",
                hint="usual values are 1, 0.5, 0.25 and 0.125",
            )
        # NaN passes a "not greater" test, so the accepted range is what is spelled out
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise input_error("EATSS-M004", f"a timeout of {self.timeout_s:g} s leaves no time")
        if self.shared_per_block_bytes is not None and self.shared_per_block_bytes < 0:
            raise input_error(
                "EATSS-M005",
                f"a block cannot have {self.shared_per_block_bytes} bytes of shared memory",
            )
        if self.element_bytes is not None and self.element_bytes < 1:
            raise input_error("EATSS-M006", f"an element cannot have {self.element_bytes} bytes")

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
                "EATSS-M007",
                f"{self.shared_per_block_bytes} bytes of shared memory a block are more than "
                f"the {most} bytes that {profile.title} can give",
            )
        return self.shared_per_block_bytes

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells to solve: one where both are fixed, else the grid."""
        splits = SPLITS if self.split is None else (self.split,)
        fractions = WARP_FRACTIONS if self.warp_fraction is None else (self.warp_fraction,)
        return tuple(Cell(split=s, warp_fraction=w) for s in splits for w in fractions)


@dataclass(frozen=True, slots=True, kw_only=True)
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
