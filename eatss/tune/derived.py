"""The search space of an affine program, and the points of selections in it.

The layouts of a kernel in generated code are iterators and filters: the values that the model's
candidates have (:mod:`eatss.choose.cuda_candidates`), in all combinations that a kernel variant and
the card allow. The candidates are all among the points.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain, count
from operator import mul
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates, Group, Layout, SplitK, mapped_loops
from eatss.analysis.variant import WORD_BYTES, KernelVariant
from eatss.base.diagnostics import Diagnostic, NoSolutionError, input_error
from eatss.base.frozen import Names
from eatss.base.targets import AXES
from eatss.cards.profile import GpuProfile
from eatss.choose.cuda_candidates import (
    BLOCKS_PER_SM,
    LEAST_IDLE,
    MOST_BLOCKS_PER_SM,
    POINT_LOOPS,
    every_candidate,
    reach,
)
from eatss.choose.options import SelectOptions
from eatss.choose.selection import KernelSelection
from eatss.plan.launch import trips_of
from eatss.tune.points import CUTS, Configuration, Iterates, Space, Value

if TYPE_CHECKING:
    from eatss.session.session import Session

NONE = "none"

PPCG_TILES = (4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256)
"""Tile sizes for PPCG: 15, so that three loops have the 3375 variants of EATSS, Sec. II."""

_SPREAD = "lanes * chunks * outer > 1"
"""When sums are spread, as a condition."""

OF_SPREADS = ("lanes", "steps", "chunks", "outer")
"""What is decided of spread sums."""

_Filters: TypeAlias = Iterable[tuple[str, str]]
"""What conditions remove, in words, and the conditions."""

Column = npt.NDArray[Any]

KernelSpaces: TypeAlias = Mapping[str, "KernelSpace"]
"""What can be decided of kernels, by their names."""


def space_of(session: Session, profile: GpuProfile | None) -> Space:
    """Return the search space that is derived from the kernels of a source.

    Args:
        session: the source; how its kernels are cut says whose code the space is of.
        profile: the card, which decides how kernels of eatss can be cut; PPCG needs none.

    Raises:
        InputError: ``EATSS-S018``, no card is named; what reading the source raises.
        NoSolutionError: ``EATSS-S016``, no kernel has sizes to choose.
    """
    if session.cut == "ppcg":
        return ppcg_space(session.analysed.facts, session.name)
    if profile is None:
        raise input_error(
            "EATSS-S018",
            "the space of generated code depends on the card",
            hint="name one: --gpu h200",
        )
    from eatss.lower.variants import kernel_variants_for  # noqa: PLC0415 - PPCG needs none

    if session.recomputable:
        session = session.of(session.select(profile, SelectOptions(target="cuda")))
    variants = kernel_variants_for(session.analysed, profile)
    return derived_space(kernel_spaces(session.analysed.facts, variants, profile), session.name)


def derived_space(spaces: KernelSpaces, name: str = "derived") -> Space:
    """Return the space of a program in generated code.

    Each kernel has threads and points of a thread along its parallel loops, tiles of its serial
    loops, what is staged in shared memory, what warps compute products by, and how sums are spread;
    with several kernels names begin with ``k0.``.

    Args:
        spaces: what can be decided of each kernel.
        name: what the space is called.

    Raises:
        NoSolutionError: ``EATSS-S016``, no kernel has sizes to choose.
    """
    return _with_sizes(
        Space(
            name=name,
            iterators={n: own for space in spaces.values() for n, own in space.iterators().items()},
            filters={n: text for space in spaces.values() for n, text in space.filters().items()},
        )
    )


def ppcg_space(facts: Sequence[KernelFacts], name: str = "derived") -> Space:
    """Return the space of a program in PPCG's code: a tile size for each position.

    Raises:
        NoSolutionError: ``EATSS-S016``, no kernel has sizes to choose.
    """
    iterators: dict[str, Iterates] = {}
    filters: dict[str, Value] = {}
    for at in range(max((len(one.loops) for one in facts), default=0)):
        tile = f"tile_{at}"
        most = max(reach(one.loops[at].trip_count) for one in facts if at < len(one.loops))
        iterators[tile] = PPCG_TILES
        filters[f"{tile} is no longer than its loop"] = f"{tile} <= {max(most, PPCG_TILES[0])}"
    return _with_sizes(Space(name=name, iterators=iterators, filters=filters))


def _with_sizes(space: Space) -> Space:
    if not space.iterators:
        message = f"{space.name} has no kernel with sizes to choose: all run in one thread"
        raise NoSolutionError(Diagnostic(code="EATSS-S016", message=message))
    return space


def kernel_spaces(
    facts: Sequence[KernelFacts],
    variants: Mapping[str, tuple[KernelVariant, ...]],
    profile: GpuProfile,
) -> dict[str, KernelSpace]:
    """Return what can be decided about each kernel, by its name, in generated code.

    Args:
        facts: the kernels.
        variants: how each kernel can be cut, by its name.
        profile: the card.
    """
    return {
        one.name: KernelSpace(
            facts=one,
            variants=variants.get(one.name, ()),
            profile=profile,
            prefix=f"k{one.index}." if len(facts) > 1 else "",
        )
        for one in facts
    }


def point_of(kernels: Iterable[KernelSelection], spaces: KernelSpaces) -> Configuration:
    """Return the point of what is selected for generated code in the space of kernels."""
    point: Configuration = {}
    for kernel in kernels:
        point |= spaces[kernel.name].point(kernel)
    return point


def cut_values(own: Layout) -> dict[str, Any]:
    """Return what a layout decides beside sizes and places, by the names of a search space."""
    share = 1 if own.cut[1] is None else own.chunks
    spread = own.spread or SplitK(lanes=1, tile=1, chunks=1)
    ways = own.instruction or NONE, own.pipeline_stages, share, own.streams
    of_spread = spread.lanes, spread.tile, spread.chunks, spread.outer
    return dict(zip(CUTS, (*ways, *of_spread), strict=True))


@dataclass(frozen=True, kw_only=True)
class KernelSpace:
    """What can be decided about one kernel, and what it is called.

    Each name ranges over the values that the candidates of the model have. A kernel variant takes
    some of them: that is one filter a quantity, which says which values it has under which choices.

    Attributes:
        facts: The kernel.
        variants: How it can be cut.
        profile: The card.
        prefix: What stands before all names: ``k0.`` where there are several kernels.
    """

    facts: KernelFacts
    variants: tuple[KernelVariant, ...]
    profile: GpuProfile
    prefix: str = ""

    @cached_property
    def every(self) -> list[Candidates]:
        """The layouts that the model compares."""
        found = every_candidate(self.facts, self.variants, self.profile)
        return [one for one in found if not one.copies]

    @cached_property
    def mapped(self) -> Names:
        """The loops that have threads and points."""
        return tuple(loop.name for loop in mapped_loops(self.facts))

    @cached_property
    def serial(self) -> Names:
        """The other loops of the band, which have tiles."""
        return tuple(loop.name for loop in self.facts.loops if loop.name not in self.mapped)

    @cached_property
    def staged(self) -> dict[Group, str]:
        """What may be staged, and its variables: ``staged_A``, of further groups ``staged_A_2``."""
        found: dict[Group, str] = {}
        offered = [group for one in self.every for group, on in one.staged.items() if on.any()]
        for group in dict.fromkeys(offered):
            array = re.sub("[^0-9A-Za-z_]", "_", self.facts.references[group[0]].array)
            several = (f"staged_{array}_{number}" for number in count(2))
            names = chain([f"staged_{array}"], several)
            found[group] = next(name for name in names if name not in found.values())
        return found

    @cached_property
    def _columns(self) -> list[dict[str, Column]]:
        """The values of all names, a column of each for each of the candidates."""
        return [
            {
                name: np.broadcast_to(column, len(one))
                for name, column in self.values(one, one.staged).items()
            }
            for one in self.every
        ]

    @cached_property
    def dimensions(self) -> dict[str, tuple[Value, ...]]:
        """The values of each name that has several, choices between kernel variants first."""
        neutral = cut_values(Layout(tile_sizes=(), block=()))
        spread = OF_SPREADS if any(one.spread is not None for one in self.every) else ()
        found = {}
        for name in self._columns[0] if self.every else ():
            columns = [[neutral[name]]] if name in neutral else []
            values = _values(*columns, *(own[name] for own in self._columns))
            if name not in neutral or name in spread or len(values) > 1:
                found[name] = (0, 1) if name in self.staged.values() else values
        return found

    def iterators(self) -> dict[str, Iterates]:
        """Return the iterators, those that most filters name first."""
        return {self.prefix + name: values for name, values in self.dimensions.items()}

    def point(self, kernel: KernelSelection) -> Configuration:
        """Return the values of the variables in a selection."""
        if not self.every:
            return {}
        staged = {one: int(kernel.shared.issuperset(one)) for one in self.staged}
        values = self.values(kernel, staged)
        return {self.prefix + name: values[name] for name in self.dimensions}

    def values(self, own: Layout, staged: Mapping[Group, Any]) -> dict[str, Any]:
        """Return all that a layout, or a column of layouts, decides by the names of a space."""
        tiles, threads = own.tiles, own.threads
        return {
            **cut_values(own),
            **{name: staged.get(group, 0) for group, name in self.staged.items()},
            **{f"threads_{n}": threads.get(n, 1) for n in self.mapped},
            **{f"points_{n}": tiles[n] // threads.get(n, 1) for n in self.mapped},
            **{f"tile_{n}": tiles[n] for n in self.serial},
        }

    def filters(self) -> dict[str, Value]:
        """Return the filters; a condition holds for all layouts that the model compares."""
        if not self.every:
            return {}
        pairs = [*self._variant_filters(), *self._card_filters(), *self._block_filters()]
        variable = re.compile(rf"(?<![\w.'])({'|'.join(self.dimensions)})(?!\w)")
        before = self.prefix.replace(".", ": ")
        return {before + name: variable.sub(rf"{self.prefix}\1", text) for name, text in pairs}

    def _tile(self, loop: str) -> str:
        """Return the tile of a loop as an expression."""
        return f"threads_{loop} * points_{loop}" if loop in self.mapped else f"tile_{loop}"

    @cached_property
    def _threads(self) -> Names:
        """The names whose product is the threads of a block."""
        lanes = ["lanes"] * ("lanes" in self.dimensions)
        return (*(f"threads_{loop}" for loop in self.mapped), *lanes)

    @cached_property
    def _tiles(self) -> str:
        """The number of tiles, as an expression."""
        trips = trips_of(self.facts)
        every = (f"ceildiv({int(trips[n])}, {self._tile(n)})" for n in self.mapped)
        return " * ".join(every) or "1"

    def _cases(self) -> dict[str, list[tuple[int, Column]]]:
        """Return the choices that tell kernel variants apart, and the candidates that make them.

        What matters of a number is whether it is the one that stands for nothing chosen.
        """
        staged = [*self.staged.values()]
        found: dict[str, list[tuple[int, Column]]] = {}
        for at, own in enumerate(self._columns):
            told = {
                "share > 1": own["share"] > 1,
                "stream > 0": own["stream"] > 0,
                _SPREAD: own["lanes"] * own["chunks"] * own["outer"] > 1,
                "lanes > 1": own["lanes"] > 1,
                f"{' + '.join(staged)} > 0": np.add.reduce([own[name] for name in staged]) > 0,
            }
            told = {
                text: met
                for text, met in told.items()
                if self.dimensions.keys() & {*re.findall(r"\w+", text)}
            }
            ones = np.ones(len(self.every[at]))
            kinds, which = np.unique([ones, *told.values()], axis=1, return_inverse=True)
            for number, (_, *kind) in enumerate(kinds.T):
                words = [f"warps == '{own['warps'][0]}'"] * ("warps" in self.dimensions)
                words += [
                    text if on else f"not {text}" for text, on in zip(told, kind, strict=True)
                ]
                rows_of_kind = np.flatnonzero(which.reshape(-1) == number)
                found.setdefault(" and ".join(words), []).append((at, rows_of_kind))
        return found

    def _variant_filters(self) -> _Filters:
        """Yield which choices there are, and which values each quantity has under them."""
        cases = self._cases()
        if len(cases) > 1:
            yield "one kernel variant has the choices", _either(cases)
        quantities: dict[Names, str] = {(name,): name for name in self.dimensions}
        quantities |= {
            (f"threads_{loop}", f"points_{loop}"): f"the tile of {loop}" for loop in self.mapped
        }
        quantities[tuple(f"points_{n}" for n in self.mapped)] = "the points of a thread"
        quantities[self._threads] = "the threads of a block"
        quantities.pop((), None)
        for names, words in quantities.items():
            ways: dict[tuple[Value, ...], list[str]] = {}
            for case, rows in cases.items():
                own = [reduce(mul, (self._columns[at][n] for n in names))[r] for at, r in rows]
                if names == self._threads and self.every[rows[0][0]].warps is None:
                    own.append(self._whole_warps)
                ways.setdefault(_values(*own), []).append(case)
            if len(ways) > 1 or [*ways] != [self.dimensions.get("".join(names))]:
                each = (
                    f"{' * '.join(names)} in {list(values)}"
                    + f" and ({_either(own)})" * (len(ways) > 1)
                    for values, own in ways.items()
                )
                yield f"the kernel variant has {words}", " or ".join(each)

    @cached_property
    def _whole_warps(self) -> Column:
        """Threads of a block where each thread computes by itself, beside those of candidates."""
        counts = self.profile.threads_per_warp * 2 ** np.arange(6)
        return np.asarray(counts[counts <= self.profile.threads_per_block])

    def _card_filters(self) -> _Filters:
        """Yield what holds because the card, or an axis of its grid, has no more."""
        several = ("threads", self.mapped[:-1], len(AXES) - 1), ("points", self.mapped, POINT_LOOPS)
        for kind, loops, most in several:
            if len(loops) > most:
                along = " + ".join(f"({kind}_{loop} > 1)" for loop in loops)
                yield f"at most {most} loops have several {kind}", f"{along} <= {most}"
        plain = [one for one in self.every if one.warps is None and one.spread is None]
        words = min((_held_words(one.variant) for one in plain), default=0)
        if words:
            others = [f"warps != '{NONE}'"] * ("warps" in self.dimensions)
            others += [_SPREAD] * ("lanes" in self.dimensions)
            threads = " * ".join(self._threads) or "1"
            held = " * ".join([str(words), *(f"points_{loop}" for loop in self.mapped)])
            room = (
                f"min(card.registers_per_thread, card.registers_per_block // ({threads})) * 3 // 4"
            )
            yield "accumulators fit into registers", " or ".join([*others, f"{held} <= {room}"])
        elements = {name: self._elements(group) for group, name in self.staged.items()}
        least = " + ".join(
            f"{name} * {self.facts.element_bytes} * ({own})"
            for name, own in elements.items()
            if own
        )
        if least:
            stages = "stages" if "stages" in self.dimensions else "1"
            fits = f"{stages} * ({least}) <= card.shared_per_block_optin_bytes"
            yield "staged tiles fit into shared memory", fits

    def _block_filters(self) -> _Filters:
        """Yield what holds where blocks have parts of a sum: none has nothing to do."""
        trips, tiles = trips_of(self.facts), self._tiles
        loop = next((x.variant.shared_loop for x in self.every if x.cut[1] is not None), None)
        if loop is not None and "share" in self.dimensions:
            most = f"share * {tiles} <= {BLOCKS_PER_SM[-1]} * card.sm_count"
            steps = f"share <= ceildiv({int(trips[loop])}, {self._tile(loop)})"
            some = f"{tiles} < card.sm_count and {most} and {steps}"
            yield "split-K: few tiles, and k-tiles for each block", f"share == 1 or ({some})"
        if "stream" in self.dimensions:
            busy = f"{tiles} < {1 - LEAST_IDLE} * stream * ceildiv({tiles}, stream)"
            yield "stream-K: whole waves would leave SMs idle", f"stream == 0 or {busy}"
        launches = [own for one in self.every if one.spread for own in one.variant.launches]
        longest = [int(trips[own.sum_loop]) for own in launches if own.sum_loop is not None]
        if "chunks" in self.dimensions and longest:
            some = f"chunks == 1 or chunks * steps < {2 * max(longest)}"
            most = f"chunks * outer * {tiles} <= {MOST_BLOCKS_PER_SM} * card.sm_count"
            few = f"chunks * outer == 1 or ({most})"
            yield "spread sums: a chunk for each block", f"({some}) and ({few})"

    def _elements(self, group: Group) -> str | None:
        """Return the elements that a tile touches through a group, at least, as an expression."""
        of = [own for at in group if (own := self.facts.references[at]).exact]
        widths = {
            access.element_bytes
            for statement in self.facts.work.statements
            for access in statement.accesses
            if access.reference in group
        }
        if not of or widths != {self.facts.element_bytes}:
            return None
        elements = of[0].elements
        if not elements.loops <= {*self.mapped, *self.serial}:
            return None
        return " + ".join(
            " * ".join([str(factor), *map(self._tile, loops)])
            for loops, factor in sorted(elements.terms.items())
        )


def _either(cases: Iterable[str]) -> str:
    return " or ".join(f"({case})" for case in cases)


def _values(*columns: Any) -> tuple[Value, ...]:
    """Return the values of columns, each once: none first, the least first."""
    found = {value for column in columns for value in np.unique(column).tolist()}
    return tuple(sorted(found, key=lambda value: (value != NONE, value)))


def _held_words(variant: KernelVariant) -> int:
    """Return the words that one point keeps in registers, in the launch that keeps most."""
    return max(
        sum(max(1, own.element_bytes // WORD_BYTES) for own in launch.held)
        for launch in variant.launches
    )
